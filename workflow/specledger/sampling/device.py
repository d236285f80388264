"""The draws and the rule inside a compiled or captured call: one round, static shapes, no synchronisation.

`distribution`, `draw_siblings` and typical acceptance are the host's own functions, on tensors. The rule is `verify`'s
in another order, for a tree of fixed shape: all first siblings are judged at once, then all second ones, and what the
round did not come to is left out in the end. The tests hold both to the same verdicts, draw by draw.

Nothing can be raised from such a call. A failure comes back as `total`, a number that the host reads with the round's
other results, without another wait, and must find finite and above 0 (`check_total`): it is NaN where the logits of a
row of p were those of no distribution (NaN, +inf, all -inf), or where a draft token has no probability under its own q.
Shapes: G nodes, R = G + 1 rows of p, V vocabulary.
"""

import math
from typing import NamedTuple

import torch
from torch import Tensor

from specledger.sampling.arrays import at_symbol, entries, row
from specledger.sampling.distributions import draw
from specledger.sampling.layout import Layout
from specledger.sampling.typical import longest_path
from specledger.sampling.verify import difference


class Judged(NamedTuple):
    """A round's verdict, as `verify.Verdict` says, and the mass that `token` was drawn from.

    `accept_probs_G` are those of all nodes; `Layout.examined_RG` tells which were examined, `Layout.paths_RD` the path.
    """

    accept_len: Tensor
    last: Tensor
    token: Tensor
    total: Tensor
    accept_probs_G: Tensor


def check_total(total: float, length: int) -> None:
    """ValueError unless what was drawn after `length` tokens came from a distribution."""
    if not 0.0 < total < math.inf:
        raise ValueError(f"target_probs after {length} tokens must be a distribution, got a mass of {total} to draw")


def judge(
    target_probs_RV: Tensor,
    draft_probs_GV: Tensor,
    draft_tokens_G: Tensor,
    accept_uniforms_G: Tensor,
    extra_uniform: Tensor,
    layout: Layout,
    there_G: Tensor | None = None,
) -> Judged:
    """The acceptance rule for one round, as `verify.verify`.

    Args:
        target_probs_RV: p before the first node and after each, as `distribution` makes it.
        draft_probs_GV: the row that each node was drawn from.
        draft_tokens_G: the nodes' tokens, from 0 to V - 1 also where there is no node.
        accept_uniforms_G, extra_uniform: uniforms in [0, 1); the latter [], taken out of a vector inside of the call.
        layout: `Layout.of(tree, device)`, made outside of the call.
        there_G: which places hold a node; None for all. The siblings behind an empty place must be empty too.
    """
    accepted, chances, rows = [], [], [target_probs_RV]
    for number, rank in enumerate(layout.ranks):
        held_KV, q_KV, tokens_K = rows[-1][rank.held], draft_probs_GV[rank.nodes], draft_tokens_G[rank.nodes]
        if number:
            total_K1 = held_KV.sum(dim=-1, keepdim=True)
            held_KV = held_KV / torch.where(total_K1 > 0, total_K1, 1.0)  # nothing is left where none can be rejected
        differences_KV = difference(held_KV, q_KV)
        p_K, q_K = at_symbol(held_KV, tokens_K), at_symbol(q_KV, tokens_K)
        accepted_K = (accept_uniforms_G[rank.nodes] * q_K < p_K) | (at_symbol(differences_KV, tokens_K) >= 0)
        left_KV = differences_KV.clamp_min(0.0)
        if there_G is not None:
            there_K = there_G[rank.nodes]
            accepted_K, left_KV = accepted_K & there_K, torch.where(there_K[:, None], left_KV, held_KV)
        accepted.append(accepted_K)
        chances.append((p_K / q_K).clamp_max(1.0))
        rows.append(left_KV)
    accepted_G, accept_probs_G = torch.cat(accepted)[layout.order], torch.cat(chances)[layout.order]
    chosen_G = accepted_G & ~(layout.earlier_GG & accepted_G).any(dim=-1)
    led_to_G = (chosen_G | ~layout.above_GG).all(dim=-1)
    last = torch.where(led_to_G, layout.numbers_G, -1).amax()
    weights_V = row(torch.cat(rows), entries(layout.left_R, last + 1))
    possible_G = at_symbol(draft_probs_GV, draft_tokens_G) > 0
    if there_G is not None:
        possible_G = possible_G | ~there_G
    return _judged(target_probs_RV, last, weights_V, extra_uniform, layout, possible_G.all(), accept_probs_G)


def judge_typical(
    target_probs_RV: Tensor,
    draft_tokens_G: Tensor,
    extra_uniform: Tensor,
    layout: Layout,
    there_G: Tensor | None = None,
) -> Judged:
    """Typical acceptance for one round, as `typical.typical`; it asks neither q nor uniforms of acceptance."""
    last, held_G = longest_path(target_probs_RV, draft_tokens_G, layout, there_G)
    weights_V = row(target_probs_RV, last + 1)
    return _judged(target_probs_RV, last, weights_V, extra_uniform, layout, None, held_G.double())


def _judged(target_probs_RV, last, weights_V, extra_uniform, layout, possible, accept_probs_G) -> Judged:
    valid = torch.isfinite(target_probs_RV[:, 0].sum())  # of a row that is no distribution all is NaN
    if possible is not None:
        valid = valid & possible
    return Judged(
        accept_len=entries(layout.depths_R, last + 1),
        last=last,
        token=draw(weights_V, extra_uniform),
        total=torch.where(valid, weights_V.sum(), math.nan),
        accept_probs_G=accept_probs_G,
    )
