"""Intervals and tests of fit keep the coverage and the size that they promise, by simulation.

Seeds are fixed. Each bound below is about four binomial standard errors around the nominal value, so
that a correct implementation would fail under other seeds about once in 16,000 times.
"""

import numpy as np
import pytest
from calibration import FLAT, PEAKED, within
from scipy import stats
from specledger.statistics import goodness, intervals


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
    # 3 + 3 and the 9 are pools, and the last 4 are too few for a third: they join the 6.
    assert goodness.pool_cells([3.0, 3.0, 4.0, 9.0]).tolist() == [0, 0, 0, 1]
    assert goodness.pool_cells([900.0, 1.0, 7.0]).tolist() == [1, 0, 0]


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


def loop_of_pools(expected, minimum=5.0):
    """What pool_cells says, cell by cell."""
    groups, sums = [[]], [0.0]
    for cell in np.argsort(expected, kind="stable"):
        if groups[-1] and (sums[-1] >= minimum or expected[cell] >= minimum):
            groups.append([])
            sums.append(0.0)
        groups[-1].append(cell)
        sums[-1] += expected[cell]
    rest = next((place for place, total in enumerate(sums) if total < minimum), None)
    if rest is not None and len(groups) > 1:
        short, _ = groups.pop(rest), sums.pop(rest)
        groups[int(np.argmin(sums))] += short
    pools = np.zeros(len(expected), dtype=int)
    for place, cells in enumerate(groups):
        pools[cells] = place
    return pools


def test_pools_are_those_of_the_plain_loop():
    rng = np.random.default_rng(6)
    for trial in range(2000):
        expected = rng.exponential(rng.choice([0.1, 1, 5, 30]), size=rng.integers(1, 40))
        expected = np.round(expected) if trial % 3 == 0 else expected
        assert goodness.pool_cells(expected).tolist() == loop_of_pools(expected).tolist()


def test_a_joint_law_is_tested_as_it_lies():
    probs = np.outer([0.2, 0.3, 0.5], [0.6, 0.4])
    counts = np.random.default_rng(7).multinomial(300, probs.ravel())
    assert goodness.pooled_chisquare(counts.reshape(3, 2), probs) == goodness.pooled_chisquare(counts, probs.ravel())


def test_monte_carlo_fit_holds_its_size():
    """1,500 samples of the law itself; with 199 resamples p <= .05 has probability .05 exactly."""
    rng = np.random.default_rng(8)
    probs = rng.dirichlet(np.full(65, 0.2))
    fits = [
        goodness.monte_carlo_fit(counts, probs, rng, resamples=199)
        for counts in rng.multinomial(2000, probs, size=1500)
    ]
    assert within(np.mean([fit.chi2_p_value <= 0.05 for fit in fits]), 0.05, 1500)
    assert within(np.mean([fit.tv_p_value <= 0.05 for fit in fits]), 0.05, 1500)


def test_monte_carlo_fit_is_scipys():
    n, probs = 5000, np.array([8, 4, 2, 1, 1]) / 16  # sums to 1 exactly: the sampler hears the last bit
    counts = np.random.default_rng(9).multinomial(n, probs)

    def chi2(sample, axis):
        return ((sample - n * probs) ** 2 / (n * probs)).sum(axis=axis)

    def tv(sample, axis):
        return np.abs(sample / n - probs).sum(axis=axis) / 2

    found = goodness.monte_carlo_fit(counts, probs, np.random.default_rng(10), resamples=999)
    for statistic, value, p_value in ((chi2, found.chi2, found.chi2_p_value), (tv, found.tv, found.tv_p_value)):
        rng = np.random.default_rng(10)
        expected = stats.monte_carlo_test(
            counts,
            lambda size, rng=rng: rng.multinomial(n, probs, size=size[0]),
            statistic,
            vectorized=True,
            n_resamples=999,
            alternative="greater",
        )
        assert value == pytest.approx(expected.statistic)
        assert p_value == expected.pvalue


def test_monte_carlo_fit_tells_tv_under_the_null():
    counts = np.random.default_rng(11).multinomial(200_000, PEAKED)
    found = goodness.monte_carlo_fit(counts, PEAKED, np.random.default_rng(12))
    mean, q999 = goodness.null_total_variation(PEAKED, 200_000, np.random.default_rng(13))
    assert found.tv == pytest.approx(goodness.total_variation(counts / 200_000, PEAKED))
    assert found.tv_expected == pytest.approx(mean, rel=0.01)
    assert found.tv_q999 == pytest.approx(q999, rel=0.05)


def test_monte_carlo_fit_sees_a_small_bias():
    rng = np.random.default_rng(14)
    found = goodness.monte_carlo_fit(rng.multinomial(200_000, 0.98 * PEAKED + 0.02 * FLAT), PEAKED, rng, resamples=999)
    assert found.chi2_p_value == found.tv_p_value == 1 / 1000


def test_an_impossible_symbol_settles_the_monte_carlo_test():
    found = goodness.monte_carlo_fit([50, 49, 1], [0.5, 0.5, 0.0], np.random.default_rng(15), resamples=99)
    assert (found.chi2, found.chi2_p_value) == (float("inf"), 0.0)
    assert found.tv == pytest.approx(0.01) and found.tv_p_value > 0.1


@pytest.mark.parametrize(("counts", "message"), [([1, 2, 3], "same shape"), ([0, 0], "draws must be at least 1")])
def test_monte_carlo_fit_refuses(counts, message):
    with pytest.raises(ValueError, match=message):
        goodness.monte_carlo_fit(counts, [0.5, 0.5], np.random.default_rng(0))
