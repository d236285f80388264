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


def distribution(probs: ArrayLike) -> NDArray[np.float64]:
    """`probs` as float64 and renormalised; ValueError where they are no distribution.

    A float32 softmax sums to 1 only to 1e-7, which a chi-square sees.
    """
    array = finite(probs, "probs")
    if (array < 0).any():
        raise ValueError(f"probs must not be negative, got {array.min()}")
    if not np.isclose(array.sum(), 1.0, atol=1e-4):
        raise ValueError(f"probs must sum to 1, got {array.sum()}")
    return array / array.sum()


def total_variation(first: ArrayLike, second: ArrayLike) -> float:
    """Half the L1 distance of two distributions over V symbols, in [0, 1]."""
    return float(0.5 * np.abs(distribution(first) - distribution(second)).sum())


def expected_total_variation(probs: ArrayLike, draws: int) -> float:
    """E[TV] of the empirical distribution of `draws` draws, by the normal approximation.

    (1/2) sqrt(2 / (pi n)) sum sqrt(p (1 - p)): half the summed mean absolute deviations.
    """
    p = distribution(probs)
    return float(0.5 * np.sqrt(2 / (np.pi * draws)) * np.sqrt(p * (1 - p)).sum())


def null_total_variation(
    probs: ArrayLike, draws: int, generator: np.random.Generator, *, resamples: int = 10_000
) -> tuple[float, float]:
    """E[TV] and its 99.9% quantile when `draws` draws do follow `probs`, by Monte Carlo.

    TV is not 0 under the null; a measured TV means something only beside these two.
    """
    distances = null_distances(probs, draws, generator, resamples)
    return float(distances.mean()), float(np.quantile(distances, 0.999))


def null_distances(probs: ArrayLike, draws: int, generator: np.random.Generator, resamples: int) -> NDArray[np.float64]:
    """Total variations [R] from `probs` of `resamples` samples of `draws` draws that do follow it."""
    if draws < 1:
        raise ValueError(f"draws must be at least 1, got {draws}")
    p = distribution(probs)
    counts_RV = generator.multinomial(draws, p, size=resamples)
    return 0.5 * np.abs(counts_RV / draws - p).sum(axis=1)


def pool_cells(expected: ArrayLike, minimum: float = 5.0) -> NDArray[np.int64]:
    """For each cell the number of its pool: smallest expected counts merged until each is >= minimum.

    A rest that stays short joins the smallest pool, where a departure of its cells is blurred least.
    Without pooling the chi-square's size is .10 to .13 at a nominal .05 (Cochran's rule of five).
    """
    values = finite(expected, "expected")
    order = np.argsort(values, kind="stable")
    ascending = values[order]
    small = int(np.searchsorted(ascending, minimum))  # every later cell is a pool by itself
    sums = np.cumsum(ascending[:small])
    starts, base = [], 0.0
    start = 0
    while start < small:
        starts.append(start)
        end = int(np.searchsorted(sums, base + minimum))  # `small` where the rest is short
        start, base = end + 1, float(sums[min(end, small - 1)])
    pool_starts = np.zeros(values.size, dtype=np.int64)
    pool_starts[starts] = 1
    pool_starts[small:] = 1
    ranked = np.cumsum(pool_starts) - 1
    if start > small and ranked[-1] > 0:
        rest = ranked[starts[-1]]
        others = np.bincount(ranked, ascending)
        others[rest] = np.inf
        ranked[ranked == rest] = np.argmin(others)
        ranked[ranked > rest] -= 1
    pools = np.empty(values.size, dtype=np.int64)
    pools[order] = ranked
    return pools


def pooled_chisquare(counts: ArrayLike, probs: ArrayLike, minimum: float = 5.0) -> ChiSquare:
    """Pearson's test that counts follow probs, after pooling small expected counts.

    Args:
        counts: [V] observed (or of any shape, as a joint law [V, V]); probs: the same shape;
            minimum: least expected count of a pool.

    A symbol of probability 0 that was drawn settles the matter: chi2 inf, p 0.
    Source: scipy.stats.chisquare.
    """
    p, observed = distribution(probs), finite(counts, "counts")
    if p.shape != observed.shape:
        raise ValueError(f"counts and probs must have the same shape, got {observed.shape} and {p.shape}")
    p, observed = p.ravel(), observed.ravel()
    expected = p * observed.sum()
    pools = pool_cells(expected, minimum)
    df = int(pools.max())
    if observed[p == 0].sum() > 0:
        return ChiSquare(chi2=float("inf"), df=df, p_value=0.0)
    if df == 0:
        return ChiSquare(chi2=0.0, df=0, p_value=float("nan"))
    result = stats.chisquare(np.bincount(pools, observed), np.bincount(pools, expected))
    return ChiSquare(chi2=float(result.statistic), df=df, p_value=float(result.pvalue))


class MonteCarloFit(NamedTuple):
    """Unpooled chi2 and TV of the counts, their Monte Carlo p-values, and TV's mean and 99.9% under the null."""

    chi2: float
    chi2_p_value: float
    tv: float
    tv_p_value: float
    tv_expected: float
    tv_q999: float


def monte_carlo_fit(
    counts_V: ArrayLike, probs_V: ArrayLike, generator: np.random.Generator, *, resamples: int = 9_999
) -> MonteCarloFit:
    """Do counts follow probs? Pearson's chi2 and TV, unpooled, each against one multinomial null sample.

    Args:
        counts_V: [V] observed; probs_V: [V]; resamples: R null samples, which both statistics share.

    A p-value is (1 + null samples at least as far) / (R + 1), hence at least 1 / (R + 1). A symbol of
    probability 0 that was drawn settles the matter as in `pooled_chisquare`: chi2 inf, its p-value 0;
    TV knows nothing of impossible symbols and keeps its own p-value.
    ValueError where nothing was drawn. Source: scipy.stats.monte_carlo_test.
    """
    p, observed = distribution(probs_V), finite(counts_V, "counts")
    if p.shape != observed.shape:
        raise ValueError(f"counts and probs must have the same shape, got {observed.shape} and {p.shape}")
    draws = int(observed.sum())
    if draws < 1:
        raise ValueError(f"draws must be at least 1, got {draws}")
    possible = p > 0
    expected = p[possible] * draws
    null_RV = generator.multinomial(draws, p, size=resamples)[:, possible]
    excess_RV = null_RV - expected
    surprise = observed[possible] - expected
    impossible = float(observed[~possible].sum())
    chi2_null = (excess_RV**2 / expected).sum(axis=1)
    chi2 = float((surprise**2 / expected).sum())
    tv_null = np.abs(excess_RV).sum(axis=1) / (2 * draws)
    tv = (float(np.abs(surprise).sum()) + impossible) / (2 * draws)
    return MonteCarloFit(
        chi2=float("inf") if impossible else chi2,
        chi2_p_value=0.0 if impossible else _monte_carlo_p(chi2, chi2_null),
        tv=tv,
        tv_p_value=_monte_carlo_p(tv, tv_null),
        tv_expected=float(tv_null.mean()),
        tv_q999=float(np.quantile(tv_null, 0.999)),
    )


def _monte_carlo_p(observed: float, null_R: NDArray[np.float64]) -> float:
    """The share of {observed} and the null that is at least as large, as scipy's test counts it."""
    test = stats.monte_carlo_test(
        [observed],
        lambda size: null_R[:, None],  # drawn already, for both statistics
        lambda sample, axis: sample.mean(axis=axis),
        vectorized=True,
        n_resamples=null_R.size,
        alternative="greater",
    )
    return float(test.pvalue)
