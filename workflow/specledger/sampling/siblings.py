"""Siblings of a tree: several proposals for one position, each with the q that it came from.

Shapes: K siblings, N nodes, V vocabulary.
"""

from bisect import bisect_left, bisect_right, insort
from collections.abc import Sequence

import numpy as np

from specledger.theory.trees import Tree


def draw_siblings(sums: Sequence[float], uniforms: Sequence[float]) -> list[int]:
    """Different tokens drawn one after another without replacement; fewer than uniforms where q has fewer symbols.

    What was drawn leaves q, and the rest is scaled to 1, so that a sibling is never one that was rejected before it
    (Chen et al. 2024, Sequoia, arXiv 2402.12374, section 3.2). The first is the one that `distributions.draw` draws.

    Args:
        sums: running sums of q [V]; uniforms: one in [0, 1) for each sibling.
    """
    tokens: list[int] = []
    taken: list[tuple[float, float]] = []  # where the mass of each drawn token begins, and how much it is
    last = bisect_left(sums, sums[-1])
    left = sums[-1]
    for uniform in uniforms:
        place = uniform * left
        for begin, mass in taken:
            if place < begin:
                break
            place += mass
        token = min(bisect_right(sums, place), last)
        while token in tokens:  # a sum that rounds to the beginning of what is gone
            token = _next_with_mass(sums, token)
        if token > last:
            break
        begin = sums[token - 1] if token else 0.0
        tokens.append(token)
        insort(taken, (begin, sums[token] - begin))
        left = sums[-1] - sum(mass for _, mass in taken)
        if left <= 0.0:
            break
    return tokens


def _next_with_mass(sums: Sequence[float], token: int) -> int:
    """The next token that has a probability; len(sums) where there is none."""
    return bisect_right(sums, sums[token]) if token < len(sums) else len(sums)


def rows_of(tree: Tree, parent_probs_NV: np.ndarray, tokens_N: np.ndarray) -> np.ndarray:
    """The distribution that each node was drawn from [N, V]: its parent's q without the siblings drawn before it.

    `parent_probs_NV`, the q after each node's parent, is written over.
    """
    nodes, siblings = tree.earlier
    if nodes:
        parent_probs_NV[nodes, tokens_N[list(siblings)]] = 0.0
        later = sorted(set(nodes))
        parent_probs_NV[later] /= parent_probs_NV[later].sum(axis=1, keepdims=True)
    return parent_probs_NV


def likeliest_siblings(probs_V: np.ndarray, count: int) -> list[int]:
    """The `count` likeliest tokens, in order; symbols without weight are none."""
    order = np.argsort(-probs_V, kind="stable")[:count]
    return [int(token) for token in order if probs_V[token] > 0]
