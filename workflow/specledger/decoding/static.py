"""What the engine `compiled` compiles: functions of tensors whose shapes never change.

`ints` holds where a forward begins and tokens, `floats` the uniforms. Between a drafter's call and the
verdict's lie `drafted_and_tokens` [1 + G] and `draft_probs_GV`.
Shapes: G proposals at most, T = G + 1 positions, V vocabulary, D width.
"""

from collections.abc import Callable

import torch
from torch import Tensor

from specledger.decoding.tensors import Layout, distribution, draw, judge
from specledger.models.llama import Llama
from specledger.models.ring import Ring
from specledger.sampling.distributions import Sampling
from specledger.theory.trees import Tree


def plain_step(model: Llama, ring: Ring, sampling: Sampling) -> Callable:
    """One token of plain decoding: [token, mass it was drawn from]."""

    def step(ints: Tensor, floats: Tensor) -> Tensor:
        hidden_BTD = model.hidden(ints[1:2][None], ring.at(ints[0]))
        probs_V = distribution(model.logits(hidden_BTD)[0, 0], sampling)
        return torch.stack((draw(probs_V, floats[0]).double(), probs_V.sum()))

    return step


def verdict_step(model: Llama, ring: Ring, sampling: Sampling, gamma: int) -> Callable:
    """One round's verdict: [accept_len, token, mass, drafted, proposals G, min(1, p/q) G], and hidden states [T, D]."""
    layout = Layout.of(Tree.chain(gamma), model.lm_head.weight.device)

    def step(ints: Tensor, floats: Tensor, drafted_and_tokens: Tensor, draft_probs_GV: Tensor) -> tuple[Tensor, Tensor]:
        drafted, proposed_G = drafted_and_tokens[0], drafted_and_tokens[1:]
        hidden_BTD = model.hidden(torch.cat((ints[1:2], proposed_G))[None], ring.at(ints[0]))
        target_probs_TV = distribution(model.logits(hidden_BTD)[0], sampling)
        found = judge(
            target_probs_TV, draft_probs_GV, proposed_G, floats[1:], floats[0], layout, layout.numbers_G < drafted
        )
        told = torch.stack((found.accept_len.double(), found.token.double(), found.total))
        return torch.cat((told, drafted_and_tokens.double(), found.accept_probs_G)), hidden_BTD[0]

    return step


def draft_step(model: Llama, ring: Ring, sampling: Sampling, threshold: float | None) -> Callable:
    """All G draft steps with their sampling; ints are first, row, limit and the last two tokens."""

    def step(ints: Tensor, uniforms_G: Tensor, drafted_and_tokens: Tensor, draft_probs_GV: Tensor) -> None:
        first, row, G = ints[0], ints[1:2], uniforms_G.shape[0]
        hidden_BTD = model.hidden(ints[3:5][None], ring.at(first)).index_select(1, row)
        tokens, rows = [], []
        for place in range(G):
            rows.append(distribution(model.logits(hidden_BTD)[0, 0], sampling))
            tokens.append(draw(rows[-1], uniforms_G[place]))
            if place + 1 < G:
                hidden_BTD = model.hidden(tokens[-1].view(1, 1), ring.at(first + ints[1] + (1 + place)))
        proposed_G, probs_GV = torch.stack(tokens), torch.stack(rows)
        drafted = ints[2:3]
        if threshold is not None:
            sure_G = probs_GV.gather(1, proposed_G[:, None])[:, 0] >= threshold
            drafted = torch.minimum(drafted, sure_G.long().cumprod(0).sum() + 1)
        drafted_and_tokens.copy_(torch.cat((drafted, proposed_G)))
        draft_probs_GV.copy_(probs_GV)

    return step


def mtp_step(target: Llama, mtp: torch.nn.Module, ring: Ring, sampling: Sampling) -> Callable:
    """The module's one proposal; ints are first, row, limit and the tokens after each hidden state [T]."""

    def step(
        ints: Tensor, uniforms_G: Tensor, hidden_TD: Tensor, drafted_and_tokens: Tensor, draft_probs_GV: Tensor
    ) -> None:
        logits_TV = mtp(target, hidden_TD[None], ints[3:][None], ring.at(ints[0]))[0]
        probs_V = distribution(logits_TV.index_select(0, ints[1:2])[0], sampling)
        token = draw(probs_V, uniforms_G[0])
        drafted_and_tokens.copy_(torch.cat((ints[2:3], token[None])))
        draft_probs_GV.copy_(probs_V[None])

    return step
