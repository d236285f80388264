"""Typical acceptance (Cai et al. 2024, Medusa, arXiv 2401.10774, section 2.3.2): faster, and lossy.

Shapes: N rounds, G nodes of a tree, V vocabulary.
"""

import numpy as np

from specledger.sampling.distributions import draw
from specledger.sampling.verify import Verdict, check_rows
from specledger.theory.trees import ROOT, Tree

EPSILON, DELTA = 0.09, 0.3  # the threshold, and the factor of exp(-entropy), sqrt(epsilon) in the paper's code


def typical(
    target_probs_NGV: np.ndarray,
    draft_tokens_NG: np.ndarray,
    extra_uniforms_N: np.ndarray,
    tree: Tree,
    *,
    epsilon: float = EPSILON,
    delta: float = DELTA,
) -> Verdict:
    """Accept a node where p(x) > min(epsilon, delta exp(-H(p))) and its parent is accepted; the longest path wins.

    Among paths of one length the likeliest under the target. The token after it is drawn from p. The output does
    not follow p: q is never asked.

    Args:
        target_probs_NGV: p before the tree and after each node [N, G + 1, V].
        draft_tokens_NG: the nodes' tokens [N, G].
        extra_uniforms_N: uniforms in [0, 1) that draw the token after the path [N].
    """
    check_rows(target_probs_NGV, "target_probs")
    N, G = draft_tokens_NG.shape
    rounds = np.arange(N)
    entropy_NG = -(target_probs_NGV * np.log(np.maximum(target_probs_NGV, 1e-300))).sum(axis=-1)
    threshold_NG = np.minimum(epsilon, delta * np.exp(-entropy_NG))
    best_N, best_depth_N, best_log_N = np.full(N, ROOT), np.zeros(N, dtype=np.int64), np.zeros(N)
    held_NG, log_NG = np.ones((N, G + 1), dtype=bool), np.zeros((N, G + 1))  # of the root and of each node
    for node, parent in enumerate(tree.parents):
        p_N = target_probs_NGV[rounds, parent + 1, draft_tokens_NG[:, node]]
        held_NG[:, node + 1] = held_NG[:, parent + 1] & (p_N > threshold_NG[:, parent + 1])
        log_NG[:, node + 1] = log_NG[:, parent + 1] + np.log(np.maximum(p_N, 1e-300))
        depth = tree.depths[node]
        longer_N = (depth > best_depth_N) | ((depth == best_depth_N) & (log_NG[:, node + 1] > best_log_N))
        chosen = held_NG[:, node + 1] & longer_N
        best_N[chosen], best_depth_N[chosen], best_log_N[chosen] = node, depth, log_NG[chosen, node + 1]
    return Verdict(
        accept_len_N=best_depth_N,
        token_N=draw(target_probs_NGV[rounds, best_N + 1], extra_uniforms_N),
        accept_probs_NG=held_NG[:, 1:] * 1.0,
        last_N=best_N,
    )
