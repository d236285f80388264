"""What the report holds, by name: a change of its form loses no table, figure, explorable, question or download."""

import re

import pytest
import yaml
from specledger.reporting import report
from test_reporting import ROOT, make

TABLES = {
    "claims": "claims_refuted claims_identity claims_correctness claims_measurement",
    "verify": "prefix greedy",
    "accept": "position acceptance acceptance_rows",
    "proof": "oracle contexts sequences false_alarms",
    "gamma": "tokens independence rates gap forwards",
    "mtp": "models seeds differences one_guess",
    "ledger": "ledger",
    "systems": "systems heads",
    "trees": "trees ranks",
    "time": "time cost_model waterfall best_gamma noise engines agreement",
    "intervals": "intervals",
}
FIGURES = (
    "wall_clock acceptance_rule p_values tokens_per_round acceptance_by_position gap learning_curves seeds trees "
    "trees_speed ranks time_parts theory waterfall"
).split()
EXPLORABLES = "mask rule battery speedup module seeds sample ledger waterfall".split()
QUESTIONS = {
    "verify": 3,
    "accept": 3,
    "proof": 4,
    "gamma": 2,
    "mtp": 5,
    "ledger": 2,
    "systems": 4,
    "trees": 3,
    "time": 2,
}
WORDS = 32


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return make(tmp_path_factory.mktemp("contents") / "study", (1, 2), heads=True)


@pytest.fixture(scope="module")
def text(made, tmp_path_factory) -> str:
    return made.page(tmp_path_factory.mktemp("page"))


def test_every_table_figure_and_explorable_is_on_the_page(text):
    for topic, names in TABLES.items():
        for name in names.split():
            assert text.count(f'<div class="view" id="{topic}-{name}">') == 1, (topic, name)
    for name in FIGURES:
        assert text.count(f'<figure class="picture" id="figure-{name}">') == 1, name
    for name in EXPLORABLES:
        assert text.count(f'<form class="explorable" id="explore-{name}"') == 1, name
    assert len(re.findall(r'<div id="word-\w+">', text)) == WORDS


def test_every_question_has_its_answer_and_every_topic_its_brief(made):
    document, _ = report.build(made.results, made.figures, made.about)
    asked = {topic.id: [block for block in topic.blocks if block.kind == "questions"] for topic in document.sections}
    assert {topic: sum(len(block.items) for block in found) for topic, found in asked.items()} == QUESTIONS
    for topic in document.sections:
        said = "".join(span.text for paragraph in topic.brief.paragraphs for span in paragraph)
        sentences = re.findall(r"[.!?](?=\s|$)", said.replace("eq. (", "eq ("))
        assert 1 <= len(sentences) <= 4 and len(said) < 600, (topic.id, said)


def test_every_claim_of_the_file_may_stand_on_the_page():
    claims = yaml.safe_load((ROOT / "config" / "claims.yaml").read_text(encoding="utf-8"))["claims"]
    assert len(claims) >= 64 and len({one["id"] for one in claims}) == len(claims)
