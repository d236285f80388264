"""The evidence itself: the oracle, the remembering engine, the tests of texts, and the battery of wrong decoders.

Seeds are fixed. Where a test demands that chance keeps within a bound, its odds under other seeds are stated.
"""

import numpy as np
import pytest
import torch
from small import drafters_of, sizes, tiny_llama
from specledger.decoding.counts import Generated, Round
from specledger.decoding.drafters import DraftModel
from specledger.decoding.engines import engine
from specledger.decoding.loops import autoregressive, speculative
from specledger.experiments.cast import Cast
from specledger.experiments.controls import LEVEL, Stage, Texts, decoder_rows, false_alarm_rows, rule_rows
from specledger.experiments.one_round import Place, Rows, decide_rounds, round_law
from specledger.experiments.oracle import oracle_rows, random_cast
from specledger.experiments.reference import TARGET, Reference, depth_for, joint, laws, next_logits, tree_logits
from specledger.experiments.remembered import Remembered
from specledger.experiments.sequences import (
    acceptance_test,
    examined_proposals,
    judge_texts,
    ngram_test,
    sequence_rows,
    violations,
)
from specledger.experiments.texts import logits_along, text_rows
from specledger.experiments.wrong_rules import RoundRule, wrong_rules
from specledger.sampling.distributions import Sampling, distribution
from specledger.sampling.uniforms import Uniforms
from specledger.sampling.verify import acceptance_probability
from specledger.theory.speculation import expected_tokens_per_round

CONFIG = sizes(context=24)
TARGET_MODEL = tiny_llama(CONFIG, seed=31)
CAST = Cast(target=TARGET_MODEL, drafters=drafters_of(TARGET_MODEL))
PROMPT = [0, 3, 1, 4]
V = CONFIG.vocabulary
ENGINES = [engine("recompute"), engine("cached")]


def decode(name: str, executed, uniforms, *, gamma=2, count=5):
    drafter = CAST.drafters[name]
    used = min(gamma, drafter.max_gamma or gamma)
    shared = {"engine": executed, "sampling": Sampling(), "uniforms": uniforms}
    return speculative(TARGET_MODEL, drafter, PROMPT, gamma=used, count=count, **shared)


# --- references and the oracle ---


@pytest.mark.parametrize("name", [TARGET, "draft", "ngram", "mtp"])
@pytest.mark.parametrize("executed", ENGINES, ids=lambda e: e.name)
def test_references_are_what_sessions_say(name, executed):
    """Rows of plain batched forwards against the sessions that decoders use, within float32 rounding."""
    tokens = [*PROMPT, 2, 5]
    expected = next_logits(TARGET_MODEL if name == TARGET else CAST.drafters[name], np.array([tokens]))[0]
    session = executed.open(TARGET_MODEL, 12)
    if name == TARGET:
        found = distribution(session.forward(tokens, rows=1).logits_TV[0].numpy(), Sampling())
    else:
        drafting = CAST.drafters[name].open(executed, Sampling(), 12)
        drafting.observe(session.forward(tokens[:-1], rows=1), len(tokens) - 1)
        found = drafting.propose(tokens, 1, np.random.default_rng(0)).probs_GV[0]
    assert found == pytest.approx(distribution(expected, Sampling()), abs=1e-5)


@pytest.mark.parametrize("sampling", [Sampling(), Sampling(temperature=0.7), Sampling(top_k=3), Sampling(top_p=0.8)])
def test_oracle_of_every_drafter(sampling):
    """Each drafter, gamma 1 to 3, random models of 4 symbols: the law of the block is the target's to 1e-12."""
    rows = oracle_rows(random_cast(4, seed=5), [0, 1, 2], [1, 2, 3], model="random", sampling=sampling)
    assert [(row["drafter"], row["gamma"]) for row in rows] == [
        *((name, gamma) for name in ("draft", "ngram") for gamma in (1, 2, 3)),
        ("mtp", 1),
    ]
    assert all(row["blocks"] == 4 ** (row["gamma"] + 1) for row in rows)
    assert max(row["max_abs_deviation"] for row in rows) < 1e-12


def test_tree_and_joint():
    tree = laws(tree_logits(TARGET_MODEL, PROMPT, 2, V), Sampling())
    law = joint(tree, 3)
    assert law.shape == (V, V, V) and law.sum() == pytest.approx(1.0)
    logits = next_logits(TARGET_MODEL, np.array([[*PROMPT, 2, 6]]))[0]
    assert law[2, 6] / law[2, 6].sum() == pytest.approx(distribution(logits, Sampling()), abs=1e-6)


@pytest.mark.parametrize(("V", "depth"), [(2, 2), (65, 2), (170, 2), (171, 1), (2236, 1), (6000, 1)])
def test_large_vocabularies_are_enumerated_less_deep(V, depth):
    assert depth_for(V) == depth and depth_for(V, 1) == 1


# --- the engine that remembers ---


@pytest.mark.parametrize("executed", ENGINES, ids=lambda e: e.name)
@pytest.mark.parametrize("name", ["draft", "ngram", "mtp"])
def test_remembered_decodes_the_same_texts(executed, name):
    """Thirty texts of one stream, once by the engine and once remembered: the same tokens and rounds."""
    remembered = Remembered(engine=executed)
    honest, again = Uniforms(7), Uniforms(7)
    for _ in range(30):
        one, two = decode(name, executed, honest, count=9), decode(name, remembered, again, count=9)
        assert one.tokens == two.tokens
        assert [r[:3] for r in one.rounds] == [r[:3] for r in two.rounds]


def test_remembered_computes_a_history_once(monkeypatch):
    calls = []
    honest = TARGET_MODEL.hidden
    monkeypatch.setattr(TARGET_MODEL, "hidden", lambda *a: calls.append(1) or honest(*a))
    remembered = Remembered(engine=ENGINES[1])
    first = decode("ngram", remembered, Uniforms(3))
    seen = len(calls)
    assert decode("ngram", remembered, Uniforms(3)).tokens == first.tokens
    assert len(calls) == seen > 0


# --- tests of texts ---


def text_of(tokens, rounds):
    return Generated(tokens=tokens, rounds=[Round(*r) for r in rounds], wall_s=1.0)


def test_examined_proposals_by_hand():
    """Round 1 accepts both of 2 (bonus 6), round 2 rejects the second of 2, round 3 drafts none."""
    text = text_of([1, 2, 6, 3, 4, 5], [(2, 2, 2), (2, 1, 2), (0, 0, 0)])
    assert examined_proposals([9], text) == [
        ((9,), True),
        ((9, 1), True),
        ((9, 1, 2, 6), True),
        ((9, 1, 2, 6, 3), False),
    ]


@pytest.mark.parametrize(
    ("tokens", "rounds", "broken"),
    [
        ([1, 2, 3], [(1, 1, 1), (1, 0, 1)], 0),
        ([1, 2, 3, 4], [(1, 1, 1), (1, 1, 1)], 1),  # a token too many
        ([1, 2, 3], [(1, 1, 1), (1, 1, 1)], 1),  # counters ran past the end
        ([1, 2, 3], [(1, 2, 1)], 1),  # more accepted than drafted
        ([1, 2, 9], [(1, 1, 1), (1, 0, 1)], 1),  # outside the vocabulary
    ],
)
def test_violations_by_hand(tokens, rounds, broken):
    assert violations(text_of(tokens, rounds), count=3, gamma=1, vocabulary=7) == broken


def test_acceptance_test_by_hand():
    """50 of 100 at beta .4: z = 10 / sqrt(24)."""
    found = acceptance_test(np.arange(100) < 50, np.full(100, 0.4))
    assert found.statistic == pytest.approx(10 / np.sqrt(24))
    assert acceptance_test(np.ones(5), np.ones(5)).p_value == 1.0
    assert acceptance_test(np.array([1, 1, 0]), np.ones(3)).p_value == 0.0


@pytest.mark.parametrize("name", ["draft", "ngram", "mtp"])
@pytest.mark.parametrize("executed", ENGINES, ids=lambda e: e.name)
def test_complete_decoders_follow_the_exact_law(name, executed):
    """Every sampling, 300 texts each: 2-, 3-grams and acceptance; under other seeds one of 12 p-values falls
    below 1e-4 about once in 800."""
    samplings = [Sampling(), Sampling(temperature=0.7), Sampling(top_k=3), Sampling(top_p=0.8)]
    tree = tree_logits(TARGET_MODEL, PROMPT, 2, V)
    rows = list(
        sequence_rows(
            Reference(cast=CAST),
            [name],
            PROMPT,
            tree,
            Remembered(engine=executed),
            gamma=2,
            count=5,
            texts=300,
            samplings=samplings,
            seed=11,
            after_each=lambda: None,
        )
    )
    assert [row["test"] for row in rows] == ["2-gram", "3-gram", "acceptance", "accounting"] * 4
    assert min(row["p_value"] for row in rows) > 1e-4
    assert {row["gamma"] for row in rows} == {1 if name == "mtp" else 2}


def test_ngram_test_sees_another_law():
    tree = laws(tree_logits(TARGET_MODEL, PROMPT, 1, V), Sampling())
    law = joint(tree, 2)
    rng = np.random.default_rng(0)
    cells = rng.choice(V * V, size=4000, p=(0.9 * law + 0.1 / V**2).ravel())
    tokens = np.stack(np.unravel_index(cells, (V, V)), axis=1)
    assert ngram_test(tokens, law).p_value < 1e-6


# --- the battery ---


def stage(cast: Cast = CAST) -> Stage:
    return Stage.at(cast, PROMPT, seed=2)


def good_draft() -> Cast:
    """The draft model is the target with its weights a little off: what its cache forgets, it then shows."""
    draft = tiny_llama(CONFIG, seed=31)
    generator = torch.Generator().manual_seed(0)
    for weight in draft.parameters():
        weight.add_(0.03 * torch.randn(weight.shape, generator=generator))
    return Cast(target=TARGET_MODEL, drafters={**CAST.drafters, "draft": DraftModel(model=draft)})


SEEN_BY_ROUNDS = {
    "resample-target": "1-gram",
    "resample-draft": "1-gram",
    "residual-absolute": "1-gram",
    "residual-softmax": "1-gram",
    "residual-row-after": "1-gram",
    "accept-always": "1-gram",
    "ratio-inverted": "1-gram",
    "lenience-1.05": "acceptance",
    "accept-if-equal": "acceptance",
    "bonus-row-before": "2-gram",
    "bonus-from-draft": "2-gram",
    "uniform-draft-accept": "1-gram",
    "uniform-draft-recovery": "1-gram",
    "row-not-a-number": "range",
    "draft-greedy": "1-gram",
    "draft-top-k": None,  # the tiny models have 7 symbols: nothing is cut
    "draft-colder": "1-gram",
    "draft-ignores-temperature": "1-gram",
}
UNSEEN = {"correct", "draft-bfloat16", "target-bfloat16", "draft-top-k"}


def test_wrong_rules_are_caught_and_the_right_one_is_not():
    """100,000 rounds each. A rule that should be caught fails the test if it passes; the right one is rejected by
    one of its five tests about once in 200 seeds."""
    rows = list(rule_rows(stage(), draws=100_000, after_each=lambda: None))
    caught = {row["rule"]: set() for row in rows}
    for row in rows:
        if row["caught"]:
            caught[row["rule"]].add(row["test"])
    assert len(caught) == 22
    assert not caught["correct"]
    for rule, test in SEEN_BY_ROUNDS.items():
        assert test is None or test in caught[rule], (rule, caught[rule])
    for row in rows:
        assert not row["expected"] or row["caught"], row
        assert row["rule"] not in UNSEEN or not row["expected"], row


def test_wrong_decoders_are_caught_and_the_right_one_is_not():
    """120 texts each: every declared test catches its fault; the right decoder fails one of four about once in 250."""
    rows = list(decoder_rows(stage(good_draft()), Texts(gamma=2, tokens=8, texts=120), after_each=lambda: None))
    assert len({row["rule"] for row in rows}) == 10
    for row in rows:
        if row["rule"] == "correct":
            assert not row["caught"], row
        assert not row["expected"] or row["caught"], row
    # The tiny MTP module is random: what it is fed makes no odds to how often it is right.
    names = {row["rule"] for row in rows} - {"correct", "mtp-hidden-stale"}
    assert names == {row["rule"] for row in rows if row["expected"] and row["caught"]} - {"mtp-hidden-stale"}


@pytest.mark.parametrize(
    "name", ["correct", "resample-target", "lenience-1.05", "uniform-draft-accept", "draft-colder"]
)
def test_enumerated_laws_are_what_rules_do(name):
    """The law that power comes from, against 400,000 rounds of the rule itself; odds of 1e-4 each."""
    draft_V, draft_VV = stage().draft_tree("draft")
    rule = next(r for r in wrong_rules(distribution(draft_VV, Sampling())) if r.name == name)
    rows = Rows.of(rule, Place(target_V=stage().tree[0], target_VV=stage().tree[1], draft_V=draft_V))
    law, acceptance = round_law(rule, rows)
    assert law.sum() == pytest.approx(1.0, abs=1e-12)
    rounds = decide_rounds(rule, rows, 400_000, Uniforms(9))
    assert ngram_test(rounds.tokens_N2, law[:, :-1]).p_value > 1e-4
    assert rounds.accepted_N.mean() == pytest.approx(acceptance, abs=4 * np.sqrt(0.25 / 400_000))


def test_law_of_the_right_rule_is_the_targets():
    draft_V, _ = stage().draft_tree("draft")
    rows = Rows.of(
        RoundRule(name="correct", source=""),
        Place(target_V=stage().tree[0], target_VV=stage().tree[1], draft_V=draft_V),
    )
    law, acceptance = round_law(RoundRule(name="correct", source=""), rows)
    assert np.abs(law[:, :-1] - rows.p_V[:, None] * rows.p_VV).max() < 1e-12
    assert acceptance == pytest.approx(rows.beta, abs=1e-12)


def test_false_alarms_of_the_right_rule():
    """300 repeats: the share rejected lies in its 99.9% Clopper-Pearson interval; fails about once in 150 seeds."""
    rows = false_alarm_rows(stage(), repeats=300, draws=2000)
    assert {row["test"] for row in rows} == {"1-gram", "2-gram", "acceptance"}
    for row in rows:
        assert row["lo"] <= row["level"] <= row["hi"], row


def test_level_is_strict():
    assert LEVEL == 0.001


# --- texts of the target ---


@pytest.mark.parametrize("name", [TARGET, "draft", "ngram", "mtp"])
def test_rows_along_a_text_are_those_of_decoding(name):
    """One forward over a text longer than the context, against step-by-step sessions of the engine cached."""
    text = autoregressive(
        TARGET_MODEL, PROMPT, count=30, engine=ENGINES[1], sampling=Sampling(), uniforms=Uniforms(1)
    ).tokens
    tokens = PROMPT + text
    speaker = TARGET_MODEL if name == TARGET else CAST.drafters[name]
    along = distribution(logits_along(speaker, ENGINES[1], tokens), Sampling())
    assert along.shape == (len(tokens) - 1, V)
    session = ENGINES[1].open(TARGET_MODEL, len(tokens))
    drafting = None if name == TARGET else speaker.open(ENGINES[1], Sampling(), len(tokens) + 1)
    for t in range(2, len(tokens)):
        output = session.forward(tokens[: t - 1] if name != TARGET else tokens[:t], rows=1)
        if name == TARGET:
            found = distribution(output.logits_TV[0].numpy(), Sampling())
        else:
            drafting.observe(output, t - 1)
            found = drafting.propose(tokens[:t], 1, np.random.default_rng(0)).probs_GV[0]
        assert found == pytest.approx(along[t - 1], abs=2e-5), t


def test_texts_foretell_what_rounds_accept():
    """The expected accepts of a round, from plain texts alone, against rounds that start where a text starts.

    gamma is 2. Both are unbiased for the first round after the prompt; within 4 standard errors (odds 6e-5).
    """
    rows = list(
        text_rows(
            CAST,
            ["draft"],
            PROMPT,
            ENGINES[1],
            texts=1500,
            tokens=2,
            sampling=Sampling(),
            seed=3,
            after_each=lambda: None,
        )
    )
    first, second = rows[0::2], rows[1::2]
    foretold = np.array([a["beta"] + a["kept"] * b["beta"] for a, b in zip(first, second, strict=True)])
    remembered, uniforms = Remembered(engine=ENGINES[1]), Uniforms(5)
    seen = np.array([decode("draft", remembered, uniforms, count=4).rounds[0].accept_len for _ in range(1500)])
    spread = np.hypot(foretold.std() / np.sqrt(len(foretold)), seen.std() / np.sqrt(len(seen)))
    assert abs(foretold.mean() - seen.mean()) < 4 * spread
    alone = acceptance_probability(
        *(
            distribution(next_logits(s, np.array([PROMPT]))[0], Sampling())
            for s in (TARGET_MODEL, CAST.drafters["draft"])
        )
    )
    assert first[0]["beta"] == pytest.approx(alone, abs=1e-5)
    assert expected_tokens_per_round(alone, 1) == pytest.approx(1 + alone)


def test_judge_texts_leaves_broken_texts_to_the_accounts():
    tree = laws(tree_logits(TARGET_MODEL, PROMPT, 1, V), Sampling())
    short = text_of([1], [(0, 0, 0)])
    found = judge_texts([short], Reference(cast=CAST), "draft", PROMPT, tree, count=2, gamma=1, sampling=Sampling())
    assert [(f.test, f.p_value) for f in found] == [("accounting", 0.0)]
