"""The acceptance rule of speculative sampling, as one pure function: uniforms come in.

Leviathan et al. 2023 (arXiv 2211.17192, section 2.3, algorithm 1): accept a proposal x with probability
min(1, p(x)/q(x)); after the first rejection draw from max(0, p - q); after a full accept draw the
bonus token from p. Proposals in a tree are judged by the same rule, sibling after sibling (Miao et al.
2024, SpecInfer, arXiv 2305.09781, algorithm 2): a sibling is held against what the rejected ones have left of p.
Shapes: N rounds that are verified at once, G proposals (nodes of a tree), V vocabulary.
"""

from dataclasses import dataclass

import numpy as np

from specledger.sampling.distributions import draw
from specledger.theory.trees import ROOT, Tree

ROW_TOLERANCE = 1e-9


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """What each round yields: its first `accept_len` proposals and then `token`.

    `token` is the bonus token where accept_len == G, and the residual token elsewhere. `accept_probs`
    are min(1, p/q) of the proposals, also of those behind a rejection: what Rao-Blackwell estimates need.
    `last` is the last accepted proposal (-1: none); of a tree the probabilities of nodes that nothing led to are NaN.
    """

    accept_len_N: np.ndarray
    token_N: np.ndarray
    accept_probs_NG: np.ndarray
    last_N: np.ndarray | None = None


def check_rows(probs: np.ndarray, name: str) -> None:
    """ValueError naming the row and its value unless each row [..., V] is a distribution."""
    sums = probs.sum(axis=-1)
    bad = ~(np.abs(sums - 1.0) <= ROW_TOLERANCE)  # a NaN fails every comparison, and so is bad
    if bad.any():
        row = tuple(int(i) for i in np.argwhere(bad)[0])
        raise ValueError(f"{name} row {row} must sum to 1, got {sums[row]}")
    if probs.min() < 0:
        row = tuple(int(i) for i in np.argwhere(probs < 0)[0])
        raise ValueError(f"{name} row {row[:-1]} must not be negative, got {probs[row]} at symbol {row[-1]}")


def check_proposals(q_NG: np.ndarray, draft_tokens_NG: np.ndarray) -> None:
    """ValueError naming the row and the token of a proposal that its own q gives no probability."""
    if q_NG.min() <= 0:
        n, g = np.argwhere(q_NG <= 0)[0]
        raise ValueError(f"draft_probs row ({n}, {g}) gives its own proposal {draft_tokens_NG[n, g]} no probability")


def verify(
    target_probs_NGV: np.ndarray,
    draft_probs_NGV: np.ndarray,
    draft_tokens_NG: np.ndarray,
    accept_uniforms_NG: np.ndarray,
    extra_uniforms_N: np.ndarray,
    tree: Tree | None = None,
) -> Verdict:
    """Accept proposals and draw the token after them.

    Args:
        target_probs_NGV: p at the G + 1 positions of each round [N, G + 1, V]: before the first proposal, and
            after each.
        draft_probs_NGV: q that each proposal was drawn from, given the siblings drawn before it [N, G, V].
        draft_tokens_NG: the proposals [N, G]; G may be 0.
        accept_uniforms_NG: uniforms in [0, 1) that decide acceptance [N, G].
        extra_uniforms_N: uniforms in [0, 1) that draw the residual or bonus token [N].
        tree: the parent of each proposal; None is a chain, for which the general walk yields the same bits.

    Raises:
        ValueError: a row that is not a distribution, or a proposal that its q could not have drawn.
    """
    N, G = draft_tokens_NG.shape
    check_rows(target_probs_NGV, "target_probs")
    if G == 0:
        return Verdict(
            accept_len_N=np.zeros(N, dtype=np.int64),
            token_N=draw(target_probs_NGV[:, 0], extra_uniforms_N),
            accept_probs_NG=np.empty((N, 0)),
            last_N=np.full(N, ROOT),
        )
    check_rows(draft_probs_NGV, "draft_probs")
    q_NG = draft_probs_NGV[np.arange(N)[:, None], np.arange(G)[None, :], draft_tokens_NG]
    check_proposals(q_NG, draft_tokens_NG)
    given = (target_probs_NGV, draft_probs_NGV, draft_tokens_NG, q_NG, accept_uniforms_NG, extra_uniforms_N)
    if tree is None:
        return _down_a_chain(*given)
    return _walk_once(tree, *given) if N == 1 else _walk(tree, *given)


def _down_a_chain(target_probs_NGV, draft_probs_NGV, draft_tokens_NG, q_NG, accept_uniforms_NG, extra_uniforms_N):
    """The rule for all positions of all rounds at once."""
    N, G = draft_tokens_NG.shape
    rounds = np.arange(N)
    p_NG = target_probs_NGV[rounds[:, None], np.arange(G)[None, :], draft_tokens_NG]
    accepted_NG = accept_uniforms_NG * q_NG < p_NG
    accept_len_N = np.where(accepted_NG.all(axis=1), G, accepted_NG.argmin(axis=1))
    weights_NV = target_probs_NGV[rounds, accept_len_N]
    rejected = np.flatnonzero(accept_len_N < G)
    if rejected.size:
        q_RV = draft_probs_NGV[rejected, accept_len_N[rejected]]
        weights_NV[rejected] = residual(weights_NV[rejected], q_RV)
    return Verdict(
        accept_len_N=accept_len_N,
        token_N=draw(weights_NV, extra_uniforms_N),
        accept_probs_NG=np.minimum(1.0, p_NG / q_NG),
        last_N=accept_len_N - 1,
    )


def _walk(
    tree: Tree, target_probs_NGV, draft_probs_NGV, draft_tokens_NG, q_NG, accept_uniforms_NG, extra_uniforms_N
) -> Verdict:
    """The rule along a tree; `weights` is what the next sibling is held against, p itself until one is rejected."""
    N, G = draft_tokens_NG.shape
    at_N, weights_NV, whole_N = np.full(N, ROOT), target_probs_NGV[:, 0].copy(), np.ones(N, dtype=bool)
    accept_probs_NG = np.full((N, G), np.nan)
    for node, parent in enumerate(tree.parents):
        rows = np.flatnonzero(at_N == parent)
        if not rows.size:
            continue
        tokens, q_RV, p_RV = draft_tokens_NG[rows, node], draft_probs_NGV[rows, node], weights_NV[rows]
        totals = np.where(whole_N[rows], 1.0, p_RV.sum(axis=-1))
        p_RV /= totals[:, None]
        p_R, q_R = p_RV[np.arange(len(rows)), tokens], q_NG[rows, node]
        accepted = accept_uniforms_NG[rows, node] * q_R < p_R
        accept_probs_NG[rows, node] = np.minimum(1.0, p_R / q_R)
        kept, lost = rows[accepted], rows[~accepted]
        at_N[kept], weights_NV[kept], whole_N[kept] = node, target_probs_NGV[kept, node + 1], True
        if lost.size:
            weights_NV[lost], whole_N[lost] = residual(p_RV[~accepted], q_RV[~accepted]), False
    return Verdict(
        accept_len_N=np.array((0, *tree.depths))[at_N + 1],
        token_N=draw(weights_NV, extra_uniforms_N),
        accept_probs_NG=accept_probs_NG,
        last_N=at_N,
    )


def _walk_once(
    tree: Tree, target_probs_NGV, draft_probs_NGV, draft_tokens_NG, q_NG, accept_uniforms_NG, extra_uniforms_N
) -> Verdict:
    """`_walk` for one round, node by node as it goes: the same bits in a fraction of the time."""
    p_GV, q_GV, tokens, q = target_probs_NGV[0], draft_probs_NGV[0], draft_tokens_NG[0].tolist(), q_NG[0].tolist()
    uniforms, accept_probs_G = accept_uniforms_NG[0].tolist(), np.full(len(tokens), np.nan)
    at, moved = ROOT, True
    while moved:
        weights_V, whole, moved = p_GV[at + 1], True, False
        for node in tree.children[at]:
            if not whole:
                weights_V = weights_V / weights_V.sum()
            p = float(weights_V[tokens[node]])
            accept_probs_G[node] = min(1.0, p / q[node])
            if uniforms[node] * q[node] < p:
                at, moved = node, True
                break
            weights_V, whole = residual(weights_V, q_GV[node]), False
    return Verdict(
        accept_len_N=np.array([len(tree.path(at))]),
        token_N=draw(weights_V[None], extra_uniforms_N),
        accept_probs_NG=accept_probs_G[None],
        last_N=np.array([at]),
    )


def residual(target_probs: np.ndarray, draft_probs: np.ndarray) -> np.ndarray:
    """max(0, p - q) [..., V], not normalised; positive somewhere wherever a rejection is possible."""
    weights = np.maximum(target_probs - draft_probs, 0.0)
    assert (weights.sum(axis=-1) > 0).all(), "a rejection needs p < q somewhere, and so p > q elsewhere"
    return weights


def acceptance_probability(target_probs: np.ndarray, draft_probs: np.ndarray) -> np.ndarray:
    """beta = sum over symbols of min(p, q) [...] (Leviathan et al. 2023, theorem 3.5)."""
    return np.minimum(target_probs, draft_probs).sum(axis=-1)
