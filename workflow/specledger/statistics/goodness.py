"""Distances between distributions and tests of fit, on plain arrays."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from specledger.statistics.intervals import finite


class ChiSquare(NamedTuple):
    """Pearson's statistic, its degrees of freedom, and its p-value (nan where df is 0)."""

    chi2: float
    df: int
    p_value: float


def _distribution(probs: ArrayLike) -> NDArray[np.float64]:
    """float64 and renormalised: float32 softmax sums to 1 only to 1e-7, which a chi-square sees."""
    array = finite(probs, "probs")
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
    values = finite(expected, "expected")
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
    p, observed = _distribution(probs), finite(counts, "counts")
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
