"""The experiments write the columns that the analysis reads, in the order and with the counts they claim."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from small import drafters_of, sizes, tiny_llama
from specledger.decoding.counts import PHASES, Generated, Round
from specledger.decoding.engines import engine
from specledger.experiments import checks, forward_costs
from specledger.experiments.acceptance import choose_positions, judge, simulate
from specledger.experiments.agreement import agreement_rows, margin
from specledger.experiments.bundle import ModelBundle
from specledger.experiments.contexts import context_rows
from specledger.experiments.sweep import Method, Stop, measure, methods_of, readings, round_rows, token_kinds
from specledger.sampling.distributions import Sampling, distribution
from specledger.sampling.uniforms import Uniforms
from specledger.sampling.verify import acceptance_probability
from specledger.tables.raw import RAW

CONFIG = sizes(context=24)
TARGET = tiny_llama(CONFIG, seed=31)
BUNDLE = ModelBundle(target=TARGET, drafters=drafters_of(TARGET))
ENGINES = [engine("recompute"), engine("cached")]
GAMMAS = {"draft": [1, 3], "ngram": [2], "mtp": [1]}
TOKENS = np.random.default_rng(0).integers(CONFIG.vocabulary, size=60)


def test_prefix_rows():
    models = {"mtp": TARGET, "draft": BUNDLE.drafters["draft"].parts[0]}
    rows = list(checks.prefix_rows(models, ENGINES, TOKENS[:24], short=20, seed=4))
    assert list(rows[0]) == RAW["prefix"].names
    assert len(rows) == len(models) * len(ENGINES) * 2
    for row in rows:
        assert (row["fed_short"], row["fed_long"], row["rows"]) == (20, 24, 20)
        assert row["max_abs_difference"] < {"float32": 1e-4, "float64": 1e-12}[row["precision"]]
    assert next(TARGET.parameters()).dtype.itemsize == 4  # back to float32 for whoever comes next


def test_prefix_sees_a_model_that_looks_ahead(monkeypatch):
    """Attention without its mask: the first rows then depend on what follows, and the reading says so."""
    from specledger.models import llama
    from specledger.models.cache import Attended

    blind = lambda cos, sin: Attended(cos_TE=cos, sin_TE=sin, is_causal=False)  # noqa: E731
    monkeypatch.setattr(llama, "causal", blind)
    assert checks.prefix_difference(TARGET, ENGINES[0], TOKENS[:24], short=20) > 0.01


def test_greedy_rows():
    prompt = TOKENS[:8].tolist()
    rows = list(checks.greedy_rows(BUNDLE, ENGINES, GAMMAS, prompt, count=12, seed=4))
    assert list(rows[0]) == RAW["greedy"].names
    assert len(rows) == 2 * 4
    for row in rows:
        assert row["identical"] is True and row["first_divergence"] is None and row["top2_margin"] is None
        assert (row["prompt_tokens"], row["generated_tokens"]) == (8, 12)


def test_greedy_rows_tell_where_texts_part(monkeypatch):
    def wrong(target, drafter, prompt, **how):
        text = honest(target, drafter, prompt, **how)
        text.tokens[5] = (text.tokens[5] + 1) % CONFIG.vocabulary
        return text

    honest = checks.speculative
    monkeypatch.setattr(checks, "speculative", wrong)
    row = next(checks.greedy_rows(BUNDLE, ENGINES, GAMMAS, TOKENS[:8].tolist(), count=12, seed=4))
    assert (row["identical"], row["first_divergence"]) == (False, 5)
    assert row["top2_margin"] > 0


def test_context_rows():
    """Every drafter at every context; the rule is right, so that no p-value falls below 1e-4 (odds 1 in 800)."""
    places = choose_positions(len(TOKENS), context=24, count=4, after=2)
    contexts = np.stack([TOKENS[place - 24 : place] for place in places])
    shared = {"draws": 2000, "null_draws": 200_000, "sampling": Sampling(), "seed": 4, "after_each": lambda: None}
    rows = list(context_rows(BUNDLE, ["draft", "ngram", "mtp"], contexts, places, **shared))
    assert list(rows[0]) == RAW["contexts"].names
    assert [(row["drafter"], row["position"]) for row in rows] == [
        (name, place) for name in ("draft", "ngram", "mtp") for place in places
    ]
    for row in rows:
        assert row["p_value"] > 1e-4 and 0 < row["null_tv_lo"] < row["null_tv_hi"] < row["tv_output"]
        spread = np.sqrt(row["beta"] * (1 - row["beta"]) / 2000)
        assert abs(row["accepted"] / 2000 - row["beta"]) < 4.5 * spread


def test_simulation_follows_p_and_accepts_beta():
    """Bounds of 4 standard errors (odds 6e-5) and of p > 1e-3; the seed is fixed."""
    p_V, q_V = np.random.default_rng(1).dirichlet(np.ones(12), size=2)
    found = simulate(p_V, q_V, draws=50_001, uniforms=Uniforms(1, 2))
    assert found.counts_V.sum() == 50_001
    row = judge(p_V, q_V, found, generator=np.random.default_rng(2))
    beta = float(acceptance_probability(p_V, q_V))
    assert row["beta"] == beta and row["draws"] == 50_001
    assert abs(row["acceptance"] - beta) < 4 * np.sqrt(beta * (1 - beta) / 50_001)
    assert row["p_value"] > 1e-3
    assert row["tv_output"] < row["tv_q999"] < row["tv_draft"]
    assert row["tv_draft"] == pytest.approx(1 - beta)
    assert row["acceptance_lo"] < beta < row["acceptance_hi"]
    assert min(row["chi2_p_value"], row["tv_p_value"]) > 1e-3
    assert 0 < row["detectable_leak"] < 0.1 and row["detectable_tv"] < row["tv_draft"]
    assert row["tv_expected"] < row["tv_bound"] < row["tv_draft"]


def test_simulation_of_a_wrong_target_is_caught():
    p_V, q_V = np.random.default_rng(1).dirichlet(np.ones(12), size=2)
    row = judge(0.95 * p_V + 0.05 * q_V, q_V, simulate(p_V, q_V, draws=50_000, uniforms=Uniforms(1)),
                generator=np.random.default_rng(2))  # fmt: skip
    assert row["p_value"] < 1e-6 and row["tv_output"] > row["tv_q999"]


def test_positions_have_a_whole_context_before_them():
    positions = choose_positions(200, context=24, count=40)
    assert positions == sorted(set(positions)) and len(positions) == 40
    assert positions[0] >= 24 and positions[-1] < 200
    assert positions == choose_positions(200, context=24, count=40)
    others = choose_positions(200, context=24, count=500, after=40)
    assert len(others) == 200 - 24 - 40 and not set(others) & set(positions)


NEVER = Stop(half_width=0.0, blocks=5)


def swept(methods, **how):
    shared = {
        "count": 10,
        "repeats": 3,
        "stop": NEVER,
        "sampling": Sampling(),
        "seed": 4,
        "after_each": lambda: None,
    } | how
    return list(measure(BUNDLE, methods, [1, 2, 3], **shared))


def test_sweep_rows():
    methods, done = methods_of(ENGINES, GAMMAS), []
    found = swept(methods, after_each=lambda: done.append(1))
    for method, row, text in found:
        rounds = round_rows(row, text)
        assert len(rounds) == (0 if row["drafter"] == "none" else row["rounds"])
        assert sum(r["accept_len"] for r in rounds) == row["accepted"]
        assert all(len(r["accept_probs"].split()) == r["drafted"] for r in rounds)
        assert (method.copy, method.clocked) == (row["copy"], row["clocked"])
    rows = [row for _, row, _ in found]
    assert {*RAW["runs"].names} <= set(rows[0])
    # Of each engine: plain decoding, four methods, plain once more, and two runs without clocks.
    assert len(rows) == len(done) == 3 * len(methods) == 3 * 2 * (1 + 4 + 3)
    orders = []
    for repeat in (1, 2, 3):
        block = [row for row in rows if row["repeat"] == repeat]
        assert [row["order"] for row in block] == list(range(1, len(methods) + 1))
        orders.append([(row["engine"], row["drafter"], row["gamma"], row["copy"], row["clocked"]) for row in block])
    assert all(sorted(order) == sorted(orders[0]) and len(set(order)) == len(order) for order in orders)
    assert orders[0] != orders[1] != orders[2]  # 16! orders: equal ones have odds of 1e-13
    for row in rows:
        assert row["tokens"] == 10 == row["accepted"] + row["rounds"] and row["seed"] == 4
        assert row["context_rule"] == {"recompute": "window", "cached": "sliding"}[row["engine"]]
        parts = [row[f"{part}_s"] for part in (*PHASES, "other")]
        if row["clocked"]:
            assert sum(parts) == pytest.approx(row["wall_s"]) and row["other_s"] >= 0
        else:
            assert parts == [None] * 6 and row["wall_s"] > 0
        if row["drafter"] == "none":
            assert (row["gamma"], row["drafted"], row["draft_forwards"], row["target_forwards"]) == (0, 0, 0, 10)


def test_runs_that_test_the_clock_write_the_same_text():
    texts = {
        (m.drafter, m.copy, m.clocked): text.tokens for m, _, text in swept(methods_of(ENGINES[1:], {"ngram": [2]}))
    }
    assert texts["none", 0, True] == texts["none", 1, True] == texts["none", 0, False]
    assert texts["ngram", 0, True] == texts["ngram", 0, False]


def test_repeats_and_seeds_have_texts_of_their_own():
    methods = methods_of(ENGINES[1:], {"draft": [2]})
    rounds = [
        row["rounds"]
        for seed in (1, 2)
        for _, row, _ in swept(methods, seed=seed, count=40, repeats=4)
        if row["drafter"] == "draft"
    ]
    assert len(set(rounds)) > 2


def test_a_method_ends_once_its_speed_up_is_known(monkeypatch):
    """Seconds by hand: of the drafts one jumps about by half and one by a hundredth, the n-gram not at all."""
    jumps = {("draft", 1): 0.5, ("draft", 3): 0.01, ("ngram", 2): 0.0, ("none", 0): 0.0}
    decode, taken = Method.decode, []

    def timed(method, *arguments, **named):
        taken.append(method)
        number = sum(one == method for one in taken)
        away = jumps[method.drafter, method.gamma] * (-1) ** number
        return replace(decode(method, *arguments, **named), wall_s=(1.0 + away) * (1.0 if method.gamma else 2.0))

    monkeypatch.setattr(Method, "decode", timed)
    methods = methods_of(ENGINES[1:], {"draft": [1, 3], "ngram": [2]})
    found = swept(methods, repeats=8, stop=Stop(half_width=0.03, blocks=3))
    texts = {method: [row["counted"] for one, row, _ in found if one == method] for method in methods}
    counts = {(one.drafter, one.gamma, one.copy, one.clocked): len(texts[one]) for one in methods}
    assert 3 <= counts.pop(("draft", 3, 0, True)) < 8
    assert counts == {
        ("draft", 1, 0, True): 8,  # never known that well
        ("ngram", 2, 0, True): 3,
        ("ngram", 2, 0, False): 3,
        ("none", 0, 0, True): 8,  # as long as another goes on, which is paired with it
        ("none", 0, 1, True): 3,
        ("none", 0, 0, False): 3,
    }
    # What is counted is the same of all, and no clock's word.
    assert all(sum(counted) == 3 and counted[:3] == [True] * 3 for counted in texts.values())
    everything = swept(methods, repeats=8, stop=NEVER)
    assert len(everything) == 8 * len(methods)


def test_a_stop_wants_its_blocks_and_a_narrow_interval():
    stop = Stop(half_width=0.03, blocks=5)
    assert not stop.reached([0.0] * 4) and stop.reached([0.0] * 5)
    # t(4, 97.5%) = 2.776: with a standard deviation of 2.3% the half-width is 2.9%, with 2.5% it is 3.1%.
    shape = np.array([-1.0, -0.5, 0.0, 0.5, 1.0]) / np.std([-1.0, -0.5, 0.0, 0.5, 1.0], ddof=1)
    assert stop.reached((0.3 + 0.023 * shape).tolist()) and not stop.reached((0.3 + 0.025 * shape).tolist())


def text_by_hand() -> Generated:
    """Round 1 accepts both of two, round 2 one of two, round 3 has no room to propose."""
    rounds = [Round(drafted=2, accept_len=2, draft_forwards=2), Round(drafted=2, accept_len=1, draft_forwards=2)]
    rounds.append(Round(drafted=0, accept_len=0, draft_forwards=0))
    return Generated(
        tokens=[10, 11, 12, 20, 21, 30],
        rounds=rounds,
        wall_s=1.0,
        phase_s={"draft": 0.25, "verify": 0.5, "accept": 0.125},
    )


def test_readings_by_hand():
    found = readings(text_by_hand(), 2)
    assert found == {
        "rounds": 3, "target_forwards": 3, "draft_forwards": 4, "tokens": 6, "drafted": 4, "examined": 4,
        "accepted": 3, "full_rounds": 1, "wall_s": 1.0, "draft_s": 0.25, "catch_up_s": None, "verify_s": 0.5,
        "accept_s": 0.125, "sync_s": None, "other_s": 0.125,
    }  # fmt: skip


def test_token_kinds_by_hand():
    assert token_kinds(text_by_hand()) == [
        (10, "accepted", 1), (11, "accepted", 1), (12, "sampled", 1),
        (20, "accepted", 2), (21, "resampled", 2),
        (30, "sampled", 3),
    ]  # fmt: skip


def test_costs_of_pieces(monkeypatch):
    monkeypatch.setattr(forward_costs, "MIN_RUN_S", 0.002)
    how = {"sampling": Sampling()}
    blocks = [forward_costs.cost_rows(BUNDLE, ENGINES, GAMMAS, TOKENS[:n].tolist(), **how) for n in (40, 48, 56)]
    rows = forward_costs.over_blocks(row for block in blocks for row in block)
    found = [(row["engine"], row["part"], row["drafter"], row["gamma"], row["positions"]) for row in rows]
    forwards = [("forward", "none", gamma, gamma + 1) for gamma in (0, 1, 2, 3)]
    methods = [
        (part, name, gamma, 1) for name, gammas in GAMMAS.items() for gamma in gammas for part in ("propose", "round")
    ]
    expected = [*forwards, ("round", "none", 0, 1), *methods]
    assert found == [(name, *what) for name in ("recompute", "cached") for what in expected]
    assert all(0 < row["seconds_lo"] <= row["seconds"] <= row["seconds_hi"] for row in rows)
    totals = {
        part: sum(row["seconds"] for row in rows if row["part"] == part and row["gamma"])
        for part in ("propose", "round")
    }
    assert totals["round"] > totals["propose"]


def test_blocks_of_costs_by_hand():
    about = {"engine": "cached", "part": "round", "drafter": "draft", "gamma": 2, "positions": 1}
    other = about | {"gamma": 4, "seconds": 9.0}
    (found, rest) = forward_costs.over_blocks([*(about | {"seconds": s} for s in (5.0, 1.0, 2.0, 4.0, 3.0)), other])
    assert found == about | {"seconds": 3.0, "seconds_lo": 2.0, "seconds_hi": 4.0}
    assert rest == other | {"seconds_lo": 9.0, "seconds_hi": 9.0}


def test_the_margin_of_a_plain_text_is_that_of_its_draw():
    """The uniform of token 5 against the sums of p there."""
    method = Method(engine=ENGINES[1], drafter="none", gamma=0)
    shared = {"count": 9, "sampling": Sampling()}
    text = method.decode(BUNDLE, [1, 2, 3], uniforms=Uniforms("m"), **shared).tokens
    uniform = Uniforms("m").extra.random(9)[5]
    session = ENGINES[1].open(BUNDLE.target, 20)
    p_V = distribution(session.forward([1, 2, 3, *text[:5]], rows=1).logits_TV[0].numpy(), Sampling())
    expected = np.abs(np.cumsum(p_V)[:-1] - uniform).min()
    assert margin(BUNDLE, method, [1, 2, 3], 5, uniforms=Uniforms("m"), **shared) == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize(("drafter", "gamma"), [("draft", 2), ("ngram", 3), ("mtp", 1)])
def test_agreement_tells_where_texts_part(drafter, gamma):
    """Cached texts, one of them altered at one place and said to come from another engine of the rule."""
    method = Method(engine=ENGINES[1], drafter=drafter, gamma=gamma)
    (_, row, text), *_ = swept([method], repeats=1, count=20)
    other = SimpleNamespace(name="compiled", context_rule="sliding", static=True)
    tokens = [*text.tokens[:7], (text.tokens[7] + 1) % 7, *text.tokens[8:]]
    pairs = [
        (method, row, text),
        (replace(method, engine=other), row | {"engine": "compiled"}, replace(text, tokens=tokens)),
    ]
    how = {"count": 20, "sampling": Sampling()}
    (found,) = agreement_rows(BUNDLE, pairs, [1, 2, 3], **how)
    assert (found["engine"], found["reference"], found["identical"], found["first_divergence"]) == (
        "compiled",
        "cached",
        False,
        7,
    )
    assert 0 < found["margin"] < 0.5
    (same,) = agreement_rows(BUNDLE, [pairs[0], (*pairs[1][:2], text)], [1, 2, 3], **how)
    assert same["identical"] and same["first_divergence"] is None and same["margin"] is None
