"""Typical acceptance (Cai et al. 2024, Medusa, arXiv 2401.10774, section 2.3.2): faster, and lossy.

Shapes: N rounds, G nodes of a tree, R = G + 1 rows of p, V vocabulary.
"""

import math

import numpy as np

from specledger.sampling.distributions import draw
from specledger.sampling.verify import Verdict, check_rows
from specledger.theory.trees import ROOT, Tree

EPSILON, DELTA = 0.09, 0.3  # the threshold, and the factor of exp(-entropy), sqrt(epsilon) in the paper's code


def typical(
    target_probs_NRV: np.ndarray,
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
        target_probs_NRV: p before the tree and after each node [N, G + 1, V].
        draft_tokens_NG: the nodes' tokens [N, G].
        extra_uniforms_N: uniforms in [0, 1) that draw the token after the path [N].
    """
    check_rows(target_probs_NRV, "target_probs")
    N, G = draft_tokens_NG.shape
    parents_G, depths_G = np.array(tree.parents, dtype=np.int64), np.array(tree.depths, dtype=np.int64)
    logs_NRV = np.log(np.clip(target_probs_NRV, 1e-300, None))
    entropy_NR = -(target_probs_NRV * logs_NRV).sum(axis=-1)
    threshold_NR = np.minimum(epsilon, delta * np.exp(-entropy_NR))
    logs_NG = logs_NRV[np.arange(N)[:, None], parents_G + 1, draft_tokens_NG]
    held_NG = logs_NG > np.log(threshold_NR[:, parents_G + 1])
    for node, parent in enumerate(tree.parents):  # parents come before their children
        if parent != ROOT:
            held_NG[:, node] &= held_NG[:, parent]
            logs_NG[:, node] += logs_NG[:, parent]
    held_depths_NG = np.where(held_NG, depths_G, 0)
    longest_N = held_depths_NG.max(axis=-1, initial=0)
    score_NG = np.where(held_depths_NG == longest_N[:, None], logs_NG, -math.inf)
    last_N = np.where(longest_N > 0, score_NG.argmax(axis=-1) if G else ROOT, ROOT)
    return Verdict(
        accept_len_N=longest_N,
        token_N=draw(target_probs_NRV[np.arange(N), last_N + 1], extra_uniforms_N),
        accept_probs_NG=held_NG * 1.0,
        last_N=last_N,
    )
