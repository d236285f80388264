"""What a test could have seen: power, the smallest effect it sees, and what a quiet test bounds.

A test that rejects nothing says something only beside these. The chi-squares are those of
`goodness.pooled_chisquare`, whose cells are pooled by what `probs` expects.
"""

from collections.abc import Callable
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import optimize, stats

from specledger.statistics.goodness import distribution, pool_cells

STRICT = 0.001
POWER = 0.9
ENOUGH = 1e12  # a noncentrality that every test sees


@lru_cache(maxsize=4096)
def _critical(df: int, level: float) -> float:
    return float(stats.chi2.isf(level, df))


def _noncentral_power(df: int, noncentrality: float, level: float) -> float:
    return float(stats.ncx2.sf(_critical(df, level), df, noncentrality))


@lru_cache(maxsize=4096)
def detectable_noncentrality(df: int, *, level: float = STRICT, power: float = POWER) -> float:
    """The noncentrality that a chi-square of `df` degrees of freedom at `level` sees with `power`.

    ValueError unless df >= 1 and 0 < level < power < 1. Source: solves 1 - F(crit; df, lam) = power
    for lam, F the noncentral chi-square (scipy.stats.ncx2).
    """
    if df < 1:
        raise ValueError(f"df must be at least 1, got {df}")
    if not 0 < level < power < 1:
        raise ValueError(f"level and power must satisfy 0 < level < power < 1, got {level} and {power}")
    return _root(lambda lam: _noncentral_power(df, lam, level) - power)


def _root(rising: Callable[[float], float]) -> float:
    """Where a function that rises from below 0 at 0 crosses 0."""
    high = 16.0
    while rising(high) < 0 and high < ENOUGH:
        high *= 4
    return float(optimize.brentq(rising, 0.0, high, xtol=1e-10, rtol=1e-12))


class _Pooled:
    """`probs` and another law in the cells of the pooled test, the impossible symbols set apart."""

    def __init__(self, law: ArrayLike, probs: ArrayLike, n: int, minimum: float) -> None:
        p, other = distribution(probs), distribution(law)
        if p.shape != other.shape:
            raise ValueError(f"both laws must have the same shape, got {other.shape} and {p.shape}")
        if n < 1:
            raise ValueError(f"n must be at least 1, got {n}")
        p, other, self.n = p.ravel(), other.ravel(), n
        pools = pool_cells(p * n, minimum)
        self.df = int(pools.max())
        self.impossible = float(other[p == 0].sum())
        self.probs: NDArray[np.float64] = np.bincount(pools, p)
        self.law: NDArray[np.float64] = np.bincount(pools, np.where(p == 0, 0.0, other))

    def noncentrality(self, share: float) -> float:
        """n sum (p' - p)^2 / p of p' = (1 - share) p + share law, given that all is possible."""
        mixed = (1 - share) * self.probs + share * self.law
        total = mixed.sum()
        return self.n * float(((mixed / total - self.probs) ** 2 / self.probs).sum()) if total > 0 else 0.0

    def power(self, share: float, level: float) -> float:
        """That an impossible symbol comes up, or else that the chi-square sees the rest."""
        unseen = max(1 - share * self.impossible, 0.0) ** self.n
        if unseen == 0.0 or self.df == 0:
            return 1 - unseen
        return 1 - unseen * (1 - _noncentral_power(self.df, self.noncentrality(share), level))


def chisquare_power(law: ArrayLike, probs: ArrayLike, n: int, *, level: float = STRICT, minimum: float = 5.0) -> float:
    """Probability that the pooled chi-square against probs rejects n draws that follow `law`.

    Args:
        law, probs: the same shape, [V] or a joint law's; n: draws; minimum: as in `pooled_chisquare`.

    With m the mass of `law` where probs is 0: 1 - (1-m)^n (1 - power of the rest), the rest by the
    noncentral chi-square with n sum (law - probs)^2 / probs: by simulation within some .02 at 200,000
    draws and .08 at 5,000. ValueError where the shapes differ, a law is none, or n < 1.
    Source: Guenther 1977; scipy.stats.ncx2.
    """
    return _Pooled(law, probs, n, minimum).power(1.0, level)


def detectable_leak(
    probs: ArrayLike,
    draft: ArrayLike,
    n: int,
    *,
    level: float = STRICT,
    power: float = POWER,
    minimum: float = 5.0,
) -> float | None:
    """The smallest share of n draws which, coming from draft instead of probs, the test sees with `power`.

    Args:
        probs, draft: [V]; n: draws; minimum: as in `pooled_chisquare`, the test that is meant.

    The draws then follow (1 - share) probs + share draft, at share * TV(probs, draft) from probs. None
    where the test does not see even share = 1. Source: as `chisquare_power`, solved for the share.
    """
    cells = _Pooled(draft, probs, n, minimum)
    if cells.power(1.0, level) < power:
        return None
    if cells.impossible == 0.0:  # the noncentrality is then a square of the share
        wanted = detectable_noncentrality(cells.df, level=level, power=power)
        return float(np.sqrt(wanted / cells.noncentrality(1.0)))
    return float(optimize.brentq(lambda share: cells.power(share, level) - power, 0.0, 1.0, xtol=1e-15, rtol=1e-10))


def tv_bound(chi2: float, df: int, n: int, *, level: float = 0.95) -> float:
    """Upper bound at `level` on the TV between what the n draws follow and probs, from their chi2.

    TV <= (1/2) sqrt(lam / n) by Cauchy-Schwarz, lam the noncentrality at which a chi2 this small has
    probability 1 - level. A chi2 below its median under the null is taken at the median: a lucky draw
    shall not promise more than the test can see, and so the bound is never 0. It speaks of the pooled
    cells; at most 1; nan where df is 0. Source: scipy.stats.ncx2; the floor is the power-constrained
    limit of Cowan, Cranmer, Gross and Vitells 2011.
    """
    if df < 1:
        return float("nan")
    if n < 1:
        raise ValueError(f"n must be at least 1, got {n}")
    if not np.isfinite(chi2):
        return 1.0
    floored = max(float(chi2), _critical(df, 0.5))
    if floored - df >= 4.0 * n:  # the noncentrality's own estimate: no TV is excluded
        return 1.0
    noncentrality = _root(lambda lam: (1 - level) - float(stats.ncx2.cdf(floored, df, lam)))
    return float(min(0.5 * np.sqrt(noncentrality / n), 1.0))


def detectable_tv(df: int, n: int, m: int | None = None, *, level: float = STRICT, power: float = POWER) -> float:
    """The TV that a chi-square of `df` sees with `power` in whatever direction within its cells it lies.

    Args:
        n: draws; m: draws of the second sample, None where the first is tested against a known distribution.

    Of all departures at a distance the hardest to see is in proportion to the cells, sum d^2 / p = 4 TV^2:
    TV = (1/2) sqrt(lam / n'), n' = n or n m / (n + m). At most 1; nan where df is 0.
    """
    if df < 1:
        return float("nan")
    if n < 1 or (m is not None and m < 1):
        raise ValueError(f"n and m must be at least 1, got {n} and {m}")
    size = n if m is None else n * m / (n + m)
    return float(min(0.5 * np.sqrt(detectable_noncentrality(df, level=level, power=power) / size), 1.0))


def draws_for_tv(df: int, tv: float, *, samples: int = 1, level: float = STRICT, power: float = POWER) -> int:
    """How many draws (of each of two samples, with samples=2) `detectable_tv` asks to see `tv`."""
    if not 0 < tv <= 1:
        raise ValueError(f"tv must lie in (0, 1], got {tv}")
    if samples not in (1, 2):
        raise ValueError(f"samples must be 1 or 2, got {samples}")
    return int(np.ceil(samples * detectable_noncentrality(df, level=level, power=power) / (4 * tv * tv)))


@lru_cache(maxsize=256)
def smallest_difference(n: int, *, power: float = 0.8, level: float = 0.05) -> float | None:
    """The mean difference of n pairs, in sd of the differences, that a two-sided t-test sees with `power`.

    None where n < 2. Source: the noncentral t, as statsmodels' TTestPower().solve_power(nobs=n).
    """
    if n < 2:
        return None
    if not 0 < level < power < 1:
        raise ValueError(f"level and power must satisfy 0 < level < power < 1, got {level} and {power}")
    edge = float(stats.t.isf(level / 2, n - 1))

    def excess(effect: float) -> float:
        shift = effect * np.sqrt(n)
        # The lower tail is taken as the mirror's upper one: nct.cdf is nan far out.
        return float(stats.nct.sf(edge, n - 1, shift) + stats.nct.sf(edge, n - 1, -shift)) - power

    return _root(excess)


def binomial_power(n: int, null: float, rate: float, *, level: float = STRICT) -> float:
    """Probability that the two-sided z-test of a count against n * null rejects when the rate is `rate`.

    Exact: the binomial's mass beyond n null +- z sqrt(n null (1 - null)). ValueError unless n >= 1 and
    both rates lie in [0, 1]. Source: scipy.stats.binom.
    """
    if n < 1:
        raise ValueError(f"n must be at least 1, got {n}")
    if not (0 <= null <= 1 and 0 <= rate <= 1):
        raise ValueError(f"null and rate must lie in [0, 1], got {null} and {rate}")
    half = float(stats.norm.isf(level / 2)) * np.sqrt(n * null * (1 - null))
    below, above = np.ceil(n * null - half) - 1, np.floor(n * null + half)
    return float(stats.binom.cdf(below, n, rate) + stats.binom.sf(above, n, rate))
