"""Typical acceptance (Cai et al. 2024, Medusa, arXiv 2401.10774, section 2.3.2): faster, and lossy.

Shapes: N rounds, G nodes of a tree, R = G + 1 rows of p, V vocabulary.
"""

import math

import numpy as np

from specledger.sampling.arrays import Array, at_symbol, namespace, row
from specledger.sampling.distributions import draw
from specledger.sampling.layout import Layout
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
    layout = Layout.of(tree)
    last_N, held_NG = longest_path(target_probs_NRV, draft_tokens_NG, layout, epsilon=epsilon, delta=delta)
    return Verdict(
        accept_len_N=layout.depths_R[last_N + 1],
        token_N=draw(row(target_probs_NRV, last_N + 1), extra_uniforms_N),
        accept_probs_NG=held_NG * 1.0,
        last_N=last_N,
    )


def longest_path(
    target_probs: Array,
    draft_tokens: Array,
    layout: Layout,
    there: Array | None = None,
    *,
    epsilon: float = EPSILON,
    delta: float = DELTA,
) -> tuple[Array, Array]:
    """The last node of the path that wins [...], ROOT for none, and which nodes are accepted [..., G].

    NumPy's arrays or PyTorch's; `there` tells which places hold a node.
    """
    xp = namespace(target_probs)
    entropy_R = -(target_probs * xp.log(xp.clip(target_probs, 1e-300, None))).sum(-1)
    threshold_R = xp.clip(delta * xp.exp(-entropy_R), None, epsilon)
    p_G = at_symbol(target_probs[..., layout.parents_G, :], draft_tokens)
    passes_G = p_G > threshold_R[..., layout.parents_G]
    if there is not None:
        passes_G = passes_G & there
    held_G = (passes_G[..., None, :] | ~layout.above_GG).all(-1)
    logs_G = xp.log(xp.clip(p_G, 1e-300, None))
    paths = [logs_G[..., layout.levels[0][0]]]
    for nodes, above in layout.levels[1:]:
        paths.append(paths[-1][..., above] + logs_G[..., nodes])
    depths_G = xp.where(held_G, layout.depths_R[1:], 0)
    longest = xp.amax(depths_G, -1)
    score_G = xp.where(depths_G == longest[..., None], xp.concatenate(paths, -1), -math.inf)
    return xp.where(longest > 0, score_G.argmax(-1), ROOT), held_G
