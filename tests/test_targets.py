"""Every stage by its name: README's table "I changed this, what do I run?" held against Snakemake's plan."""

import re

import pytest
from clone import ROOT
from reruns import FOLLOWS, HEADS, MODELS, jobs_of, with_what_follows

README = (ROOT / "README.md").read_text(encoding="utf-8")
TABLE = README[README.index("| what changed |") :].split("\n\n", 1)[0].splitlines()[2:]
ROWS = [[re.findall(r"`([^`]+)`", cell) for cell in line.strip("|").split(" | ")][1:] for line in TABLE]
TARGETS = {target: forced.split() for (target,), (forced,) in ROWS}
# What a stage itself is, and what goes before it.
STAGES = {"models": [*MODELS, *HEADS, "ngram"], "ledger": ["tables"], "report": ["page", "paper"]}


@pytest.fixture(scope="module")
def study(planned_study, tmp_path_factory):
    return planned_study.copy(tmp_path_factory.mktemp("a study"))


ASKED = [
    pytest.param(target, marks=() if target in ("sequences", "ledger") else pytest.mark.slow) for target in TARGETS
]


def before(kinds: set[str]) -> set[str]:
    """`kinds` and all that must be there for them."""
    return {kind for kind in (*FOLLOWS, "page", "paper") if with_what_follows({kind}) & kinds}


def test_the_table_has_every_stage():
    names = "corpus models trees checks acceptance sequences controls sweep ledger figures report"
    assert set(TARGETS) == set(names.split())


@pytest.mark.parametrize("target", ASKED)
def test_forcing_a_stage_runs_it_and_what_follows(target, study):
    own = STAGES.get(target, [target])
    assert set(study.jobs(targets={target}, forced=TARGETS[target])) >= jobs_of(", ".join(own), closed=False)
    assert set(study.jobs(forced=TARGETS[target])) == jobs_of(", ".join(own))


@pytest.mark.parametrize("target", ASKED)
def test_a_stage_by_name_stops_there(target, study):
    """All is to be done, under another name of the study: exactly the stage and what it needs."""
    config = study.written("new.yaml", {"study": "new"})
    needed = before(set(STAGES.get(target, [target])))
    only = 1 if target == "controls" else None  # with the models of the first seed
    found = set(study.jobs(config=config, targets={target}))
    assert found == jobs_of(", ".join(sorted(needed)), only=only, closed=False)
