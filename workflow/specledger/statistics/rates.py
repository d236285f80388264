"""Intervals of a rate: of independent trials, exact, and of trials that cluster by text."""

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from specledger.statistics.intervals import LEVEL, Interval, finite


def _checked(k: int, n: int) -> None:
    if n < 1:
        raise ValueError(f"n must be at least 1, got {n}")
    if not 0 <= k <= n:
        raise ValueError(f"k must lie in 0..{n}, got {k}")


def wilson(k: int, n: int, level: float = LEVEL) -> Interval:
    """Rate k / n of n independent trials, with Wilson's score interval.

    Right for repeated draws at one position; acceptances of a text cluster and want `cluster_t`.
    Source: Wilson 1927; as scipy.stats.binomtest(...).proportion_ci("wilson").
    """
    _checked(k, n)
    z = float(stats.norm.ppf((1 + level) / 2))
    rate = k / n
    centre = (rate + z * z / (2 * n)) / (1 + z * z / n)
    half = z * np.sqrt(rate * (1 - rate) / n + z * z / (4 * n * n)) / (1 + z * z / n)
    # At k = 0 and k = n one end is the rate itself, which rounding must not miss.
    lo, hi = min(float(max(centre - half, 0)), rate), max(float(min(centre + half, 1)), rate)
    return Interval(mean=rate, lo=lo, hi=hi, n=n, level=level, method="Wilson")


def clopper_pearson(k: int, n: int, level: float = LEVEL) -> Interval:
    """Rate k / n of n independent trials, with the exact interval: it covers at least `level`.

    Source: Clopper and Pearson 1934; as scipy.stats.binomtest(...).proportion_ci("exact").
    """
    _checked(k, n)
    tail = (1 - level) / 2
    lo = float(stats.beta.ppf(tail, k, n - k + 1)) if k > 0 else 0.0
    hi = float(stats.beta.isf(tail, k + 1, n - k)) if k < n else 1.0
    return Interval(mean=k / n, lo=lo, hi=hi, n=n, level=level, method="Clopper-Pearson")


def cluster_t(numerators_G: ArrayLike, denominators_G: ArrayLike, level: float = LEVEL) -> Interval:
    """Ratio of sums over G texts, with a t interval whose variance comes from between the texts.

    Args:
        numerators_G: [G] accepted (or tokens) of each text; denominators_G: [G] examined (or rounds).
            A text with denominator 0 says nothing and is not counted in n.

    With r = sum a / sum b and z_g = a_g - r b_g: se = sqrt(G / (G - 1) * sum z_g^2) / sum b, and
    r +- t(G - 1) * se, which is not cut off at 0 or 1. Wants G >= 20; lo and hi are None at G = 1.
    ValueError where they do not pair up or nothing was examined. Source: the linearised ratio
    estimator of a ratio (Cochran 1977, chapter 6), texts as the sampling units.
    """
    tops, bottoms = finite(numerators_G, "numerators"), finite(denominators_G, "denominators")
    if tops.shape != bottoms.shape:
        raise ValueError(f"numerators and denominators must pair up, got {tops.size} and {bottoms.size}")
    if (bottoms < 0).any():
        raise ValueError(f"denominators must not be negative, got {bottoms.min()}")
    counted = bottoms > 0
    tops, bottoms, groups = tops[counted], bottoms[counted], int(counted.sum())
    if groups == 0:
        raise ValueError("denominators must not all be 0")
    ratio = float(tops.sum() / bottoms.sum())
    lo = hi = None
    if groups > 1:
        residuals = tops - ratio * bottoms
        error = np.sqrt(groups / (groups - 1) * (residuals**2).sum()) / bottoms.sum()
        half = float(stats.t.ppf((1 + level) / 2, groups - 1) * error)
        lo, hi = ratio - half, ratio + half
    return Interval(mean=ratio, lo=lo, hi=hi, n=groups, level=level, method="cluster t by text")
