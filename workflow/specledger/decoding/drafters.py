"""Drafters: anything that proposes tokens and says exactly which q it drew them from.

A drafter is fixed; `open` starts its state for one sequence. Shapes: G proposals, V vocabulary.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from specledger.decoding.engines import Engine
from specledger.decoding.proposals import LaidOut, Output, Proposal, no_proposal
from specledger.models.llama import Llama
from specledger.models.mtp import MTPModule
from specledger.sampling.distributions import Sampling, distribution, draw


class DrafterSession(Protocol):
    """A drafter's state while one sequence is decoded."""

    def propose(self, tokens: Sequence[int], gamma: int, generator: np.random.Generator) -> Proposal | LaidOut:
        """At most `gamma` tokens to follow `tokens`."""

    def observe(self, output: Output, length: int) -> None:
        """Learn from the target's forward; only the first `length` positions of the sequence are final."""


class Drafter(Protocol):
    """Proposes tokens; `max_gamma` is the longest proposal it was made for, None for any."""

    name: str
    max_gamma: int | None

    def open(self, engine: Engine, sampling: Sampling, capacity: int) -> DrafterSession: ...


@dataclass(frozen=True, kw_only=True)
class DraftModel:
    """A small model of its own that drafts token by token (Leviathan et al. 2023).

    With a `threshold` it stops after a proposal that it gave less than that probability. What is proposed
    before decides how much is proposed, never a token's own fate, so this stays lossless.
    """

    model: Llama
    threshold: float | None = None
    name: str = "draft"
    max_gamma: int | None = None

    def open(self, engine: Engine, sampling: Sampling, capacity: int) -> DrafterSession:
        if engine.static:
            return engine.open_draft(self.model, sampling, self.threshold)
        return DraftModelSession(self, engine, sampling, capacity)


class DraftModelSession:
    """Its cache follows the sequence; after a full accept its first forward also catches up one token."""

    def __init__(self, drafter: DraftModel, engine: Engine, sampling: Sampling, capacity: int):
        self.session = engine.open(drafter.model, capacity)
        self.sampling, self.threshold = sampling, drafter.threshold or 0.0
        self.vocabulary = drafter.model.config.vocabulary
        self.cached, self.known = engine.context_rule == "sliding", None

    def propose(self, tokens: Sequence[int], gamma: int, generator: np.random.Generator) -> Proposal:
        sequence, rows = list(tokens), []
        for uniform in generator.random(gamma):
            logits_TV = self.session.forward(sequence, rows=1).logits_TV
            rows.append(distribution(logits_TV[0].cpu().numpy(), self.sampling))
            sequence.append(int(draw(rows[-1], uniform)))
            if rows[-1][sequence[-1]] < self.threshold:
                break
        if not rows:
            return no_proposal(self.vocabulary)
        behind = len(tokens) - 1 - self.known if self.cached and self.known is not None else 0
        self.known = len(sequence) - 1
        return Proposal(tokens=sequence[len(tokens) :], probs_GV=np.stack(rows), forwards=len(rows), caught_up=behind)

    def observe(self, output: Output, length: int) -> None:
        self.session.rollback(length)
        if self.known is not None:
            self.known = min(self.known, length)


@dataclass(frozen=True, kw_only=True)
class MTPDrafter:
    """The target's own MTP module of depth 1: one proposal a round, from the target's hidden states."""

    target: Llama
    mtp: MTPModule
    name: str = "mtp"
    max_gamma: int | None = 1

    def open(self, engine: Engine, sampling: Sampling, capacity: int) -> DrafterSession:
        if engine.static:
            return engine.open_mtp(self.target, self.mtp, sampling)
        return MTPSessionDrafter(self.target, self.mtp, engine, sampling, capacity)


class MTPSessionDrafter:
    """Drafts nothing in the first round, when the target has not run yet."""

    def __init__(self, target: Llama, mtp: MTPModule, engine: Engine, sampling: Sampling, capacity: int):
        self.session = engine.open_mtp(target, mtp, capacity)
        self.sampling, self.cached = sampling, engine.context_rule == "sliding"
        self.vocabulary = target.config.vocabulary
        self.output: Output | None = None

    def propose(self, tokens: Sequence[int], gamma: int, generator: np.random.Generator) -> Proposal:
        if self.output is None or gamma == 0:
            return no_proposal(self.vocabulary)
        behind = len(tokens) - 2 - self.output.first if self.cached else 0
        logits_V = self.session.forward(self.output, tokens)
        probs_V = distribution(logits_V.cpu().numpy(), self.sampling)
        token = int(draw(probs_V, generator.random()))
        return Proposal(tokens=[token], probs_GV=probs_V[None], forwards=1, caught_up=behind)

    def observe(self, output: Output, length: int) -> None:
        self.output = output
