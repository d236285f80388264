"""Intervals and tests of fit keep the coverage and the size that they promise, by simulation.

Seeds are fixed. Each bound below is about four binomial standard errors around the nominal value, so
that a correct implementation would fail under other seeds about once in 16,000 times.
"""

import numpy as np
import pytest
from scipy import stats
from specledger.statistics import goodness, intervals

FLAT = np.full(65, 1 / 65)
PEAKED = np.array([0.6, *np.full(64, 0.4 / 64)])


def within(rate: float, nominal: float, trials: int) -> bool:
    return abs(rate - nominal) < 4 * np.sqrt(nominal * (1 - nominal) / trials)


@pytest.mark.parametrize("n", [2, 3, 8])
def test_t_interval_covers(n):
    rng = np.random.default_rng(n)
    found = [intervals.t_interval(row) for row in rng.normal(1.5, 0.1, size=(3000, n))]
    assert within(np.mean([one.lo <= 1.5 <= one.hi for one in found]), 0.95, 3000)


def test_t_interval_is_scipys():
    values = [1.0, 2.0, 4.0]
    found = intervals.t_interval(values)
    lo, hi = stats.t.interval(0.95, 2, loc=np.mean(values), scale=stats.sem(values))
    assert (found.lo, found.hi, found.n) == (pytest.approx(lo), pytest.approx(hi), 3)


def test_one_seed_has_no_interval():
    for found in (
        intervals.t_interval([1.5]),
        intervals.exp_t_interval([0.0]),
        intervals.prediction_interval([[1.5, 2.5]], method=""),
    ):
        assert found.lo is None and found.hi is None and found.n == 1


@pytest.mark.parametrize("values", [[], [1.0, float("nan")]])
def test_t_interval_refuses_what_has_no_mean(values):
    with pytest.raises(ValueError, match="values must"):
        intervals.t_interval(values)


def test_paired_interval_is_scipys():
    first, second = [1.51, 1.53, 1.50, 1.54], [1.52, 1.55, 1.50, 1.53]
    expected = stats.ttest_rel(first, second).confidence_interval(0.95)
    found = intervals.paired_t_interval(first, second)
    assert (found.lo, found.hi) == (pytest.approx(expected.low), pytest.approx(expected.high))


def test_log_ratio_takes_the_median_block_of_each_seed():
    # Seed 1: ratios 2, 2 and an outlier; seed 2: 8. Geometric mean of 2 and 8 is 4.
    found = intervals.log_ratio_interval([([2, 4, 900], [1, 2, 1]), ([8, 8], [1, 1])])
    assert found.mean == pytest.approx(4.0)
    half = stats.t.ppf(0.975, 1) * np.log(8 / 2) / 2  # sd of two values / sqrt(2) = half their distance
    assert found.hi == pytest.approx(4 * np.exp(half))


def test_prediction_interval_covers_a_further_observation():
    rng = np.random.default_rng(5)
    hits = 0
    for _ in range(2000):
        seeds = rng.normal(0, 0.5, size=9)
        texts = seeds[:, None] + rng.normal(0, 1.0, size=(9, 5))
        found = intervals.prediction_interval(list(texts[:8]), method="t prediction")
        hits += found.lo <= texts[8, 0] <= found.hi
    assert hits / 2000 > 0.94  # df of the seeds alone: it may cover more, never less


def test_total_variation_by_hand():
    assert goodness.total_variation([0.5, 0.5, 0.0], [0.25, 0.25, 0.5]) == pytest.approx(0.5)
    with pytest.raises(ValueError, match="sum to 1"):
        goodness.total_variation([0.5, 0.1], [0.5, 0.5])


@pytest.mark.parametrize("probs", [FLAT, PEAKED])
def test_expected_tv_agrees_with_monte_carlo(probs):
    mean, q999 = goodness.null_total_variation(probs, 200_000, np.random.default_rng(1), resamples=4000)
    assert mean == pytest.approx(goodness.expected_total_variation(probs, 200_000), rel=0.01)
    assert mean < q999 < 0.5 * np.sqrt(64 / 200_000) * 2


def test_null_tv_quantile_holds_its_level():
    rng = np.random.default_rng(2)
    _, q999 = goodness.null_total_variation(PEAKED, 5000, rng)
    fresh = rng.multinomial(5000, PEAKED, size=20_000) / 5000
    exceed = np.mean(0.5 * np.abs(fresh - PEAKED).sum(axis=1) > q999)
    assert exceed < 0.001 + 4 * np.sqrt(0.001 / 20_000 + 0.001 / 10_000)


def test_pools_reach_the_minimum():
    expected = np.array([8.0, 2.0, 2.0, 3.0, 2.0, 4.0])
    pools = goodness.pool_cells(expected)
    assert pools.tolist() == [2, 0, 0, 1, 0, 1]
    assert np.bincount(pools, expected).tolist() == [6, 7, 8]


def test_pools_fold_a_short_rest_back():
    assert goodness.pool_cells([1.0, 1.0, 1.0]).tolist() == [0, 0, 0]


def test_pooled_chisquare_holds_its_size():
    rng = np.random.default_rng(3)
    probs = rng.dirichlet(np.full(65, 0.2))
    draws = rng.multinomial(2000, probs, size=3000)
    p_values = np.array([goodness.pooled_chisquare(counts, probs).p_value for counts in draws])
    assert within(np.mean(p_values < 0.05), 0.05, 3000)


def test_pooled_chisquare_sees_a_small_bias():
    rng = np.random.default_rng(4)
    biased = 0.98 * PEAKED + 0.02 * FLAT
    assert goodness.pooled_chisquare(rng.multinomial(200_000, biased), PEAKED).p_value < 1e-6


def test_an_impossible_symbol_is_not_pooled_away():
    assert goodness.pooled_chisquare([50, 49, 1], [0.5, 0.5, 0.0]).p_value == 0.0


def test_one_pool_tests_nothing():
    _, df, p_value = goodness.pooled_chisquare([100, 0], [1.0, 0.0])
    assert df == 0 and np.isnan(p_value)


def test_holm_by_hand_leaves_missing_out():
    adjusted = goodness.holm([0.01, np.nan, 0.04, 0.03])
    assert adjusted[[0, 2, 3]] == pytest.approx([0.03, 0.06, 0.06])
    assert np.isnan(adjusted[1])
