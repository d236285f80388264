"""The tables of oracle, contexts, texts, controls and differences, and what claims take from them, by hand."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from specledger.analysis import evidence, measures_rule, summary
from specledger.analysis.differences import differences_table, equivalence_summary, verdict
from specledger.analysis.measures import MEASURES
from specledger.foundation.errors import UserError
from test_claims import nothing_but

SIZES = {"seed": 1, "draws": 5000, "accepted": 4000, "beta": 0.8, "null_draws": 200_000}
SIZES |= {"null_tv_lo": 0.0004, "null_tv_hi": 0.0009}


def contexts(p_values: dict[str, list[float]], **changes) -> pd.DataFrame:
    """Contexts with 4 degrees of freedom whose chi-square belongs to the p-value."""
    rows = [
        {**SIZES, "drafter": drafter, "position": 70 + place, "chi2": stats.chi2.isf(p, 4), "df": 4, "p_value": p}
        for drafter, values in p_values.items()
        for place, p in enumerate(values)
    ]
    return pd.DataFrame(rows).assign(**changes)


def test_oracle_keeps_the_largest_of_the_seeds():
    rows = [
        {"seed": seed, "drafter": "draft", "gamma": 2, "tree": "", "vocabulary": 4, "model": "random", "blocks": 64}
        | {"max_abs_deviation": seed * 1e-16}
        for seed in (1, 2, 3)
    ]
    row = evidence.oracle_table(pd.DataFrame(rows)).iloc[0]
    assert (row["blocks"], row["max_abs_deviation"], row["seeds"]) == (64, 3e-16, 3)


def test_contexts_by_hand():
    table = evidence.contexts_table(contexts({"mtp": [0.9, 0.5], "draft": [0.04, 0.3, 1e-6, 0.7]}), 0.0005)
    assert list(table["drafter"]) == ["draft", "mtp", "all"] and list(table["contexts"]) == [4, 2, 6]
    row = table.iloc[0]
    values = np.array([0.04, 0.3, 1e-6, 0.7])
    assert row["fisher_p"] == pytest.approx(stats.chi2.sf(-2 * np.log(values).sum(), 8))
    assert row["sum_chi2"] == pytest.approx(stats.chi2.isf(values, 4).sum()) and row["sum_df"] == 16
    assert row["sum_p"] == pytest.approx(stats.chi2.sf(row["sum_chi2"], 16))
    assert (row["holm_rejected"], row["bh_rejected"], row["below_05"]) == (1, 1, 0.5)
    assert row["below_05_lo"] == pytest.approx(stats.beta.ppf(0.025, 2, 3))
    assert row["ks_p"] == pytest.approx(stats.kstest(values, "uniform").pvalue)
    assert row["plausible_share"] == 1.0
    assert table.iloc[2]["holm_rejected"] == 1


def test_contexts_with_a_single_cell_are_counted_but_not_tested():
    frame = contexts({"draft": [0.5, 0.5]})
    frame.loc[0, ["chi2", "df", "p_value"]] = 0.0, 0, np.nan
    row = evidence.contexts_table(frame, 0.0005).iloc[0]
    assert (row["contexts"], row["sum_df"], row["below_05"]) == (2, 4, 0)
    assert row["fisher_p"] == pytest.approx(0.5)


def test_the_histogram_holds_every_p_value():
    table = evidence.p_values_table(contexts({"draft": [0.0, 0.04, 0.05, 1.0]}))
    assert len(table) == 2 * 20 and list(table["drafter"].unique()) == ["draft", "all"]
    counts = table.loc[table["drafter"] == "draft", "count"].tolist()
    assert counts[0] == 2 and counts[1] == 1 and counts[-1] == 1 and sum(counts) == 4
    assert (table["expected"] == 0.2).all()


def sequence_rows(test: str, cells: list[tuple]) -> pd.DataFrame:
    keys = {"engine": "cached", "context_rule": "sliding", "drafter": "draft", "gamma": 2, "temperature": 1.0}
    keys |= {"top_k": np.nan, "top_p": np.nan, "min_p": np.nan, "texts": 5000, "tokens": 4, "test": test}
    names = ("statistic", "df", "p_value")
    return pd.DataFrame([keys | {"seed": n} | dict(zip(names, row, strict=True)) for n, row in enumerate(cells)])


def test_sequences_over_seeds_by_hand():
    frame = pd.concat(
        [
            sequence_rows("2-gram", [(10.0, 8, 0.265), (30.0, 10, 0.0009)]),
            sequence_rows("acceptance", [(1.0, np.nan, 0.32), (2.0, np.nan, 0.046)]),
            sequence_rows("accounting", [(0, np.nan, 1.0), (2, np.nan, 0.0)]),
        ]
    )
    table = evidence.sequences_table(frame).set_index("test")
    grams, accepted, counted = (table.loc[name] for name in ("2-gram", "acceptance", "accounting"))
    assert (grams["statistic"], grams["df"], grams["texts"], grams["seeds"]) == (40, 18, 10_000, 2)
    assert grams["p_value"] == pytest.approx(stats.chi2.sf(40, 18)) and grams["least_p"] == 0.0009
    assert accepted["statistic"] == pytest.approx(3 / np.sqrt(2))
    assert accepted["p_value"] == pytest.approx(2 * stats.norm.sf(3 / np.sqrt(2)))
    assert (counted["statistic"], counted["p_value"], counted["holm_p"]) == (2, 0, 0)
    assert grams["holm_p"] == pytest.approx(2 * grams["p_value"])  # second smallest of three
    assert accepted["holm_p"] == pytest.approx(accepted["p_value"])


def test_a_rejection_where_acceptance_is_certain_settles_the_matter():
    table = evidence.sequences_table(sequence_rows("acceptance", [(-1.0, np.nan, 0.0), (0.3, np.nan, 0.76)]))
    assert table.loc[0, "p_value"] == 0


def test_a_seed_without_a_z_is_left_out():
    cells = [(1.0, np.nan, 0.32), (np.nan, np.nan, 1.0), (2.0, np.nan, 0.046)]
    table = evidence.sequences_table(sequence_rows("acceptance", cells))
    assert table.loc[0, "statistic"] == pytest.approx(3 / np.sqrt(2)) and table.loc[0, "seeds"] == 3
    assert np.isnan(evidence.sequences_table(sequence_rows("acceptance", cells[1:2])).loc[0, "p_value"])


def control_rows(rule: str, tests: list[tuple]) -> list[dict]:
    about = {"seed": 1, "rule": rule, "source": "paper", "kind": "rule", "drafter": "draft", "gamma": 1}
    names = ("test", "p_value", "power", "expected", "caught")
    about |= {"temperature": 1.0, "n": 2000, "statistic": 1.0, "df": np.nan}
    return [about | dict(zip(names, test, strict=True)) for test in tests]


def study_of_controls() -> pd.DataFrame:
    rows = control_rows("accept always", [("1-gram", 1e-9, 1.0, True, True), ("acceptance", 0.0, 1.0, True, True)])
    rows += control_rows("bf16 draft", [("1-gram", 0.3, 0.002, False, False), ("acceptance", 0.6, None, False, False)])
    rows += control_rows("missed", [("1-gram", 0.4, 0.96, True, False)])
    return pd.DataFrame(rows + control_rows("correct", [("1-gram", 0.2, 0.001, False, False)]))


def test_controls_by_hand():
    table = evidence.controls_table(study_of_controls())
    assert list(table["rule"]) == ["correct", "accept always", "bf16 draft", "missed"]
    row = table.iloc[1]
    assert (row["caught_by"], row["p_value"], row["power"], row["tests"]) == ("1-gram, acceptance", 0.0, 1.0, 2)
    assert list(table["expected_caught"]) == [False, True, False, True]
    assert list(table["caught"]) == [False, True, False, False]
    assert table.loc[2, "power"] == 0.002 and table["caught_by"].isna().tolist() == [True, False, True, True]


def test_only_an_expected_test_catches_what_is_expected():
    """And where none is expected, any test does."""
    rows = control_rows("leak", [("1-gram", 0.4, 0.96, True, False), ("acceptance", 1e-9, 0.2, False, True)])
    rows += control_rows("bf16 draft", [("1-gram", 1e-5, 0.002, False, True)])
    table = evidence.controls_table(pd.DataFrame(rows)).set_index("rule")
    assert list(table["caught"]) == [False, True] and table.loc["leak", "caught_by"] == "acceptance"


@pytest.mark.parametrize(("least", "caught"), [(0.0004, False), (0.0002, True)])
def test_the_right_rule_is_rejected_only_after_holm(least, caught):
    """Four tests in its two rows: .0004 fell below .001 by chance."""
    first = control_rows("correct", [("1-gram", least, 0.001, False, True), ("acceptance", 0.5, 0.001, False, False)])
    second = control_rows("correct", [("2-gram", 0.3, 0.001, False, False), ("3-gram", 0.8, 0.001, False, False)])
    frame = pd.DataFrame(first + [row | {"kind": "decoder"} for row in second])
    table = evidence.controls_table(frame)
    assert list(table["caught"]) == [caught, False] and table.loc[0, "caught_by"] == "1-gram"


def test_the_summary_counts_broken_rules_only():
    alarms = pd.DataFrame(
        [{"test": "1-gram", "repeats": 200, "n": 9, "level": 0.05, "rejected": 9, "rate": 0.045, "lo": 0.01, "hi": 0.1}]
    )
    frames = {
        "oracle": pd.DataFrame({"blocks": [64, 16], "max_abs_deviation": [1e-16, 3e-16], "seeds": [2, 2]}),
        "contexts": evidence.contexts_table(contexts({"draft": [0.2, 1e-9]}), None),
        "sequences": evidence.sequences_table(sequence_rows("accounting", [(1, np.nan, 0.0)])),
        "controls": evidence.controls_table(study_of_controls()),
    }
    found = evidence.evidence_summary(**frames, false_alarms=evidence.false_alarms_table(alarms))
    assert (found["oracle_max"], found["oracle_blocks"]) == (3e-16, 160)
    assert (found["contexts"], found["contexts_holm_rejected"]) == (2, 1)
    assert (found["sequences_rows"], found["sequences_rejected"]) == (1, 1)
    assert (found["controls_total"], found["controls_expected"], found["controls_caught_of_expected"]) == (3, 2, 1)
    assert found["controls_unseen"] == ["bf16 draft"] and found["false_alarms_inside"] is True
    outside = evidence.false_alarms_table(alarms.assign(lo=0.06))
    assert evidence.evidence_summary(**frames, false_alarms=outside)["false_alarms_inside"] is False


def trainings(differences: list[float]) -> pd.DataFrame:
    rows = [("plain", seed, 1.5) for seed in range(len(differences))]
    rows += [("mtp", seed, 1.5 + one) for seed, one in enumerate(differences)]
    return pd.DataFrame(rows, columns=["model", "seed", "validation_loss"])


def test_the_difference_by_hand():
    values = [0.001, 0.003, 0.002, 0.002]
    row = differences_table(trainings(values), 0.01).iloc[0]
    sd = np.std(values, ddof=1)
    half = stats.t.ppf(0.975, 3) * sd / 2
    assert row["mean"] == pytest.approx(0.002) and row["hi"] == pytest.approx(0.002 + half)
    assert row["tost_hi"] == pytest.approx(0.002 + stats.t.ppf(0.95, 3) * sd / 2)
    assert row["tost_p"] == pytest.approx(stats.t.sf((0.01 - 0.002) / (sd / 2), 3))
    assert row["verdict"] == "equivalent"  # though the interval leaves out 0: the difference is known to be small
    assert row["lo"] > 0 and row["detectable"] == pytest.approx(row["detectable_sd"] * sd)
    assert differences_table(trainings([0.001, 0.1, -0.1]), 0.01).loc[0, "verdict"] == "undecided"
    assert differences_table(trainings([0.101, 0.1, 0.102]), 0.01).loc[0, "verdict"] == "different"


def test_one_seed_decides_nothing():
    found = equivalence_summary(differences_table(trainings([0.001]), 0.01))
    assert (found["verdict"], found["n"], found["margin"]) == ("undecided", 1, 0.01)
    assert found["lo"] is None and found["tost_p"] is None and found["detectable"] is None
    assert verdict(lo=None, hi=None, tost_p=None) == "undecided"


# --- what claims take from them ---


def test_the_share_of_plausible_contexts_is_clustered_by_context():
    """Three positions at two seeds: plausible at both, at one, at none."""
    frame = pd.concat([contexts({"draft": [0.5] * 3, "mtp": [0.5] * 3}, seed=seed) for seed in (1, 2)])
    frame.loc[(frame["position"] == 71) & (frame["seed"] == 2), "null_tv_lo"] = 0.0006
    frame.loc[frame["position"] == 72, "null_tv_hi"] = 0.0004999
    found = MEASURES["plausible_share"](nothing_but(contexts=frame), distance=0.0005)
    assert found.value == pytest.approx(0.5)
    half = stats.t.ppf(0.975, 2) * np.sqrt(3 / 2 * (1 + 0 + 1)) / 6
    assert found.lo == pytest.approx(0.5 - half) and found.interval == "cluster t by context, 95%, n = 3"


@pytest.mark.parametrize(
    ("distance", "value", "end"), [(0.0005, 1.0, 0.025 ** (1 / 3)), (0.01, 0.0, 1 - 0.025 ** (1 / 3))]
)
def test_a_share_of_none_or_all_has_an_exact_interval(distance, value, end):
    frame = pd.concat([contexts({"draft": [0.5] * 3}, seed=seed) for seed in (1, 2)])
    found = MEASURES["plausible_share"](nothing_but(contexts=frame), distance=distance)
    assert found.value == value and pytest.approx(end) in (found.lo, found.hi)
    assert found.interval == "Clopper-Pearson over contexts, 95%, n = 3"


def test_rejections_are_counted_where_they_are_asked_for():
    frames = {"acceptance": pd.DataFrame({"p_value": [0.5, 1e-9]}), "contexts": contexts({"draft": [1e-9, 1e-9, 0.4]})}
    found = nothing_but(**frames, sequences=pd.DataFrame({"p_value": [0.0, 0.5, np.nan]}))
    rejected = MEASURES["rejected"]
    assert [rejected(found, level=0.001, of=of).value for of in ("positions", "contexts", "decoders")] == [1, 2, 1]
    assert "3 contexts by drafter" in rejected(found, level=0.001, of="contexts").interval
    with pytest.raises(UserError, match="must be one of"):
        rejected(found, level=0.001, of="texts")
    assert "count over 2 tests" in rejected(found, level=0.001, of="decoders").interval


def test_nothing_tested_is_nothing_shown():
    """At temperature 0 a symbol is certain: no degree of freedom, no p-value, and acceptance 0 or 1."""
    frame = contexts({"draft": [0.5, 0.5]}, chi2=0.0, df=0, p_value=np.nan, beta=1.0, accepted=5000)
    found = nothing_but(acceptance=frame, contexts=frame, sequences=frame)
    for of in ("positions", "contexts", "decoders"):
        assert MEASURES["rejected"](found, level=0.001, of=of) is None
    assert MEASURES["contexts_p_value"](found) is None
    assert MEASURES["acceptance_rejected"](found, level=0.001) is None
    assert summary.rejected(frame["p_value"]) is None and summary.tested(frame["p_value"]) == 0
    row = evidence.contexts_table(frame, 0.0005).iloc[0]
    assert (row["contexts"], row["tested"]) == (2, 0) and pd.isna(row["holm_rejected"]) and pd.isna(row["sum_p"])
    impossible = frame.assign(chi2=np.inf, p_value=0.0, accepted=4999)
    found = nothing_but(acceptance=impossible, contexts=impossible)
    assert MEASURES["contexts_p_value"](found).value == 0 and MEASURES["rejected"](found, level=0.001).value == 2
    assert MEASURES["acceptance_rejected"](found, level=0.001).value == 4


def test_acceptance_is_held_against_the_overlap():
    p_values = measures_rule.binomial_p_values(*(pd.Series(one) for one in ([40, 1000], [100, 1000], [0.5, 1 + 1e-12])))
    assert p_values[0] == pytest.approx(2 * stats.binom.cdf(40, 100, 0.5)) and p_values[1] == 1
    frame = contexts({"draft": [0.5, 0.5]})
    frame.loc[0, "accepted"] = 4200
    found = MEASURES["acceptance_rejected"](nothing_but(contexts=frame, acceptance=frame.iloc[1:]), level=0.001)
    assert (found.value, found.exact) == (1, True)


def test_the_quantities_that_need_no_sampling():
    blocks = pd.DataFrame({"blocks": [64], "max_abs_deviation": [2e-16], "seeds": [3]})
    assert MEASURES["oracle"](nothing_but(oracle=blocks)).value == 2e-16
    assert (
        MEASURES["tv_bound"](nothing_but(acceptance=pd.DataFrame({"tv_bound": [0.004, np.nan], "draws": 1000}))).value
        == 0.004
    )
    together = MEASURES["contexts_p_value"](nothing_but(contexts=contexts({"draft": [0.3]})))
    assert together.value == pytest.approx(0.3)


def test_neighbours_share_their_difficulty():
    rows = [
        {"seed": seed, "text": text, "position": at, "drafter": "draft", "beta": beta, "kept": 1.0}
        for seed in (1, 2)
        for text in (1, 2)
        for at, beta in enumerate((0.2, 0.3, 0.9, 0.8) if seed == 1 else (0.1, 0.9, 0.1, 0.9))
    ]
    found = MEASURES["difficulty_lag1"](nothing_but(plain_texts=pd.DataFrame(rows)), drafter="draft")
    first = np.corrcoef((0.2, 0.3, 0.9), (0.3, 0.9, 0.8))[0, 1]  # no pair reaches into the next text
    assert found.value == pytest.approx((first - 1) / 2)


def test_spread_and_share_of_eq1():
    rows = [
        {"engine": "recompute", "drafter": "draft", "seed": seed, "gamma": gamma, "alpha": alpha, "tokens": 600}
        for seed in (1, 2)
        for gamma in (1, 2)
        for alpha in (0.7 - 0.01 * seed, 0.7 + 0.01 * seed)
    ]
    found = MEASURES["text_spread"](
        nothing_but(texts=pd.DataFrame(rows)), column="alpha", engine="recompute", drafter="draft"
    )
    factor = stats.studentized_range.ppf(0.95, 2, np.inf)
    assert found.value == pytest.approx(factor * np.mean([0.01, 0.02]) * np.sqrt(2))
    seeds = {"engine": "cached", "drafter": "draft", "gamma": 2, "alpha": [0.5, 0.0], "tokens_per_round": [1.4, 0.8]}
    by_seed = pd.DataFrame(seeds | {"seed": [1, 2]})
    share = MEASURES["eq1_share"](nothing_but(by_seed=by_seed), engine="cached", drafter="draft", gamma=2)
    assert share.value == pytest.approx(0.8)
