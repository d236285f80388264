"""Do two samples follow the same distribution? Pearson's test on pooled cells, and the MMD beside it."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from specledger.statistics.goodness import ChiSquare, pool_cells
from specledger.statistics.intervals import finite


def two_sample_chisquare(first_C: ArrayLike, second_C: ArrayLike, minimum: float = 5.0) -> ChiSquare:
    """Pearson's test that two samples of counts share one distribution, after pooling small cells.

    Args:
        first_C, second_C: [C] counts in the same cells; minimum: least expected count of a pool in the
            smaller sample. Cells and pools may be chosen from both samples together, not from one.

    ValueError where the shapes differ or a sample is empty. Source: Pearson 1911; as
    scipy.stats.chi2_contingency without correction.
    """
    first, second = finite(first_C, "first").ravel(), finite(second_C, "second").ravel()
    if first.shape != second.shape:
        raise ValueError(f"both samples must have the same cells, got {first.size} and {second.size}")
    n, m = first.sum(), second.sum()
    if min(n, m) < 1:
        raise ValueError("both samples must hold something")
    both = first + second
    seen = both > 0
    pools = pool_cells(both[seen] * min(n, m) / (n + m), minimum)
    one, two = np.bincount(pools, first[seen]), np.bincount(pools, second[seen])
    df = len(one) - 1
    if df == 0:
        return ChiSquare(chi2=0.0, df=0, p_value=float("nan"))
    chi2 = float(((one * np.sqrt(m / n) - two * np.sqrt(n / m)) ** 2 / (one + two)).sum())
    return ChiSquare(chi2=chi2, df=df, p_value=float(stats.chi2.sf(chi2, df)))


class MaximumMeanDiscrepancy(NamedTuple):
    """The squared MMD (biased, hence never negative) and its permutation p-value."""

    mmd2: float
    p_value: float


def hamming_mmd(
    first_NL: ArrayLike, second_ML: ArrayLike, generator: np.random.Generator, *, resamples: int = 999
) -> MaximumMeanDiscrepancy:
    """Maximum mean discrepancy with the Hamming kernel, the share of places at which two texts agree.

    Args:
        first_NL, second_ML: token ids of N and M texts of L tokens; resamples: relabellings R, p >= 1 / (R + 1).

    The mean of this kernel is sum over places and tokens of a product of frequencies, so that
    MMD^2 = (1 / L) sum (f - g)^2 over them: computed without pairs of texts.
    Source: Gretton et al. 2012; for language models Gao et al. 2024, arXiv 2410.20247.
    """
    first, second = np.asarray(first_NL), np.asarray(second_ML)
    if first.ndim != 2 or second.ndim != 2 or first.shape[1] != second.shape[1] or not len(first) or not len(second):
        raise ValueError(f"both samples must be texts of the same length, got {first.shape} and {second.shape}")
    n, m, length = len(first), len(second), first.shape[1]
    hot = _one_hot(np.concatenate([first, second]))
    total = np.asarray(hot.sum(axis=0)).ravel()

    def squares(counts_RF: NDArray) -> NDArray[np.float64]:
        return ((counts_RF / n - (total - counts_RF) / m) ** 2).sum(axis=-1) / length

    observed = float(squares(np.asarray(hot[:n].sum(axis=0)).ravel()))
    null = []
    for start in range(0, resamples, 100):
        labels = np.zeros((min(100, resamples - start), n + m), dtype=np.float32)
        labels[:, :n] = 1
        null.append(squares(np.asarray(labels_times(generator.permuted(labels, axis=1), hot))))
    above = int((np.concatenate(null) >= observed * (1 - 1e-6)).sum()) if null else 0
    return MaximumMeanDiscrepancy(mmd2=observed, p_value=(1 + above) / (1 + resamples))


def labels_times(labels_RN: NDArray, hot_NF) -> NDArray[np.float64]:
    """[R, F] how often each feature has the label: a dense times a sparse matrix."""
    return (hot_NF.T @ labels_RN.T).T


def _one_hot(ids_NL: NDArray):
    """[N, F] sparse: one feature for each place and token that occurs there."""
    from scipy import sparse

    count, length = ids_NL.shape
    features = np.empty((count, length), dtype=np.int64)
    base = 0
    for place in range(length):
        values, features[:, place] = np.unique(ids_NL[:, place], return_inverse=True)
        features[:, place] += base
        base += len(values)
    rows = np.repeat(np.arange(count), length)
    ones = np.ones(count * length, dtype=np.float32)
    return sparse.csr_matrix((ones, (rows, features.ravel())), shape=(count, base))
