"""The rule and the draws once more, as functions of tensors of fixed shapes: for one compiled or captured call.

`distributions` and `verify` are the reference; the tests hold these to them, symbol by symbol and draw by
draw. A failure can't be raised from here: it comes back as `total`, which must be finite and positive.
Shapes: G proposals at most, V vocabulary.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from specledger.sampling.distributions import Sampling


class Judged(NamedTuple):
    """accept_len [], token [], min(1, p/q) of each proposal [G], and the mass that the token was drawn from []."""

    accept_len: Tensor
    token: Tensor
    accept_probs_G: Tensor
    total: Tensor


def distribution(logits: Tensor, sampling: Sampling) -> Tensor:
    """Probabilities [..., V] float64 of logits [..., V], as `distributions.distribution`."""
    logits = logits.double()
    if sampling.temperature == 0:
        first = logits.argmax(dim=-1, keepdim=True)
        return (torch.arange(logits.shape[-1], device=logits.device) == first).double()
    scaled = logits / sampling.temperature
    probs = (scaled - scaled.amax(dim=-1, keepdim=True)).exp()
    if sampling.top_k is not None and sampling.top_k < probs.shape[-1]:
        kth = probs.topk(sampling.top_k, dim=-1).values[..., -1:]
        probs = torch.where(probs >= kth, probs, 0.0)
    probs = probs / probs.sum(dim=-1, keepdim=True)
    return probs if sampling.top_p is None else _nucleus(probs, sampling.top_p)


def _nucleus(probs: Tensor, top_p: float) -> Tensor:
    ranked, order = probs.sort(dim=-1, descending=True, stable=True)
    before = ranked.cumsum(dim=-1) - ranked
    kept = torch.zeros_like(probs).scatter(-1, order, torch.where(before < top_p, ranked, 0.0))
    return kept / kept.sum(dim=-1, keepdim=True)


def draw(weights_V: Tensor, uniform: Tensor) -> tuple[Tensor, Tensor]:
    """Inverse-CDF draw of one token [] from weights [V] and a uniform [], and their total []."""
    cumulative_V = weights_V.cumsum(dim=-1)
    if weights_V.device.type == "cuda":  # sums in parallel may give a symbol without weight a sliver
        cumulative_V = torch.where(weights_V > 0, cumulative_V, 0.0).cummax(dim=-1).values
    total = cumulative_V[-1]
    token = (cumulative_V <= uniform * total).sum()
    return torch.minimum(token, (cumulative_V < total).sum()), total


def judge(
    target_probs_GV: Tensor,
    draft_probs_GV: Tensor,
    draft_tokens_G: Tensor,
    drafted: Tensor,
    accept_uniforms_G: Tensor,
    extra_uniform: Tensor,
) -> Judged:
    """The acceptance rule for one round, as `verify.verify`.

    Args:
        target_probs_GV: p at the G + 1 positions [G + 1, V].
        draft_probs_GV: q of the proposals [G, V]; rows from `drafted` on are not looked at.
        draft_tokens_G: the proposals [G].
        drafted: how many of the G places hold a proposal [].
        accept_uniforms_G: uniforms that decide acceptance [G].
        extra_uniform: the uniform of the residual or bonus token [].
    """
    G, V = draft_probs_GV.shape
    places_G = torch.arange(G, device=drafted.device)
    p_G = target_probs_GV[:G].gather(1, draft_tokens_G[:, None])[:, 0]
    q_G = draft_probs_GV.gather(1, draft_tokens_G[:, None])[:, 0]
    accepted_G = (accept_uniforms_G * q_G < p_G) & (places_G < drafted)
    accept_len = accepted_G.long().cumprod(dim=0).sum()
    at = accept_len.expand(1, V)
    p_V = target_probs_GV.gather(0, at)[0]
    rejected_V = torch.cat((draft_probs_GV, draft_probs_GV.new_zeros(1, V))).gather(0, at)[0]
    q_V = torch.where(accept_len < drafted, rejected_V, 0.0)
    token, total = draw((p_V - q_V).clamp_min(0.0), extra_uniform)
    return Judged(accept_len, token, (p_G / q_G).clamp_max(1.0), total)
