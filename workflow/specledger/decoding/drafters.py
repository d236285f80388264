"""Drafters: anything that proposes tokens and says exactly which q it drew them from.

A drafter is fixed; `open` starts its state for one sequence. Shapes: G proposals, V vocabulary.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from specledger.decoding.engines import Engine, Output
from specledger.models.llama import Llama
from specledger.models.mtp import MTPModule
from specledger.models.ngram import NGram
from specledger.sampling.distributions import Sampling, distribution, draw


@dataclass(frozen=True, kw_only=True)
class Proposal:
    """Proposed tokens [G], the rows of q that they were drawn from [G, V], and what they cost."""

    tokens: list[int]
    probs_GV: np.ndarray
    forwards: int


class DrafterSession(Protocol):
    """A drafter's state while one sequence is decoded."""

    def propose(self, tokens: Sequence[int], gamma: int, generator: np.random.Generator) -> Proposal:
        """At most `gamma` tokens to follow `tokens`."""

    def observe(self, output: Output, length: int) -> None:
        """Learn from the target's forward; only the first `length` positions of the sequence are final."""


class Drafter(Protocol):
    """Proposes tokens; `max_gamma` is the longest proposal it was made for, None for any."""

    name: str
    max_gamma: int | None

    def open(self, engine: Engine, sampling: Sampling, capacity: int) -> DrafterSession: ...


def one_draw(probs_V: np.ndarray, generator: np.random.Generator) -> int:
    return int(draw(probs_V, generator.random()))


def no_proposal(vocabulary: int) -> Proposal:
    return Proposal(tokens=[], probs_GV=np.empty((0, vocabulary)), forwards=0)


@dataclass(frozen=True, kw_only=True)
class DraftModel:
    """A small model of its own that drafts token by token (Leviathan et al. 2023)."""

    model: Llama
    name: str = "draft"
    max_gamma: int | None = None

    def open(self, engine: Engine, sampling: Sampling, capacity: int) -> "DraftModelSession":
        return DraftModelSession(self.model, engine, sampling, capacity)


class DraftModelSession:
    """Its cache follows the sequence; after a full accept its first forward also catches up one token."""

    def __init__(self, model: Llama, engine: Engine, sampling: Sampling, capacity: int):
        self.session = engine.open(model, capacity)
        self.sampling = sampling
        self.vocabulary = model.config.vocabulary

    def propose(self, tokens: Sequence[int], gamma: int, generator: np.random.Generator) -> Proposal:
        sequence, rows = list(tokens), []
        for _ in range(gamma):
            logits_TV = self.session.forward(sequence, rows=1).logits_TV
            rows.append(distribution(logits_TV[0].cpu().numpy(), self.sampling))
            sequence.append(one_draw(rows[-1], generator))
        if not rows:
            return no_proposal(self.vocabulary)
        return Proposal(tokens=sequence[len(tokens) :], probs_GV=np.stack(rows), forwards=gamma)

    def observe(self, output: Output, length: int) -> None:
        self.session.rollback(length)


@dataclass(frozen=True, kw_only=True)
class NGramDrafter:
    """Counts of the training text; costs microseconds and no forward."""

    ngram: NGram
    name: str = "ngram"
    max_gamma: int | None = None

    def open(self, engine: Engine, sampling: Sampling, capacity: int) -> "NGramSession":
        return NGramSession(self.ngram, sampling)


class NGramSession:
    def __init__(self, ngram: NGram, sampling: Sampling):
        self.ngram, self.sampling = ngram, sampling
        self.plain = sampling == Sampling()

    def propose(self, tokens: Sequence[int], gamma: int, generator: np.random.Generator) -> Proposal:
        recent, rows = list(tokens[-self.ngram.order :]), []
        for _ in range(gamma):
            probs_V = self.ngram.probabilities(recent)
            if not self.plain:
                probs_V = distribution(np.log(probs_V), self.sampling)
            rows.append(probs_V)
            recent.append(one_draw(probs_V, generator))
        if not rows:
            return no_proposal(self.ngram.vocabulary)
        return Proposal(tokens=recent[-gamma:], probs_GV=np.stack(rows), forwards=gamma)

    def observe(self, output: Output, length: int) -> None:
        pass


@dataclass(frozen=True, kw_only=True)
class MTPDrafter:
    """The target's own MTP module of depth 1: one proposal a round, from the target's hidden states."""

    target: Llama
    mtp: MTPModule
    name: str = "mtp"
    max_gamma: int | None = 1

    def open(self, engine: Engine, sampling: Sampling, capacity: int) -> "MTPSessionDrafter":
        return MTPSessionDrafter(self.target, self.mtp, engine, sampling, capacity)


class MTPSessionDrafter:
    """Drafts nothing in the first round, when the target has not run yet."""

    def __init__(self, target: Llama, mtp: MTPModule, engine: Engine, sampling: Sampling, capacity: int):
        self.session = engine.open_mtp(target, mtp, capacity)
        self.sampling = sampling
        self.vocabulary = target.config.vocabulary
        self.output: Output | None = None

    def propose(self, tokens: Sequence[int], gamma: int, generator: np.random.Generator) -> Proposal:
        if self.output is None or gamma == 0:
            return no_proposal(self.vocabulary)
        logits_V = self.session.forward(self.output, tokens)
        probs_V = distribution(logits_V.cpu().numpy(), self.sampling)
        return Proposal(tokens=[one_draw(probs_V, generator)], probs_GV=probs_V[None], forwards=1)

    def observe(self, output: Output, length: int) -> None:
        self.output = output
