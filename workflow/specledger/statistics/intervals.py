"""Intervals: of a mean over seeds, of paired ratios, and for one further reading."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

LEVEL = 0.95


@dataclass(frozen=True, kw_only=True)
class Interval:
    """A mean with its two-sided interval; `lo` and `hi` are None where one value gives none."""

    mean: float
    lo: float | None
    hi: float | None
    n: int
    level: float
    method: str


def finite(values: ArrayLike, name: str = "values") -> NDArray[np.float64]:
    """`values` as float64; ValueError where there are none or one is not a number."""
    array = np.asarray(values, dtype=np.float64)
    if array.size == 0:
        raise ValueError(f"{name} must not be empty")
    if not np.isfinite(array).all():
        raise ValueError(f"{name} must be finite, got {array[~np.isfinite(array)][0]}")
    return array


def _around(mean: float, half: float | None, n: int, level: float, method: str) -> Interval:
    lo, hi = (None, None) if half is None else (mean - half, mean + half)
    return Interval(mean=mean, lo=lo, hi=hi, n=n, level=level, method=method)


def t_interval(values: ArrayLike, *, level: float = LEVEL, method: str = "t over seeds") -> Interval:
    """Mean of one value a seed, with mean +- t(n-1) * sd / sqrt(n).

    Source: Student 1908; scipy.stats.t.
    """
    array = finite(values)
    n = array.size
    if n == 1:
        return _around(float(array[0]), None, 1, level, method)
    half = stats.t.ppf((1 + level) / 2, n - 1) * array.std(ddof=1) / np.sqrt(n)
    return _around(float(array.mean()), float(half), n, level, method)


def paired_t_interval(first: ArrayLike, second: ArrayLike, *, level: float = LEVEL) -> Interval:
    """Mean of first - second, paired by seed, with its t interval.

    Source: the paired t-test's interval, as scipy.stats.ttest_rel(...).confidence_interval.
    """
    one, two = finite(first, "first"), finite(second, "second")
    if one.shape != two.shape:
        raise ValueError(f"first and second must pair up, got {one.size} and {two.size} values")
    return t_interval(one - two, level=level, method="paired t over seeds")


def median_log_ratio(numerators: ArrayLike, denominators: ArrayLike) -> float:
    """Median over paired blocks of log(numerator / denominator): what one seed says of a speed-up."""
    return float(np.median(np.log(finite(numerators) / finite(denominators))))


def exp_t_interval(logs: ArrayLike, *, level: float = LEVEL) -> Interval:
    """Geometric mean of one log ratio a seed: the t interval on the log scale, then exp."""
    inner = t_interval(logs, level=level, method="t over seeds of the log ratio")
    lo, hi = (None if end is None else float(np.exp(end)) for end in (inner.lo, inner.hi))
    return Interval(mean=float(np.exp(inner.mean)), lo=lo, hi=hi, n=inner.n, level=level, method=inner.method)


def log_ratio_interval(pairs: Sequence[tuple[ArrayLike, ArrayLike]], *, level: float = LEVEL) -> Interval:
    """Ratio of times: per seed the median log ratio over paired blocks, then t over seeds, then exp.

    Args:
        pairs: for each seed (numerators, denominators), one entry a block; seconds.

    Source: paired blocks and medians against drift, t over seeds for coverage at small n.
    """
    return exp_t_interval([median_log_ratio(top, bottom) for top, bottom in pairs], level=level)


def prediction_interval(groups: Sequence[ArrayLike], *, level: float = LEVEL, method: str) -> Interval:
    """Where one further single observation of a new group is expected: a t prediction interval.

    Args:
        groups: for each seed its observations (one or more).

    The variance of a single observation is var(group means) + within * (1 - 1/R), R observations a
    group; the mean's own is var(group means) / G; degrees of freedom G - 1 (one-way random effects).
    """
    arrays = [finite(group, "group") for group in groups]
    count = len(arrays)
    means = np.array([array.mean() for array in arrays])
    if count < 2:
        return _around(float(means.mean()), None, count, level, method)
    inner = [array.var(ddof=1) for array in arrays if array.size > 1]
    within = float(np.mean(inner)) if inner else 0.0
    size = float(np.mean([array.size for array in arrays]))
    between = float(means.var(ddof=1))
    variance = between + within * (1 - 1 / size) + between / count
    half = stats.t.ppf((1 + level) / 2, count - 1) * np.sqrt(variance)
    return _around(float(means.mean()), float(half), count, level, method)
