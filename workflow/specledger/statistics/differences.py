"""Are two things alike? A difference that is not significant is no answer; an equivalence test is one."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from specledger.statistics.intervals import finite, paired_t_interval


@dataclass(frozen=True, kw_only=True)
class Equivalence:
    """Mean paired difference and its test of lying within +-margin; None where one pair gives none.

    `lo` and `hi` end the interval at `level` (1 - 2 * the test's level): equivalent at the test's level
    just where it lies inside the margin.
    """

    mean: float
    lo: float | None
    hi: float | None
    p_value: float | None
    n: int
    margin: float
    level: float
    method: str = "paired TOST"


def equivalence(first: ArrayLike, second: ArrayLike, *, margin: float, level: float = 0.05) -> Equivalence:
    """Two one-sided t-tests that the mean of first - second lies within +-margin, paired by seed.

    Args:
        first, second: [n] one value a seed; margin: stated before looking, in their unit; level: of the test.

    ValueError unless margin > 0, 0 < level < .5 and they pair up. Where all differences are equal, p is 0
    inside the margin and 1 outside. Source: Schuirmann 1987; statsmodels.stats.weightstats.ttost_paired.
    """
    from statsmodels.stats.weightstats import ttost_paired  # slow to import, needed once

    if not (np.isfinite(margin) and margin > 0):
        raise ValueError(f"margin must be above 0, got {margin}")
    if not 0 < level < 0.5:
        raise ValueError(f"level must lie between 0 and 0.5, got {level}")
    interval = paired_t_interval(first, second, level=1 - 2 * level)
    one, two = finite(first), finite(second)
    p_value = None
    if one.size > 1 and np.ptp(one - two) == 0:
        p_value = float(abs(interval.mean) >= margin)
    elif one.size > 1:
        p_value = float(ttost_paired(one, two, -margin, margin)[0])
    return Equivalence(
        mean=interval.mean,
        lo=interval.lo,
        hi=interval.hi,
        p_value=p_value,
        n=interval.n,
        margin=float(margin),
        level=interval.level,
    )
