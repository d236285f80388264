"""Intervals over seeds, distances between distributions and tests of fit, on plain arrays.

Imports numpy, scipy and statsmodels and nothing of this package, so that the experiments may use it.
"""

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


@dataclass(frozen=True, kw_only=True)
class ChiSquare:
    """Pearson's statistic, its degrees of freedom, and its p-value (nan where df is 0)."""

    chi2: float
    df: int
    p_value: float


def _finite(values: ArrayLike, name: str = "values") -> NDArray[np.float64]:
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
    array = _finite(values)
    n = array.size
    if n == 1:
        return _around(float(array[0]), None, 1, level, method)
    half = stats.t.ppf((1 + level) / 2, n - 1) * array.std(ddof=1) / np.sqrt(n)
    return _around(float(array.mean()), float(half), n, level, method)


def paired_t_interval(first: ArrayLike, second: ArrayLike, *, level: float = LEVEL) -> Interval:
    """Mean of first - second, paired by seed, with its t interval.

    Source: the paired t-test's interval, as scipy.stats.ttest_rel(...).confidence_interval.
    """
    one, two = _finite(first, "first"), _finite(second, "second")
    if one.shape != two.shape:
        raise ValueError(f"first and second must pair up, got {one.size} and {two.size} values")
    return t_interval(one - two, level=level, method="paired t over seeds")


def median_log_ratio(numerators: ArrayLike, denominators: ArrayLike) -> float:
    """Median over paired blocks of log(numerator / denominator): what one seed says of a speed-up."""
    return float(np.median(np.log(_finite(numerators) / _finite(denominators))))


def exp_t_interval(logs: ArrayLike, *, level: float = LEVEL) -> Interval:
    """Geometric mean of one log ratio a seed: the t interval on the log scale, then exp."""
    inner = t_interval(logs, level=level, method="t over seeds of the log ratio")
    lo, hi = (None if end is None else float(np.exp(end)) for end in (inner.lo, inner.hi))
    return Interval(mean=float(np.exp(inner.mean)), lo=lo, hi=hi, n=inner.n, level=level, method=inner.method)


def log_ratio_interval(
    pairs: Sequence[tuple[ArrayLike, ArrayLike]], *, level: float = LEVEL
) -> Interval:
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
    arrays = [_finite(group, "group") for group in groups]
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


def _distribution(probs: ArrayLike) -> NDArray[np.float64]:
    """float64 and renormalised: float32 softmax sums to 1 only to 1e-7, which a chi-square sees."""
    array = _finite(probs, "probs")
    if (array < 0).any():
        raise ValueError(f"probs must not be negative, got {array.min()}")
    if not np.isclose(array.sum(), 1.0, atol=1e-4):
        raise ValueError(f"probs must sum to 1, got {array.sum()}")
    return array / array.sum()


def total_variation(first: ArrayLike, second: ArrayLike) -> float:
    """Half the L1 distance of two distributions over V symbols, in [0, 1]."""
    return float(0.5 * np.abs(_distribution(first) - _distribution(second)).sum())


def expected_total_variation(probs: ArrayLike, draws: int) -> float:
    """E[TV] of the empirical distribution of `draws` draws, by the normal approximation.

    (1/2) sqrt(2 / (pi n)) sum sqrt(p (1 - p)): half the summed mean absolute deviations.
    """
    p = _distribution(probs)
    return float(0.5 * np.sqrt(2 / (np.pi * draws)) * np.sqrt(p * (1 - p)).sum())


def null_total_variation(
    probs: ArrayLike, draws: int, generator: np.random.Generator, *, resamples: int = 10_000
) -> tuple[float, float]:
    """E[TV] and its 99.9% quantile when `draws` draws do follow `probs`, by Monte Carlo.

    TV is not 0 under the null; a measured TV means something only beside these two.
    """
    if draws < 1:
        raise ValueError(f"draws must be at least 1, got {draws}")
    p = _distribution(probs)
    counts_RV = generator.multinomial(draws, p, size=resamples)
    distances = 0.5 * np.abs(counts_RV / draws - p).sum(axis=1)
    return float(distances.mean()), float(np.quantile(distances, 0.999))


def pool_cells(expected: ArrayLike, minimum: float = 5.0) -> NDArray[np.int64]:
    """For each cell the number of its pool: smallest expected counts merged until each is >= minimum.

    Without pooling the chi-square's size is .10 to .13 at a nominal .05 (Cochran's rule of five).
    """
    values = _finite(expected, "expected")
    pools = np.zeros(values.size, dtype=np.int64)
    pool, total = 0, 0.0
    for cell in np.argsort(values, kind="stable"):
        if total >= minimum:
            pool, total = pool + 1, 0.0
        pools[cell] = pool
        total += values[cell]
    if total < minimum and pool > 0:  # the largest cells alone fall short only when all do
        pools[pools == pool] = pool - 1
    return pools


def pooled_chisquare(counts: ArrayLike, probs: ArrayLike, minimum: float = 5.0) -> ChiSquare:
    """Pearson's test that counts follow probs, after pooling small expected counts.

    Args:
        counts: [V] observed; probs: [V]; minimum: least expected count of a pool.

    A symbol of probability 0 that was drawn settles the matter: chi2 inf, p 0.
    Source: scipy.stats.chisquare.
    """
    p, observed = _distribution(probs), _finite(counts, "counts")
    if p.shape != observed.shape:
        raise ValueError(f"counts and probs must have the same shape, got {observed.shape} and {p.shape}")
    expected = p * observed.sum()
    pools = pool_cells(expected, minimum)
    df = int(pools.max())
    if observed[p == 0].sum() > 0:
        return ChiSquare(chi2=float("inf"), df=df, p_value=0.0)
    if df == 0:
        return ChiSquare(chi2=0.0, df=0, p_value=float("nan"))
    result = stats.chisquare(np.bincount(pools, observed), np.bincount(pools, expected))
    return ChiSquare(chi2=float(result.statistic), df=df, p_value=float(result.pvalue))


def holm(p_values: ArrayLike) -> NDArray[np.float64]:
    """p-values adjusted for the family by Holm 1979 (statsmodels); a nan stays nan and is not counted."""
    from statsmodels.stats.multitest import multipletests  # slow to import, needed once

    values = np.asarray(p_values, dtype=np.float64)
    adjusted = np.full(values.shape, np.nan)
    known = ~np.isnan(values)
    if known.any():
        adjusted[known] = multipletests(values[known], method="holm")[1]
    return adjusted
