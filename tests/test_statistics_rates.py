"""Families of p-values and intervals of rates keep their promises, by simulation (bounds: calibration)."""

import numpy as np
import pytest
from calibration import slack, within
from scipy import stats
from specledger.statistics import families, rates
from statsmodels.stats.multitest import multipletests

NAN = float("nan")


def test_holm_by_hand_leaves_missing_out():
    adjusted = families.holm([0.01, np.nan, 0.04, 0.03])
    assert adjusted[[0, 2, 3]] == pytest.approx([0.03, 0.06, 0.06])
    assert np.isnan(adjusted[1])


def test_holm_is_statsmodels():
    p_values = np.random.default_rng(6).uniform(size=300) ** 4
    expected = multipletests(p_values, method="holm")[1]
    assert families.holm(p_values) == pytest.approx(expected)
    assert families.holm(p_values.reshape(3, 100)).ravel() == pytest.approx(expected)


def test_benjamini_hochberg_by_hand_leaves_missing_out():
    adjusted = families.benjamini_hochberg([0.01, np.nan, 0.04, 0.03])
    assert adjusted[[0, 2, 3]] == pytest.approx([0.03, 0.04, 0.04])
    assert np.isnan(adjusted[1])


def test_nothing_known_says_nothing():
    assert np.isnan(families.fisher([NAN])) and np.isnan(families.uniformity([]))
    assert np.isnan(families.holm([NAN])).all() and np.isnan(families.benjamini_hochberg([NAN])).all()
    assert families.summed_chisquare([], [])[:2] == (0.0, 0)
    with pytest.raises(ValueError, match=r"\[0, 1\]"):
        families.fisher([1.5])


def test_families_hold_their_size():
    """2,000 families of 50 true hypotheses: each method calls .05 of them (Holm 1 - (1 - .05/50)^50 = .049)."""
    p_values = np.random.default_rng(1).uniform(size=(2000, 50))
    assert within(np.mean([families.fisher(row) < 0.05 for row in p_values]), 0.05, 2000)
    assert within(np.mean([families.uniformity(row) < 0.05 for row in p_values]), 0.05, 2000)
    assert within(np.mean([families.holm(row).min() < 0.05 for row in p_values]), 0.049, 2000)
    assert within(np.mean([families.benjamini_hochberg(row).min() < 0.05 for row in p_values]), 0.05, 2000)


def test_benjamini_hochberg_bounds_false_discoveries():
    """20 of 100 hypotheses false: the mean share of false among the rejected is .05 * 80 / 100 = .04."""
    rng = np.random.default_rng(2)
    shares = []
    for _ in range(2000):
        p_values = stats.norm.sf(np.concatenate([rng.normal(3, 1, 20), rng.normal(0, 1, 80)]))
        found = families.benjamini_hochberg(p_values) < 0.05
        shares.append(found[20:].sum() / max(found.sum(), 1))
    assert abs(np.mean(shares) - 0.04) < 4 * np.std(shares) / np.sqrt(2000)


def test_each_family_sees_what_the_other_does_not():
    """At .001, in 300 families of 200: a shift of .3 sd everywhere, and one p-value of 1e-6 among true ones."""
    rng = np.random.default_rng(3)
    everywhere = stats.norm.sf(rng.normal(0.3, 1, size=(300, 200)))
    few = rng.uniform(size=(300, 200))
    few[:, 7] = 1e-6
    for p_values, combined, adjusted in ((everywhere, True, False), (few, False, True)):
        fisher = np.mean([families.fisher(row) < 0.001 for row in p_values])
        holm = np.mean([families.holm(row).min() < 0.001 for row in p_values])
        assert (fisher > 0.7) == combined and (fisher < 0.1) != combined
        assert (holm > 0.9) == adjusted and (holm < 0.1) != adjusted


def test_an_impossible_symbol_settles_the_family():
    assert families.fisher([0.0, 0.9]) == 0.0
    assert families.summed_chisquare([np.inf, 3.0], [4, 5]) == (np.inf, 9, 0.0)


def test_summed_chisquare_adds_up():
    rng = np.random.default_rng(4)
    dfs = np.array([1, 5, 20, 0, NAN])
    draws = np.column_stack([rng.chisquare(df, 4000) for df in (1, 5, 20)])
    found = [families.summed_chisquare([*row, 0.0, NAN], dfs) for row in draws]
    assert found[0].df == 26 and found[0].chi2 == pytest.approx(draws[0].sum())
    assert within(np.mean([one.p_value < 0.05 for one in found]), 0.05, 4000)
    with pytest.raises(ValueError, match="pair up"):
        families.summed_chisquare([1.0], [1, 2])


@pytest.mark.parametrize(("k", "n"), [(0, 10), (10, 10), (3, 10), (150_000, 200_000), (1, 1)])
@pytest.mark.parametrize("level", [0.95, 0.999])
def test_intervals_of_a_rate_are_scipys(k, n, level):
    for function, name in ((rates.wilson, "wilson"), (rates.clopper_pearson, "exact")):
        expected = stats.binomtest(k, n).proportion_ci(level, method=name)
        found = function(k, n, level)
        assert (found.lo, found.hi) == (pytest.approx(expected.low, abs=1e-12), pytest.approx(expected.high))
        assert found.lo <= found.mean <= found.hi and (found.n, found.level) == (n, level)


@pytest.mark.parametrize(("k", "n", "message"), [(0, 0, "n must"), (3, 2, "k must"), (-1, 2, "k must")])
def test_a_rate_needs_trials(k, n, message):
    for function in (rates.wilson, rates.clopper_pearson):
        with pytest.raises(ValueError, match=message):
            function(k, n)


def coverage(function, n, rate):
    """Exact: the binomial's mass of those k whose interval holds `rate`."""
    inside = [k for k in range(n + 1) if function(k, n).lo <= rate <= function(k, n).hi]
    return stats.binom.pmf(inside, n, rate).sum()


def test_coverage_of_independent_trials_is_exact():
    """No simulation: summed over every outcome of 60 trials. Wilson's is right on the average of rates."""
    grid = np.linspace(0.1, 0.9, 17)
    assert min(coverage(rates.clopper_pearson, 60, rate) for rate in grid) >= 0.95
    assert np.mean([coverage(rates.wilson, 60, rate) for rate in grid]) == pytest.approx(0.95, abs=0.01)


def persistent_texts(rng, texts=40, guesses=100):
    """Accepted and examined by text: each text has an ease of its own, around .7."""
    examined = rng.integers(guesses // 2, guesses, size=texts)
    return rng.binomial(examined, rng.beta(7, 3, size=texts)), examined


def test_cluster_t_covers_where_wilson_does_not():
    """Nominal .95 within .02 (linearisation at 40 texts) and chance; Wilson, blind to texts, covers < .6."""
    rng = np.random.default_rng(5)
    hits = np.zeros(2)
    for _ in range(1000):
        accepted, examined = persistent_texts(rng)
        found = rates.cluster_t(accepted, examined), rates.wilson(int(accepted.sum()), int(examined.sum()))
        hits += [one.lo <= 0.7 <= one.hi for one in found]
    clustered, naive = hits / 1000
    assert abs(clustered - 0.95) < 0.02 + slack(0.95, 1000)
    assert naive < 0.6


def test_cluster_t_of_equal_texts_is_the_t_interval():
    values = np.array([2.0, 3.0, 5.0])
    found = rates.cluster_t(values * 10, [10, 10, 10])
    half = stats.t.ppf(0.975, 2) * stats.sem(values)
    assert (found.mean, found.hi) == (pytest.approx(10 / 3), pytest.approx(10 / 3 + half))
    assert (found.n, found.method) == (3, "cluster t by text")


def test_cluster_t_leaves_out_what_was_not_examined():
    assert rates.cluster_t([1, 0, 2], [2, 0, 3]) == rates.cluster_t([1, 2], [2, 3])
    alone = rates.cluster_t([1, 0], [2, 0])
    assert (alone.mean, alone.lo, alone.hi, alone.n) == (0.5, None, None, 1)


@pytest.mark.parametrize(
    ("tops", "bottoms", "message"), [([1], [0], "all be 0"), ([1], [1, 2], "pair up"), ([1], [-1], "negative")]
)
def test_cluster_t_refuses(tops, bottoms, message):
    with pytest.raises(ValueError, match=message):
        rates.cluster_t(tops, bottoms)
