"""Time by part, the waterfall, the machine's noise, engines and their agreement: values worked out by hand."""

import numpy as np
import pandas as pd
import pytest
from specledger.analysis import engines, noise, timing, waterfall
from specledger.tables.registry import TABLES

PARTS = ("draft", "catch_up", "verify", "accept", "sync", "other")


def run(seed, repeat, drafter, gamma, parts, *, rounds=50, tokens=100, engine="cached", **changes) -> dict:
    row = {"seed": seed, "repeat": repeat, "temperature": 1.0, "engine": engine, "drafter": drafter, "gamma": gamma}
    row |= {"copy": 0, "clocked": 1, "rounds": rounds, "tokens": tokens, "accepted": tokens - rounds, "examined": 80}
    row |= {f"{part}_s": value for part, value in zip(PARTS, parts, strict=True)}
    return row | {"wall_s": float(sum(parts))} | changes


PLAIN, FAST, SLOW = (0, 0, 8, 1, 0.5, 0.5), (1, 0.5, 3, 0.25, 0.125, 0.125), (9, 1, 6, 2, 1, 1)


def blocks() -> pd.DataFrame:
    """Two seeds, three blocks each; each block has a speed of its own."""
    rows = []
    for seed in (1, 2):
        for repeat in (1, 2, 3):
            speed = 1 + 0.1 * repeat + seed
            for drafter, gamma, parts, rounds in (
                ("none", 0, PLAIN, 100),
                ("ngram", 2, FAST, 50),
                ("draft", 2, SLOW, 50),
            ):
                rows.append(run(seed, repeat, drafter, gamma, tuple(speed * one for one in parts), rounds=rounds))
    return pd.DataFrame(rows)


@pytest.fixture
def texts() -> pd.DataFrame:
    return timing.with_ratios(blocks())


LEDGER = pd.DataFrame(
    [
        {"engine": "cached", "drafter": "none", "gamma": 0, "speedup": 1.0, "lossless": True},
        {"engine": "cached", "drafter": "ngram", "gamma": 2, "speedup": 2.0, "lossless": True},
        {"engine": "cached", "drafter": "draft", "gamma": 2, "speedup": 0.5, "lossless": True},
    ]
)


def test_pairs_cancel_the_speed_of_a_block(texts):
    found = timing.ratio_interval(texts[texts["drafter"] == "ngram"])
    assert found.mean == found.lo == found.hi == pytest.approx(2.0) or found.hi - found.lo < 1e-9


def test_copies_and_twins_are_no_texts_of_the_study(texts):
    more = pd.concat([blocks(), blocks().assign(copy=1, wall_s=99.0), blocks().assign(clocked=0, wall_s=99.0)])
    pd.testing.assert_frame_equal(timing.with_ratios(more), texts)


def test_waterfall_is_exact_and_each_step_is_its_part(texts):
    table = waterfall.waterfall_table(LEDGER, texts)
    for case, speedup in (("best", 2.0), ("worst", 0.5)):
        steps = table[table["case"] == case]
        assert abs(steps["factor"].prod() - speedup) < 1e-12 and steps["overall"].all()
        assert steps["step"].iloc[0] == "forwards_saved" and steps["factor"].iloc[0] == 2
        assert (steps["ratio_before"].iloc[1:].to_numpy() == steps["ratio_after"].iloc[:-1].to_numpy()).all()
    # A plain token costs 0.1 (in units of the block's speed); the best row's round adds 0.02 of drafting, 0.01 of
    # catching up, verifies in 0.06 instead of 0.08, and takes 0.005 less to accept, and 0.0025 less of each other.
    after = table.loc[table["case"] == "best", "ratio_after"].tolist()
    costs = [0.1, 0.12, 0.13, 0.11, 0.105, 0.1025, 0.1]
    assert after == pytest.approx([2 * 0.1 / cost for cost in costs] + [2.0])


def test_the_last_step_takes_sums_to_pairs(texts):
    table = waterfall.waterfall_table(LEDGER.assign(speedup=[1.0, 2.2, 0.5]), texts)
    last = table[(table["case"] == "best") & (table["step"] == "pairs")].iloc[0]
    assert last["factor"] == pytest.approx(1.1) and last["ratio_after"] == 2.2


def test_best_and_worst_of_each_engine_and_of_all():
    ledger = pd.concat([LEDGER, LEDGER.assign(engine="compiled", speedup=[1.0, 1.5, 0.2])])
    both = pd.concat([blocks(), blocks().assign(engine="compiled")])
    table = waterfall.waterfall_table(ledger.reset_index(drop=True), timing.with_ratios(both))
    first = table[table["place"] == 1].set_index(["engine", "case"])
    assert first.loc[("cached", "best"), "overall"] and first.loc[("compiled", "worst"), "overall"]
    assert not first.loc[("cached", "worst"), "overall"] and not first.loc[("compiled", "best"), "overall"]


def test_time_adds_up_or_says_that_it_does_not(texts):
    table = timing.time_table(texts).set_index("drafter")
    assert table["adds_up"].tolist() == [True, True, True] and (table["off"].abs() < 1e-12).all()
    assert table.loc["ngram", "other_share"] == pytest.approx(0.125 / 5)
    frame = blocks()
    frame.loc[frame["drafter"] == "draft", "wall_s"] *= 1.03  # 3% that no part holds
    frame.loc[frame["drafter"] == "ngram", "other_s"] += 0.5
    frame.loc[frame["drafter"] == "ngram", "wall_s"] += 0.5
    table = timing.time_table(timing.with_ratios(frame)).set_index("drafter")
    assert table["adds_up"].tolist() == [True, False, False]
    assert table.loc["draft", "off"] == pytest.approx(1 / 1.03 - 1)
    found = timing.time_summary(table.reset_index())
    assert (found["rows"], found["rows_that_add_up"]) == (3, 1)
    assert found["worst_off"]["drafter"] == "draft" and found["worst_other"]["drafter"] == "ngram"


def test_parts_that_overlap_do_not_pass():
    frame = blocks()
    frame.loc[frame["drafter"] == "draft", ["draft_s", "other_s"]] += [9.0, -9.0]
    table = timing.time_table(timing.with_ratios(frame))
    assert not table.set_index("drafter").loc["draft", "adds_up"]


def noisy(shift: float) -> pd.DataFrame:
    """Plain runs of 4 seeds and 30 blocks: a first, a second one that is off by `shift`, and one without clocks."""
    rng, rows = np.random.default_rng(5), []
    for seed in range(1, 5):
        for repeat in range(30):
            for changes, factor in (({}, 1.0), ({"copy": 1}, 1 / (1 + shift)), ({"clocked": 0}, 1 / 1.01)):
                parts = tuple(factor * np.exp(rng.normal(0, 0.01)) * one for one in PLAIN)
                rows.append(run(seed, repeat, "none", 0, parts, rounds=100, **changes))
    return pd.DataFrame(rows)


def test_a_pair_of_the_same_holds_one_and_clocks_cost_what_they_cost():
    table = noise.noise_table(noisy(0.0)).set_index("pair")
    assert table.loc["A/A", "inside"] and table.loc["A/A", "inside_family"]
    assert table.loc["A/A", "ratio"] == pytest.approx(1, abs=0.005) and table.loc["A/A", "n_pairs"] == 120
    row = table.loc["clocks"]
    assert row["cost_percent"] == pytest.approx(1, abs=0.4) and row["cost_percent_lo"] < 1 < row["cost_percent_hi"]
    assert not row["inside"] and row["n_seeds"] == 4 and "4 seeds with their 30 blocks" in row["method"]
    assert 1 < row["spread_percent"] < 3  # the quartiles of a log ratio with sd 0.014 lie 0.019 apart
    found = noise.noise_summary(table.reset_index())
    assert (found["aa_inside"], found["aa_judged"]) == (1, 1) and found["clock_percent"] == row["cost_percent"]


@pytest.mark.parametrize(
    ("pairs", "deciding"),
    [
        ([(1.0, 0.5, 1.5), (0.8, -1.0, 2.6)], (0.8, -1.0, 2.6)),  # the dearest is surely cheap, the other is not
        ([(2.5, 2.1, 2.9), (1.0, -5.0, 7.0)], (2.5, 2.1, 2.9)),
        ([(1.0, 0.5, 1.5), (0.9, np.nan, np.nan)], (0.9, None, None)),
    ],
)
def test_the_pair_that_decides_what_clocks_cost(pairs, deciding):
    names = ("cost_percent", "cost_percent_lo", "cost_percent_hi")
    rows = [{"pair": "clocks", "engine": "cached", **dict(zip(names, pair, strict=True))} for pair in pairs]
    found = noise.noise_summary(pd.DataFrame(rows).assign(inside_family=True))
    assert tuple(found[name.replace("cost", "clock")] for name in names) == deciding


def test_a_pair_that_differs_is_seen():
    table = noise.noise_table(noisy(0.02)).set_index("pair")
    assert not table.loc["A/A", "inside"] and table.loc["A/A", "lo"] > 1


def test_engines_and_their_agreement():
    rows = [
        {"seed": seed, "engine": engine, "available": ok, "why": why, "compile_s": seconds}
        for seed in (1, 2)
        for engine, ok, why, seconds in (("cached", "true", None, None), ("compiled", "false", "no compiler", None))
    ]
    table = engines.engines_table(pd.DataFrame(rows)).set_index("engine")
    assert table["available"].tolist() == [True, False] and table.loc["compiled", "why"] == "no compiler"
    frame = pd.DataFrame(rows).assign(available=True, compile_s=[1.0, 20.0, 3.0, 30.0])
    assert engines.engines_table(frame).set_index("engine").loc["compiled", "compile_s"] == 25
    shared = {"engine": "compiled", "reference": "cached", "drafter": "draft", "gamma": 2, "tokens": 600}
    parted = {"identical": "false", "first_divergence": 40, "margin": 1e-7}
    texts = [{**shared, "seed": 1, "identical": "true"}, {**shared, "seed": 2, **parted}]
    texts.append({**shared, "seed": 2, **parted, "first_divergence": 30, "margin": 2e-7})
    row = engines.agreement_table(pd.DataFrame(texts)).iloc[0]
    assert (row["texts"], row["identical"], row["first_divergence"], row["margin"]) == (3, 1, 30, 2e-7)
    found = engines.engines_summary(table.reset_index(), engines.agreement_table(pd.DataFrame(texts)))
    assert found == {
        "engines_missing": {"compiled": "no compiler"}, "agreement_texts": 3, "agreement_identical": 1,
        "agreement_margin": 2e-7, "agreement_margins_unknown": 0, "agreement_limit": 1e-5,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("margins", "largest", "unknown", "other"),
    [
        ([], None, 0, False),
        ([1e-7, 9e-6], 9e-6, 0, False),
        ([1e-7, 1e-5], 1e-5, 0, True),
        ([1e-7, None], 1e-7, 1, True),
        ([None], None, 1, True),
    ],
)
def test_only_small_known_margins_are_of_rounding(margins, largest, unknown, other):
    shared = {"engine": "compiled", "reference": "cached", "drafter": "draft", "gamma": 2, "tokens": 600, "seed": 1}
    texts = [{**shared, "identical": "true", "first_divergence": None, "margin": None}]
    texts += [{**shared, "identical": "false", "first_divergence": 9, "margin": margin} for margin in margins]
    table = engines.agreement_table(pd.DataFrame(texts))
    nothing = pd.DataFrame(columns=TABLES["engines"].names)
    found = engines.engines_summary(nothing, table)
    assert (found["agreement_margin"], found["agreement_margins_unknown"]) == (largest, unknown)
    assert engines.writes_other_text(table).tolist() == [other]
