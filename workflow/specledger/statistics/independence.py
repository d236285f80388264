"""Is each guess accepted independently and alike, as eq. (1) supposes? Three tests of what breaks it.

Each takes independent and identical acceptance as the hypothesis: a rejection says that eq. (1) at one
alpha is an approximation here, and where it fails: by position, in a round, or between rounds.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from specledger.statistics.goodness import ChiSquare, pooled_chisquare
from specledger.statistics.intervals import finite


class Lag1(NamedTuple):
    """Autocorrelation of neighbours within texts, and its two-sided p-value (nan where nothing varies)."""

    r: float
    p_value: float


def position_homogeneity(accepted_J: ArrayLike, examined_J: ArrayLike) -> float:
    """p-value that the rate of acceptance is the same at each of the J positions of a round.

    Args:
        accepted_J, examined_J: counts by position; a position never examined is left out.

    nan where fewer than two positions are left or all guesses met the same fate. ValueError where they
    do not pair up or more was accepted than examined. Source: scipy.stats.chi2_contingency, uncorrected.
    """
    accepted, examined = finite(accepted_J, "accepted"), finite(examined_J, "examined")
    if accepted.shape != examined.shape:
        raise ValueError(f"accepted and examined must pair up, got {accepted.size} and {examined.size}")
    if (accepted < 0).any() or (accepted > examined).any():
        raise ValueError("accepted must lie in 0..examined at each position")
    table = np.stack([accepted, examined - accepted])[:, examined > 0]
    if table.shape[1] < 2 or (table.sum(axis=1) == 0).any():
        return float("nan")
    return float(stats.chi2_contingency(table, correction=False).pvalue)


def geometric_fit(histogram: ArrayLike) -> ChiSquare:
    """Does accept_len follow the truncated geometric law that independent acceptance implies?

    Args:
        histogram: [gamma + 1] rounds with accept_len 0..gamma, of rounds that drafted all of gamma.

    Pr(A = j) = (1 - alpha) alpha^j, Pr(A = gamma) = alpha^gamma, alpha = accepted over examined (its
    maximum-likelihood estimate). Small expected counts are pooled; df = cells - 2, so gamma - 1 where
    none is pooled, and p_value nan where that leaves none (gamma 1, or alpha 0 or 1).
    ValueError where no round is counted. Source: Leviathan 2023, section 3.1; scipy.stats.chi2.
    """
    counts = finite(histogram, "histogram")
    if counts.size < 2 or (counts < 0).any() or counts.sum() == 0:
        raise ValueError(f"histogram must count rounds by accept_len 0..gamma, got {counts.tolist()}")
    lengths = np.arange(counts.size)
    gamma = counts.size - 1
    alpha = (counts * lengths).sum() / (counts * np.minimum(lengths + 1, gamma)).sum()
    law = np.where(lengths < gamma, (1 - alpha) * alpha**lengths, alpha**gamma)
    chi2, cells, _ = pooled_chisquare(counts, law)
    df = max(cells - 1, 0)  # one degree of freedom went into alpha
    if df == 0:
        return ChiSquare(chi2=0.0, df=0, p_value=float("nan"))
    return ChiSquare(chi2=chi2, df=df, p_value=float(stats.chi2.sf(chi2, df)))


def lag1(sequences: Sequence[ArrayLike]) -> Lag1:
    """Does a text's value go with the one before it? Lag-1 autocorrelation pooled within texts.

    Args:
        sequences: for each text its values in order, such as the accept_len of its rounds. Texts of one
            value, or of equal values, say nothing.

    Deviations e are from the text's own mean, so that hard texts do not count as dependence. Within each
    text the sum C of e_t e_(t+1) is compared with its exact mean -S2 / n and variance over all orders of
    the n values; r = sum (C + S2 / n) / sum (S2 (n - 1) / n), which has mean 0 when the order is random,
    and p is normal: texts add up. Source: Wald and Wolfowitz 1943 (permutation moments of a serial product).
    """
    excess = scale = variance = 0.0
    for values in sequences:
        e = np.asarray(values, dtype=np.float64)
        n = e.size
        if n < 2:
            continue
        e = finite(e) - e.mean()
        s2, s4 = float((e**2).sum()), float((e**4).sum())
        excess += float((e[:-1] * e[1:]).sum()) + s2 / n
        scale += s2 * (n - 1) / n
        variance += (s2**2 - s4) / n + (s2**2 - 2 * s4) / (n * (n - 1)) - (s2 / n) ** 2
    if variance <= 1e-12 * scale**2:
        return Lag1(r=float("nan"), p_value=float("nan"))
    return Lag1(r=excess / scale, p_value=float(2 * stats.norm.sf(abs(excess) / np.sqrt(variance))))
