"""The two decoding loops: autoregressive, which is the reference, and speculative.

Shapes: G proposals of a round, V vocabulary.
"""

from collections.abc import Sequence

import numpy as np
import torch

from specledger.decoding.counts import Clock, Generated, Round
from specledger.decoding.drafters import Drafter, Proposal, one_draw
from specledger.decoding.engines import Engine
from specledger.models.llama import Llama
from specledger.sampling.distributions import Sampling, distribution
from specledger.sampling.uniforms import Uniforms
from specledger.sampling.verify import Verdict, verify


@torch.inference_mode()
def autoregressive(
    target: Llama, prompt: Sequence[int], *, count: int, engine: Engine, sampling: Sampling, uniforms: Uniforms
) -> Generated:
    """Decode `count` tokens after `prompt`, one target forward each."""
    clock = Clock(target.lm_head.weight.device)
    tokens = [int(token) for token in prompt]
    session = engine.open(target, len(tokens) + count)
    for _ in range(count):
        logits_TV = session.forward(tokens, rows=1).logits_TV.cpu().numpy()
        clock.lap("verify")
        tokens.append(one_draw(distribution(logits_TV[0], sampling), uniforms.extra))
        clock.lap("accept")
    rounds = [Round(drafted=0, accept_len=0, draft_forwards=0)] * count
    return Generated(tokens=tokens[len(prompt) :], rounds=rounds, wall_s=clock.total(), phase_s=clock.seconds)


@torch.inference_mode()
def speculative(
    target: Llama,
    drafter: Drafter,
    prompt: Sequence[int],
    *,
    gamma: int,
    count: int,
    engine: Engine,
    sampling: Sampling,
    uniforms: Uniforms,
) -> Generated:
    """Decode `count` tokens after `prompt` in rounds of at most `gamma` proposals.

    The last rounds propose fewer, so that exactly `count` tokens come out and every accepted one
    is emitted. Raises ValueError where gamma is out of the drafter's or the context's range.
    """
    check_gamma(gamma, drafter, target.config.context)
    clock = Clock(target.lm_head.weight.device)
    tokens, rounds = [int(token) for token in prompt], []
    end = len(tokens) + count
    session = engine.open(target, end)
    drafting = drafter.open(engine, sampling, end)
    while len(tokens) < end:
        proposal = drafting.propose(tokens, min(gamma, end - len(tokens) - 1), uniforms.draft)
        clock.lap("draft")
        drafted = len(proposal.tokens)
        output = session.forward(tokens + proposal.tokens, rows=drafted + 1)
        logits_GV = output.logits_TV.cpu().numpy()
        clock.lap("verify")
        verdict = _verify_round(distribution(logits_GV, sampling), proposal, uniforms)
        accept_len = int(verdict.accept_len_N[0])
        tokens += [*proposal.tokens[:accept_len], int(verdict.token_N[0])]
        # The last token has been through no forward yet; what was computed after the rejection goes.
        session.rollback(len(tokens) - 1)
        drafting.observe(output, len(tokens) - 1)
        rounds.append(Round(drafted, accept_len, proposal.forwards, verdict.accept_probs_NG[0]))
        clock.lap("accept")
    wall_s = clock.total()
    rounds = [done._replace(accept_probs=tuple(done.accept_probs.tolist())) for done in rounds]
    return Generated(tokens=tokens[len(prompt) :], rounds=rounds, wall_s=wall_s, phase_s=clock.seconds)


def _verify_round(target_probs_GV: np.ndarray, proposal: Proposal, uniforms: Uniforms) -> Verdict:
    """The verdict on the proposal of one round."""
    return verify(
        target_probs_GV[None],
        proposal.probs_GV[None],
        np.array([proposal.tokens], dtype=np.int64),
        uniforms.accept.random((1, len(proposal.tokens))),
        uniforms.extra.random(1),
    )


def check_gamma(gamma: int, drafter: Drafter, context: int) -> None:
    """ValueError unless 1 <= gamma <= what the drafter and the context allow."""
    largest = min(context - 1, drafter.max_gamma or context - 1)
    if not 1 <= gamma <= largest:
        raise ValueError(f"gamma must be from 1 to {largest} for {drafter.name}, got {gamma}")
