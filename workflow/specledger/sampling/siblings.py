"""Siblings of a tree: several proposals for one position, each with the q that it came from.

Shapes: K siblings, V vocabulary.
"""

from collections.abc import Sequence

import numpy as np


def draw_siblings(probs_V: np.ndarray, uniforms_K: Sequence[float]) -> tuple[list[int], np.ndarray]:
    """At most K different tokens drawn one after another, and the distribution [K, V] that each was drawn from.

    Without replacement: what was drawn leaves q, and the rest is scaled to 1, so that a sibling is never one that
    was rejected before it (Chen et al. 2024, Sequoia, arXiv 2402.12374, section 3.2). Fewer come out where q has
    fewer symbols. The first is the one that `distributions.draw` draws.
    """
    rows_KV = np.empty((len(uniforms_K), len(probs_V)))
    tokens: list[int] = []
    left_V = probs_V
    for place, uniform in enumerate(uniforms_K):
        if place:
            left_V = left_V.copy()
            left_V[tokens[-1]] = 0.0
            total = left_V.sum()
            if total <= 0.0:
                break
            left_V /= total
        rows_KV[place] = left_V
        sums_V = np.cumsum(left_V)
        token = np.searchsorted(sums_V, uniform * sums_V[-1], side="right")
        tokens.append(int(min(token, np.searchsorted(sums_V, sums_V[-1]))))
    return tokens, rows_KV[: len(tokens)]


def likeliest_siblings(probs_V: np.ndarray, count: int) -> tuple[list[int], np.ndarray]:
    """The `count` likeliest tokens, each proposed as certain: rows [K, V] of one 1. Symbols without weight are none."""
    order = np.argsort(-probs_V, kind="stable")[:count]
    tokens = [int(token) for token in order if probs_V[token] > 0]
    rows_KV = np.zeros((len(tokens), len(probs_V)))
    rows_KV[np.arange(len(tokens)), tokens] = 1.0
    return tokens, rows_KV
