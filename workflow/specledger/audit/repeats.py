"""Does a server start each request from the same seed? Then its texts are few, however many it gives.

Shapes: N texts, L tokens.
"""

import numpy as np
from numpy.typing import NDArray

SURE = 1e-9


def repeated(ids_NL: NDArray[np.int64], per_request: int) -> str:
    """What repeats, in words; "" where nothing does beyond chance.

    Chance is how often two texts of the sample are the same; compared with it are the texts at the same place
    of one request and the next.
    """
    from scipy import stats

    n = len(ids_NL)
    _, which, counts = np.unique(ids_NL, axis=0, return_inverse=True, return_counts=True)
    which = which.ravel()
    if n < 2 or per_request >= n:
        return ""
    chance = float((counts * (counts - 1)).sum() / (n * (n - 1)))
    same = int((which[per_request:] == which[:-per_request]).sum())
    pairs = n - per_request
    if chance < 1 and stats.binom.sf(same - 1, pairs, chance) < SURE and same > 2 * chance * pairs:
        return (
            f"{same:,} of {pairs:,} texts are the same as in the request before, where chance gives "
            f"{chance * pairs:,.0f}: the server starts requests from the same seed"
        )
    return ""


def all_the_same(ids_NL: NDArray[np.int64], others_ML: NDArray[np.int64]) -> str:
    """In words, that all texts are one text although the other sample has several; else ""."""
    if len(ids_NL) >= 20 and not np.ptp(ids_NL, axis=0).any() and np.ptp(others_ML, axis=0).any():
        return f"all {len(ids_NL):,} texts are the same, and those of the other arm are not"
    return ""
