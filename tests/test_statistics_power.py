"""What the tests are said to see, they see, by simulation with fixed seeds (bounds: calibration.slack).

The noncentral chi-square is an approximation of the counts' law; where a bound is wider than chance,
the test says by how much.
"""

import numpy as np
import pytest
from calibration import FLAT, PEAKED, slack, within
from scipy import stats
from specledger.statistics import power
from specledger.statistics.goodness import pooled_chisquare, total_variation
from statsmodels.stats.power import GofChisquarePower, TTestPower

TRIALS = 1500


def rejected(law, probs, n, *, level, seed):
    samples = np.random.default_rng(seed).multinomial(n, law, size=TRIALS)
    return np.mean([pooled_chisquare(counts, probs).p_value < level for counts in samples])


@pytest.mark.parametrize("df", [1, 8, 64])
def test_detectable_noncentrality_is_statsmodels(df):
    effect = GofChisquarePower().solve_power(nobs=1000, alpha=0.001, power=0.9, n_bins=df + 1)
    assert power.detectable_noncentrality(df) == pytest.approx(1000 * effect**2, rel=1e-5)


@pytest.mark.parametrize(("df", "level", "wanted"), [(0, 0.001, 0.9), (3, 0.5, 0.4), (3, 0.0, 0.9)])
def test_detectable_noncentrality_refuses(df, level, wanted):
    with pytest.raises(ValueError, match="must"):
        power.detectable_noncentrality(df, level=level, power=wanted)


@pytest.mark.parametrize(("probs", "n"), [(FLAT, 20_000), (PEAKED, 200_000)])
def test_a_leak_of_the_detectable_share_is_seen_nine_times_in_ten(probs, n):
    """Within .02 of .9 and chance: the approximation's own error at these n."""
    draft = np.random.default_rng(1).dirichlet(np.full(65, 0.5))
    share = power.detectable_leak(probs, draft, n)
    rate = rejected((1 - share) * probs + share * draft, probs, n, level=0.001, seed=2)
    assert abs(rate - 0.9) < 0.02 + slack(0.9, TRIALS)


def test_a_leak_of_impossible_symbols_is_seen_by_them():
    """Mostly by (1 - share * .2)^n: a fifth of the draft lies where the target has nothing."""
    probs, draft = np.array([0.5, 0.5, 0.0]), np.array([0.4, 0.4, 0.2])
    share = power.detectable_leak(probs, draft, 2000)
    assert (1 - 0.2 * share) ** 2000 == pytest.approx(0.1, rel=0.02)
    assert within(rejected((1 - share) * probs + share * draft, probs, 2000, level=0.001, seed=3), 0.9, TRIALS)


def test_what_even_a_whole_leak_does_not_show():
    assert power.detectable_leak(PEAKED, PEAKED, 200_000) is None
    assert power.detectable_leak([0.5, 0.5], [0.51, 0.49], 100) is None


def test_chisquare_power_is_the_level_where_nothing_is_wrong():
    assert power.chisquare_power(PEAKED, PEAKED, 5000, level=0.05) == pytest.approx(0.05)


@pytest.mark.parametrize("share", [0.01, 0.02, 0.04])
def test_chisquare_power_is_what_happens(share):
    """Within .06 and chance at n = 5,000, where a rare symbol of the target may be a common one of the law."""
    law = (1 - share) * PEAKED + share * np.random.default_rng(4).dirichlet(np.full(65, 0.5))
    said = power.chisquare_power(law, PEAKED, 5000, level=0.05)
    seen = rejected(law, PEAKED, 5000, level=0.05, seed=5)
    assert 0.06 < said < 0.999
    assert abs(seen - said) < 0.06 + slack(said, TRIALS)


def test_chisquare_power_counts_impossible_symbols():
    law, probs = [0.4995, 0.4995, 0.001], [0.5, 0.5, 0.0]
    quiet = 0.999**1000
    assert power.chisquare_power(law, probs, 1000, level=0.05) == pytest.approx(1 - quiet * 0.95)
    assert power.chisquare_power([0.0, 1.0], [1.0, 0.0], 50) == 1.0
    assert power.chisquare_power([[0.5, 0.0], [0.0, 0.5]], [[0.25] * 2] * 2, 1000) == pytest.approx(1.0)


@pytest.mark.parametrize(("n", "probs"), [(0, [0.5, 0.5]), (10, [0.2, 0.3, 0.5])])
def test_chisquare_power_refuses(n, probs):
    with pytest.raises(ValueError, match="must"):
        power.chisquare_power([0.5, 0.5], probs, n)


@pytest.mark.parametrize("tilt", [0.0, 0.01, 0.03])
def test_tv_bound_covers_the_true_distance(tilt):
    """A tilt of half the symbols by 1 +- tilt makes Cauchy-Schwarz an equality: coverage .95, else more.

    At tilt 0 the truth is 0, and the floor keeps the bound above it always.
    """
    n, trials = 50_000, 600
    law = FLAT[:64] / FLAT[:64].sum() * np.tile([1 + tilt, 1 - tilt], 32)
    probs = np.full(64, 1 / 64)
    samples = np.random.default_rng(6).multinomial(n, law, size=trials)
    bounds = np.array([power.tv_bound(*pooled_chisquare(counts, probs)[:2], n) for counts in samples])
    truth = total_variation(law, probs)
    assert truth == pytest.approx(tilt / 2)
    covered = np.mean(bounds >= truth)
    assert covered > 0.95 - slack(0.95, trials)
    if truth == 0:
        assert bounds.min() > 0.005 and covered == 1
    if tilt == 0.03:  # far from the floor: exact
        assert within(covered, 0.95, trials)


def test_tv_bound_at_the_ends():
    assert power.tv_bound(20.0, 64, 200_000) == power.tv_bound(float(stats.chi2.median(64)), 64, 200_000)
    assert power.tv_bound(float("inf"), 64, 1000) == power.tv_bound(1e6, 64, 1000) == 1.0
    assert np.isnan(power.tv_bound(0.0, 0, 1000))
    lam = 4 * 200_000 * power.tv_bound(80.0, 64, 200_000) ** 2
    assert stats.ncx2.cdf(80.0, 64, lam) == pytest.approx(0.05)


def test_smallest_difference_is_statsmodels():
    found = [power.smallest_difference(n) for n in (3, 5, 8, 10)]
    assert np.round(found, 1).tolist() == [3.3, 1.7, 1.2, 1.0]
    expected = [TTestPower().solve_power(nobs=n, alpha=0.05, power=0.8) for n in (3, 5, 8, 10)]
    assert found == pytest.approx(expected, rel=1e-4)
    assert power.smallest_difference(1) is None


@pytest.mark.parametrize("n", [2, 3, 8])
def test_smallest_difference_is_seen_four_times_in_five(n):
    effect = power.smallest_difference(n)
    samples = np.random.default_rng(n).normal(effect, 1, size=(4000, n))
    assert within(np.mean(stats.ttest_1samp(samples, 0, axis=1).pvalue < 0.05), 0.8, 4000)


@pytest.mark.parametrize("rate", [0.7, 0.705, 0.72])
def test_binomial_power_is_what_happens(rate):
    counts = np.random.default_rng(7).binomial(20_000, rate, size=100_000)
    z = (counts - 20_000 * 0.7) / np.sqrt(20_000 * 0.7 * 0.3)
    seen = np.mean(2 * stats.norm.sf(np.abs(z)) < 0.001)
    said = power.binomial_power(20_000, 0.7, rate)
    assert abs(seen - said) < slack(said, 100_000) + 1e-9


def test_binomial_power_of_a_certainty():
    assert power.binomial_power(10, 1.0, 0.9) == pytest.approx(1 - 0.9**10)
    assert power.binomial_power(10, 0.0, 0.1) == pytest.approx(1 - 0.9**10)
    with pytest.raises(ValueError, match="null and rate"):
        power.binomial_power(10, 1.1, 0.9)
