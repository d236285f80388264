"""Verification of speculative sampling, as one pure function: uniforms come in, no model and no generator inside.

Leviathan et al. 2023 (arXiv 2211.17192, section 2.3, algorithm 1): accept a draft token x where u q(x) < p(x), with
probability min(1, p(x)/q(x)); after the first rejection draw from max(0, p - q); after a full accept draw the bonus
token from p. Draft tokens in a tree are judged by the same rule, sibling after sibling (Miao et al. 2024, SpecInfer,
arXiv 2305.09781, algorithm 2): a sibling is held against what the rejected ones have left of p. A chain is a tree with
one branch.
Shapes: N rounds that are verified at once, G draft tokens (nodes of a tree), V vocabulary.
"""

from dataclasses import dataclass

import numpy as np

from specledger.sampling.arrays import Array, at_symbol, with_symbol
from specledger.sampling.distributions import draw
from specledger.theory.trees import ROOT, Tree

ROW_TOLERANCE = 1e-9


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """What each round yields: the draft tokens down to node `last` (-1: none), `accept_len` of them, and `token`.

    `token` is the bonus token where `last` has no children, and the residual token elsewhere. `accept_probs` are
    min(1, p/q) of the nodes, given that the parent is accepted and the earlier siblings are rejected: of first siblings
    all, which Rao-Blackwell estimates need, and of later ones those that the round came to; NaN elsewhere.
    """

    accept_len_N: np.ndarray
    token_N: np.ndarray
    accept_probs_NG: np.ndarray
    last_N: np.ndarray


def verify(
    target_probs_NGV: np.ndarray,
    draft_probs_NGV: np.ndarray,
    draft_tokens_NG: np.ndarray,
    accept_uniforms_NG: np.ndarray,
    extra_uniforms_N: np.ndarray,
    tree: Tree | None = None,
) -> Verdict:
    """Accept draft tokens and draw the token after them.

    Args:
        target_probs_NGV: p at the G + 1 positions of each round [N, G + 1, V]: before the first draft token, and
            after each.
        draft_probs_NGV: q that each draft token was drawn from, given the siblings drawn before it [N, G, V].
        draft_tokens_NG: the draft tokens [N, G]; G may be 0.
        accept_uniforms_NG: uniforms in [0, 1) that decide acceptance [N, G].
        extra_uniforms_N: uniforms in [0, 1) that draw the residual or bonus token [N].
        tree: the parent of each draft token; None is a chain.

    Raises:
        ValueError: vocabularies that differ, a row that is no distribution, or a draft token that its q could not have
            drawn.
    """
    N, G = draft_tokens_NG.shape
    tree = Tree.chain(G) if tree is None else tree
    if G and target_probs_NGV.shape[-1] != draft_probs_NGV.shape[-1]:
        widths = f"{target_probs_NGV.shape[-1]} and {draft_probs_NGV.shape[-1]}"
        raise ValueError(f"target_probs and draft_probs must be of one vocabulary, got {widths} symbols")
    check_rows(target_probs_NGV, "target_probs")
    check_rows(draft_probs_NGV, "draft_probs")
    q_NG = at_symbol(draft_probs_NGV, draft_tokens_NG)
    if q_NG.min(initial=1.0) <= 0:
        n, g = np.argwhere(q_NG <= 0)[0]
        raise ValueError(f"draft_probs row ({n}, {g}) gives its own draft token {draft_tokens_NG[n, g]} no probability")
    parents_G = np.array(tree.parents, dtype=np.int64)
    p_NG = target_probs_NGV[np.arange(N)[:, None], parents_G + 1, draft_tokens_NG]
    accepted_NG, accept_probs_NG = accept_uniforms_NG * q_NG < p_NG, p_NG / np.maximum(p_NG, q_NG)
    accept_probs_NG[:, np.array(tree.ranks, dtype=np.int64) > 0] = np.nan
    last_N, weights_NV = np.empty(N, dtype=np.int64), np.empty_like(target_probs_NGV[:, 0])
    waiting = [(ROOT, np.arange(N))]  # a node, and the rounds that have accepted it
    while waiting:
        parent, rounds = waiting.pop()
        held_RV = target_probs_NGV[rounds, parent + 1]
        for rank, node in enumerate(tree.children[parent]):
            tokens_R, q_RV = draft_tokens_NG[rounds, node], draft_probs_NGV[rounds, node]
            if rank == 0:
                accepted_R = accepted_NG[rounds, node]
            else:
                held_RV = held_RV / held_RV.sum(axis=-1, keepdims=True)
                p_R, q_R = at_symbol(held_RV, tokens_R), q_NG[rounds, node]
                accepted_R = accept_uniforms_NG[rounds, node] * q_R < p_R
                accept_probs_NG[rounds, node] = p_R / np.maximum(p_R, q_R)
            if not accepted_R.all():
                differences_RV = difference(held_RV, q_RV)
                # p >= q can't be rejected: the sign says so where rounding has made p smaller than q.
                accepted_R = accepted_R | (at_symbol(differences_RV, tokens_R) >= 0)
                held_RV = np.maximum(differences_RV, 0.0)
            if accepted_R.any():
                waiting.append((node, rounds[accepted_R]))
                rounds, held_RV = rounds[~accepted_R], held_RV[~accepted_R]
                if not rounds.size:
                    break
        last_N[rounds], weights_NV[rounds] = parent, held_RV
    return Verdict(
        accept_len_N=np.array((0, *tree.depths))[last_N + 1],
        token_N=draw(weights_NV, extra_uniforms_N),
        accept_probs_NG=accept_probs_NG,
        last_N=last_N,
    )


def difference(target_probs: Array, draft_probs: Array) -> Array:
    """p - q [..., V], right where both are nearly certain.

    At the likeliest symbol of p it is the sum of q - p over all others, which is the same since both sum to 1. Where p
    and q give nearly 1 to one symbol, both round to 1 and their difference is lost, while what the others differ by is
    known to the last bit. Where one symbol's difference is negative another's is positive, however they are rounded.
    """
    likeliest = target_probs.argmax(-1)
    others = with_symbol(target_probs - draft_probs, likeliest, 0.0)
    return with_symbol(others, likeliest, -others.sum(-1))


def residual(target_probs: np.ndarray, draft_probs: np.ndarray) -> np.ndarray:
    """max(0, p - q) [..., V], not normalised; positive somewhere wherever p and q differ."""
    return np.maximum(difference(target_probs, draft_probs), 0.0)


def check_rows(probs: np.ndarray, name: str) -> None:
    """ValueError naming the row and its value unless each row [..., V] is a distribution."""
    sums = probs.sum(axis=-1)
    bad = ~(np.abs(sums - 1.0) <= ROW_TOLERANCE)  # a NaN fails every comparison, and so is bad
    if bad.any():
        row = tuple(int(i) for i in np.argwhere(bad)[0])
        raise ValueError(f"{name} row {row} must sum to 1, got {sums[row]}")
    if probs.min(initial=0.0) < 0:
        row = tuple(int(i) for i in np.argwhere(probs < 0)[0])
        raise ValueError(f"{name} row {row[:-1]} must not be negative, got {probs[row]} at symbol {row[-1]}")


def acceptance_probability(target_probs: np.ndarray, draft_probs: np.ndarray) -> np.ndarray:
    """beta = sum over symbols of min(p, q) [...] (Leviathan et al. 2023, theorem 3.5)."""
    return np.minimum(target_probs, draft_probs).sum(axis=-1)
