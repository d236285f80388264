"""The two decoding loops: autoregressive, which is the reference, and speculative.

A `Verifier` runs the target and decides, a drafter proposes; the loops give the order.
"""

from collections.abc import Sequence

import torch

from specledger.decoding.counts import Clock, Generated, Round
from specledger.decoding.drafter import Drafter
from specledger.decoding.engines import Engine
from specledger.decoding.verification import Verifier
from specledger.models.llama import Llama
from specledger.sampling.distributions import Sampling
from specledger.sampling.uniforms import Uniforms


@torch.inference_mode()
def autoregressive(
    target: Llama,
    prompt: Sequence[int],
    *,
    count: int,
    engine: Engine,
    sampling: Sampling,
    uniforms: Uniforms,
    clocked: bool = True,
) -> Generated:
    """Decode `count` tokens after `prompt`, one target forward each; `clocked` False reads no clocks in between."""
    clock = Clock(target.lm_head.weight.device, clocked)
    tokens = prompted(prompt)
    verifier = Verifier(engine, target, sampling, len(tokens) + count, gamma=0)
    for _ in range(count):
        tokens.append(verifier.sample(tokens, uniforms, clock))
        clock.lap("accept")
    wall_s, phase_s = clock.stop()
    rounds = [Round(drafted=0, accept_len=0, draft_forwards=0)] * count
    return Generated(tokens=tokens[len(prompt) :], rounds=rounds, wall_s=wall_s, phase_s=phase_s)


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
    clocked: bool = True,
) -> Generated:
    """Decode `count` tokens after `prompt` in rounds of at most `gamma` proposals.

    The last rounds propose fewer, so that exactly `count` tokens come out and every accepted one
    is emitted. Raises ValueError where gamma is out of the drafter's or the context's range, and for no prompt.
    """
    check_gamma(gamma, drafter, target.config.context)
    clock = Clock(target.lm_head.weight.device, clocked)
    tokens, rounds = prompted(prompt), []
    end = len(tokens) + count
    verifier = Verifier(engine, target, sampling, end, gamma=gamma)
    drafting = drafter.open(engine, sampling, end)
    while len(tokens) < end:
        proposal = drafting.propose(tokens, min(gamma, end - len(tokens) - 1), uniforms.draft)
        clock.lap_draft(proposal.caught_up)
        found = verifier.verify(tokens, proposal, uniforms, clock)
        tokens += found.tokens
        # The last token has been through no forward yet; what was computed after the rejection goes.
        verifier.rollback(len(tokens) - 1)
        drafting.observe(found.output, len(tokens) - 1)
        rounds.append(Round(found.drafted, found.accept_len, proposal.forwards, found.accept_probs, found.examined))
        clock.lap("accept")
    wall_s, phase_s = clock.stop()
    rounds = [done._replace(accept_probs=tuple(map(float, done.accept_probs))) for done in rounds]
    return Generated(tokens=tokens[len(prompt) :], rounds=rounds, wall_s=wall_s, phase_s=phase_s)


def prompted(prompt: Sequence[int]) -> list[int]:
    """The prompt's tokens; ValueError where there are none, since a forward needs one to go on from."""
    if not len(prompt):
        raise ValueError("prompt must hold at least 1 token, got 0")
    return [int(token) for token in prompt]


def check_gamma(gamma: int, drafter: Drafter, context: int) -> None:
    """ValueError unless 1 <= gamma <= what the drafter and the context allow; of a tree the depth must fit."""
    tree = getattr(drafter, "tree", None)
    if tree is not None and tree.depth < context:
        return
    largest = min(context - 1, drafter.max_gamma or context - 1)
    if not 1 <= gamma <= largest:
        raise ValueError(f"gamma must be from 1 to {largest} for {drafter.name}, got {gamma}")
