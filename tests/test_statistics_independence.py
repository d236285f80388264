"""Tests of independence and of equivalence hold their size and see what they are for, by simulation."""

import itertools

import numpy as np
import pytest
from calibration import slack, within
from scipy import stats
from specledger.statistics import differences, independence
from statsmodels.stats.weightstats import ttost_paired

GAMMA = 4
TRIALS = 1500


def rounds(rng, count, alpha):
    """accept_len of `count` rounds whose guesses are accepted with `alpha` (a number, or one a round)."""
    accepted = rng.random((count, GAMMA)) < np.reshape(alpha, (-1, 1))
    return np.cumprod(accepted, axis=1).sum(axis=1)


def by_position(accept_len):
    reached = np.array([(accept_len >= j).sum() for j in range(GAMMA + 1)])
    return reached[1:], reached[:-1]


def histogram(accept_len):
    return np.bincount(accept_len, minlength=GAMMA + 1)


def test_independent_guesses_pass_at_the_level():
    """1,500 times 400 rounds of independent guesses at alpha .7: p < .05 in .05 of them."""
    rng = np.random.default_rng(1)
    lengths = [rounds(rng, 400, 0.7) for _ in range(TRIALS)]
    homogeneity = [independence.position_homogeneity(*by_position(one)) for one in lengths]
    geometric = [independence.geometric_fit(histogram(one)) for one in lengths]
    assert within(np.mean(np.array(homogeneity) < 0.05), 0.05, TRIALS)
    assert within(np.mean([one.p_value < 0.05 for one in geometric]), 0.05, TRIALS)
    assert {one.df for one in geometric} == {GAMMA - 1}


def test_persistent_difficulty_is_seen():
    """Each round has an ease of its own: survivors are the easy ones, so later positions do better."""
    rng = np.random.default_rng(2)
    lengths = rounds(rng, 4000, rng.beta(3.5, 1.5, size=4000))
    accepted, examined = by_position(lengths)
    assert (np.diff(accepted / examined) > 0).all()
    assert independence.position_homogeneity(accepted, examined) < 1e-6
    assert independence.geometric_fit(histogram(lengths)).p_value < 1e-6


def test_position_homogeneity_is_scipys():
    expected = stats.chi2_contingency([[70, 50, 30], [30, 20, 20]]).pvalue
    assert independence.position_homogeneity([70, 50, 30, 0], [100, 70, 50, 0]) == pytest.approx(expected)


@pytest.mark.parametrize(("accepted", "examined"), [([5], [9]), ([5, 3], [5, 3]), ([0, 0], [5, 0])])
def test_position_homogeneity_says_nothing(accepted, examined):
    assert np.isnan(independence.position_homogeneity(accepted, examined))


@pytest.mark.parametrize(("accepted", "examined"), [([5, 6], [9]), ([5, 6], [9, 5]), ([], [])])
def test_position_homogeneity_refuses(accepted, examined):
    with pytest.raises(ValueError, match="accepted"):
        independence.position_homogeneity(accepted, examined)


def test_geometric_fit_by_hand():
    # alpha = (30 + 2 * 30) / (40 + 2 * 60) = .5625 over examined; the law is .4375, .2461, .3164.
    found = independence.geometric_fit([40, 30, 30])
    expected = 100 * np.array([0.4375, 0.24609375, 0.31640625])
    assert found.chi2 == pytest.approx(((np.array([40, 30, 30]) - expected) ** 2 / expected).sum())
    assert found.df == 1


@pytest.mark.parametrize("counts", [[3, 4], [0, 0, 50], [50, 0, 0]])
def test_geometric_fit_says_nothing(counts):
    assert np.isnan(independence.geometric_fit(counts).p_value)


@pytest.mark.parametrize("counts", [[5], [0, 0, 0], [1, -1, 5]])
def test_geometric_fit_refuses(counts):
    with pytest.raises(ValueError, match="histogram must"):
        independence.geometric_fit(counts)


def test_lag1_has_the_moments_of_all_orders():
    """Exact: mean and variance over the 120 orders of five values, within one text."""
    values = np.array([0, 1, 3, 3, 7.0])
    found = [independence.lag1([order]) for order in itertools.permutations(values)]
    r = np.array([one.r for one in found])
    z = stats.norm.isf(np.array([one.p_value for one in found]) / 2) * np.sign(r)
    assert r.mean() == pytest.approx(0, abs=1e-12)
    assert (z**2).mean() == pytest.approx(1)


def test_lag1_holds_its_size_over_unlike_texts():
    """Texts of unlike ease and length, independent within: a pooled mean would see dependence here."""
    rng = np.random.default_rng(3)
    p_values = []
    for _ in range(TRIALS):
        sizes, ease = rng.integers(5, 60, size=20), rng.beta(3, 2, size=20)
        p_values.append(independence.lag1([rounds(rng, n, a) for n, a in zip(sizes, ease, strict=True)]).p_value)
    assert within(np.mean(np.array(p_values) < 0.05), 0.05, TRIALS)


def test_lag1_finds_an_autoregression():
    """r of 50 texts of 200 steps: .3 within four standard errors, 1 / sqrt(10,000) each, and the bias at 200."""
    rng = np.random.default_rng(4)
    noise = rng.normal(size=(50, 250))
    series = np.zeros_like(noise)
    for t in range(1, 250):
        series[:, t] = 0.3 * series[:, t - 1] + noise[:, t]
    found = independence.lag1(list(series[:, 50:]))
    assert found.r == pytest.approx(0.3, abs=0.05) and found.p_value < 1e-6


def test_lag1_says_nothing_where_nothing_varies():
    assert all(np.isnan(independence.lag1([[1], [], [2, 2, 2]])))
    assert all(np.isnan(independence.lag1([[1, 2]])))  # both orders of two values give the same product


def test_equivalence_holds_its_size_at_the_margin():
    """A true difference of just the margin is called equivalent in .05 of 4,000 studies of 8 seeds."""
    samples = np.random.default_rng(5).normal(0.01, 0.004, size=(4000, 8))
    found = [differences.equivalence(row, np.zeros(8), margin=0.01) for row in samples]
    assert within(np.mean([one.p_value < 0.05 for one in found]), 0.05, 4000)


def test_equivalence_is_the_interval_inside_the_margin():
    samples = np.random.default_rng(6).normal(0.004, 0.006, size=(500, 5))
    found = [differences.equivalence(row, np.zeros(5), margin=0.01) for row in samples]
    for one in found:
        assert one.level == pytest.approx(0.9)
        assert (one.p_value < 0.05) == (max(-one.lo, one.hi) < 0.01)
    assert 0.05 < np.mean([one.p_value < 0.05 for one in found]) < 0.95


def test_equivalence_is_statsmodels():
    first, second = np.array([1.51, 1.53, 1.50, 1.54]), np.array([1.52, 1.55, 1.50, 1.53])
    found = differences.equivalence(first, second, margin=0.02)
    assert found.p_value == pytest.approx(ttost_paired(first, second, -0.02, 0.02)[0])
    assert (found.mean, found.n, found.margin) == (pytest.approx(-0.005), 4, 0.02)


def test_equivalence_of_one_pair_or_of_no_spread():
    alone = differences.equivalence([1.0], [1.0], margin=0.1)
    assert (alone.lo, alone.hi, alone.p_value, alone.n) == (None, None, None, 1)
    assert differences.equivalence([1.0, 1.0], [1.0, 1.0], margin=0.1).p_value == 0.0
    assert differences.equivalence([2.0, 2.0], [1.0, 1.0], margin=0.1).p_value == 1.0


@pytest.mark.parametrize(("margin", "level"), [(0.0, 0.05), (float("nan"), 0.05), (0.1, 0.5)])
def test_equivalence_refuses(margin, level):
    with pytest.raises(ValueError, match="must"):
        differences.equivalence([1.0, 2.0], [1.0, 3.0], margin=margin, level=level)


def test_a_study_too_small_does_not_claim_equivalence():
    """3,000 studies of 3 noisy seeds, the truth at the margin: fewer than .05 are called equivalent."""
    samples = np.random.default_rng(7).normal(0.01, 0.02, size=(3000, 3))
    rate = np.mean([differences.equivalence(row, np.zeros(3), margin=0.01).p_value < 0.05 for row in samples])
    assert rate < 0.05 + slack(0.05, 3000)
