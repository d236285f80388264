"""Siblings of a tree: several draft tokens for one position, each with the q that it came from.

Shapes: ... any leading dimensions, K siblings, V vocabulary.
"""

from typing import NamedTuple

from specledger.sampling.arrays import Array, at_symbol, namespace, with_symbol
from specledger.sampling.distributions import draw


class Siblings(NamedTuple):
    """Several tokens for one position, each with the row that it was drawn from; `there` is False where q ran out."""

    tokens: Array  # [..., K], 0 where there is none
    rows: Array  # [..., K, V], zeros where there is none
    there: Array  # [..., K]


def draw_siblings(probs: Array, uniforms: Array) -> Siblings:
    """Different tokens [..., K] drawn one after another without replacement from q [..., V].

    What was drawn leaves q, and the rest is scaled to 1, so that a sibling is never one that was rejected before it
    (Chen et al. 2024, Sequoia, arXiv 2402.12374, section 3.2). The rest is summed afresh from the symbols that remain:
    1 - q(drawn) would lose it where the drawn one is nearly certain. Each sibling is drawn from the very row that is
    declared. The first is the one that `draw` draws, and its row is q itself.
    """
    xp = namespace(probs)
    left, row, some = probs, probs, probs[..., 0] >= 0
    tokens, rows, there = [], [], []
    for k in range(uniforms.shape[-1]):
        if k:
            left = with_symbol(left, tokens[-1], 0.0)
            row, some = scaled(left)
        tokens.append(draw(row, uniforms[..., k]))
        rows.append(row)
        there.append(some)
    return Siblings(xp.stack(tokens, -1), xp.stack(rows, -2), xp.stack(there, -1))


def scaled(weights: Array) -> tuple[Array, Array]:
    """Weights [..., V] scaled to 1, and which rows have any [...]; a row without stays as it is."""
    total = weights.sum(-1)
    some = total > 0
    return weights / namespace(weights).where(some, total, 1.0)[..., None], some


def likeliest_siblings(probs: Array, count: int) -> Siblings:
    """The `count` likeliest tokens, in order, the first of those that tie; every row is q itself."""
    xp = namespace(probs)
    order = (-probs).argsort(stable=True)[..., :count]
    rows = xp.stack([probs] * count, -2)
    there = at_symbol(rows, order) > 0
    return Siblings(xp.where(there, order, 0), rows, there)
