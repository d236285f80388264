"""Families of tests: combined evidence, adjusted p-values, and whether p-values are uniform.

A combined p-value sees a small bias that is everywhere, an adjusted one a large bias in a few places;
neither sees what the other does. A nan (a test that tested nothing) is left out of every family.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from specledger.statistics.goodness import ChiSquare


def _known(p_values: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    values = np.asarray(p_values, dtype=np.float64)
    known = ~np.isnan(values)
    if ((values[known] < 0) | (values[known] > 1)).any():
        raise ValueError("p_values must lie in [0, 1]")
    return values, known


def fisher(p_values: ArrayLike) -> float:
    """Fisher's combined p-value of a family of independent tests; nan where none is known.

    Source: Fisher 1925; scipy.stats.combine_pvalues. A p-value of 0 makes the whole 0.
    """
    values, known = _known(p_values)
    if not known.any():
        return float("nan")
    if (values[known] == 0).any():
        return 0.0
    return float(stats.combine_pvalues(values[known], method="fisher").pvalue)


def summed_chisquare(chi2s: ArrayLike, dfs: ArrayLike) -> ChiSquare:
    """The sum of independent chi-squares with the sum of their degrees of freedom, and its p-value.

    Args:
        chi2s, dfs: one of each a test; a test with a nan, or of 0 degrees of freedom, adds nothing
            (but for one of chi2 inf, whose impossible symbol settles the matter: p 0).

    ValueError where they do not pair up. Source: additivity of chi-square; scipy.stats.chi2.
    """
    chi2, df = np.asarray(chi2s, dtype=np.float64), np.asarray(dfs, dtype=np.float64)
    if chi2.shape != df.shape:
        raise ValueError(f"chi2s and dfs must pair up, got {chi2.size} and {df.size}")
    known = ~(np.isnan(chi2) | np.isnan(df))
    total, freedom = float(chi2[known].sum()), int(df[known].sum())
    if np.isinf(total):
        return ChiSquare(chi2=total, df=freedom, p_value=0.0)
    p_value = float(stats.chi2.sf(total, freedom)) if freedom else float("nan")
    return ChiSquare(chi2=total, df=freedom, p_value=p_value)


def holm(p_values: ArrayLike) -> NDArray[np.float64]:
    """p-values adjusted to bound the chance of any false alarm; a nan stays nan and is not counted.

    The k-th smallest of m times m - k + 1, made monotone, at most 1. Source: Holm 1979; as statsmodels'
    multipletests(method="holm"), which takes 24 ms a call.
    """
    values, known = _known(p_values)
    adjusted = np.full(values.size, np.nan)
    order = np.argsort(values, axis=None, kind="stable")[: int(known.sum())]  # nan sorts last
    factors = np.arange(order.size, 0, -1)
    adjusted[order] = np.minimum(np.maximum.accumulate(values.ravel()[order] * factors), 1.0)
    return adjusted.reshape(values.shape)


def benjamini_hochberg(p_values: ArrayLike) -> NDArray[np.float64]:
    """p-values adjusted to bound the false discovery rate; a nan stays nan and is not counted.

    Source: Benjamini and Hochberg 1995; scipy.stats.false_discovery_control.
    """
    values, known = _known(p_values)
    adjusted = np.full(values.shape, np.nan)
    if known.any():
        adjusted[known] = stats.false_discovery_control(values[known], method="bh")
    return adjusted


def uniformity(p_values: ArrayLike) -> float:
    """p-value of the Kolmogorov-Smirnov test that p-values are uniform; nan where none is known.

    A diagnostic: it is thrown by p-values of coarse tests too. Source: scipy.stats.kstest.
    """
    values, known = _known(p_values)
    return float(stats.kstest(values[known], "uniform").pvalue) if known.any() else float("nan")
