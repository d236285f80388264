"""What departs: which tokens come too often and too seldom, by how much, after which prefix.

Shapes: N texts, L tokens, V vocabulary.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from specledger.audit.exact import ExactTree

LEAST = 30  # texts that a prefix must have before its next token is looked at
EXPECTED = 5.0  # of a token after a prefix
DEPTH = 4


@dataclass(frozen=True, kw_only=True)
class Shown:
    """After `prefix`, `token` came in `share` of the texts where `wanted` of them were due; z says how surely."""

    prefix: tuple[int, ...]
    token: int
    share: float
    wanted: float
    count: int
    z: float
    prefix_text: str = ""
    token_text: str = ""


def against_exact(ids_NL: NDArray[np.int64], tree: ExactTree, most: int = 12) -> list[Shown]:
    """The next tokens that part most from the exact distribution, given what the text had before."""
    found = []
    for d, level in enumerate(tree.levels):
        place, child = tree.located(ids_NL, d), tree.located(ids_NL, d + 1)
        texts = np.bincount(place[place >= 0], minlength=1)
        before = np.ones(1) if d == 0 else tree.levels[d - 1].probs_N
        wanted = level.probs_N / before[level.parent_N]
        counts = np.bincount(child[child >= 0], minlength=len(wanted))
        n = np.pad(texts, (0, max(len(before) - len(texts), 0)))[level.parent_N]
        prefixes = tree.prefixes(d)[level.parent_N]
        found += _surest(prefixes, level.token_N, counts, n, wanted, None, most)
    return _ordered(found, most)


def of_two(first_NL: NDArray[np.int64], second_NL: NDArray[np.int64], most: int = 12) -> list[Shown]:
    """The next tokens whose shares part most between the second sample and the first."""
    found = []
    both = np.concatenate([first_NL, second_NL])
    mine = np.arange(len(both)) >= len(first_NL)
    for d in range(min(DEPTH, both.shape[1])):
        rows, which = np.unique(both[:, : d + 1], axis=0, return_inverse=True)
        which = which.ravel()
        parents, parent = np.unique(rows[:, :d], axis=0, return_inverse=True)
        one, two = np.bincount(which[~mine], minlength=len(rows)), np.bincount(which[mine], minlength=len(rows))
        parent = parent.ravel()
        n, m = (np.bincount(parent, counts, len(parents))[parent] for counts in (one, two))
        with np.errstate(divide="ignore", invalid="ignore"):
            wanted = np.where(n > 0, one / n, 0.0)
        found += _surest(rows[:, :d], rows[:, d], two, m, wanted, n, most)
    return _ordered(found, most)


def _surest(prefixes, tokens, counts, n, wanted, others, most: int) -> list[Shown]:
    """The `most` of one depth; `others`: texts of the first sample, None where `wanted` is exact."""
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.where(n > 0, counts / n, 0.0)
        pooled = wanted if others is None else (counts + wanted * others) / (n + others)
        spread = pooled * (1 - pooled) * (1 / n + (0 if others is None else 1 / others))
        z = np.where(spread > 0, (share - wanted) / np.sqrt(spread), 0.0)
    seen = (n >= LEAST) & (np.maximum(pooled * n, counts) >= EXPECTED)
    if others is not None:
        seen &= others >= LEAST
    places = np.nonzero(seen)[0]
    places = places[np.argsort(-np.abs(z[places]), kind="stable")[:most]]
    return [
        Shown(
            prefix=tuple(map(int, prefixes[i])),
            token=int(tokens[i]),
            share=float(share[i]),
            wanted=float(wanted[i]),
            count=int(counts[i]),
            z=float(z[i]),
        )
        for i in places
    ]


def _ordered(found: list[Shown], most: int) -> list[Shown]:
    return sorted(found, key=lambda one: -abs(one.z))[:most]
