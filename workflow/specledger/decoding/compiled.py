"""The engine `compiled`: rule `sliding` with static shapes, one compiled call a draft and one a verdict.

The verdict's call runs the target over the newest token and gamma places for proposals, makes the
distributions, judges and draws: the host reads one vector a round, and on a GPU waits once. A round with fewer
proposals leaves places empty. Prompts are read uncompiled, once a text.
Shapes: G proposals, T = G + 1 positions, V vocabulary, D width.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from torch import Tensor

from specledger.decoding.counts import Clock
from specledger.decoding.proposals import Decision, LaidOut, Output, Proposal, no_proposal
from specledger.decoding.static import draft_step, mtp_step, plain_step, verdict_step
from specledger.decoding.steps import Box, Step
from specledger.models.llama import Llama
from specledger.models.ring import Ring
from specledger.sampling.distributions import Sampling
from specledger.sampling.uniforms import Uniforms

MIN_POSITIONS = 1024  # of the tables of angles, so that texts of most lengths share a compiled call
CHUNK = 16  # tokens of a prompt that are read at once


@dataclass(kw_only=True)
class Place:
    """Where a text's proposals lie between the drafter's call and the verdict's: `tokens` is drafted, then G."""

    gamma: int
    tokens: Box
    probs: Box
    hidden_TD: Tensor | None = None  # the prompt's, for drafters that go on from the target's states

    @classmethod
    def make(cls, gamma: int, vocabulary: int, device: torch.device) -> "Place":
        tokens = Box(gamma + 1, torch.int64, device)
        return cls(gamma=gamma, tokens=tokens, probs=Box((gamma, vocabulary), torch.float64, device))

    def put(self, proposal: Proposal) -> None:
        """A proposal that was made on the host."""
        count = len(proposal.tokens)
        self.tokens.numbers[0] = count
        if count:
            self.tokens.numbers[1 : count + 1] = proposal.tokens
            self.probs.numbers[:count] = proposal.probs_GV
        self.tokens.send()
        self.probs.send()


@dataclass(frozen=True, kw_only=True)
class Seat:
    """One compiled step with its ring and the vectors that it reads."""

    ring: Ring
    ints: Box
    floats: Box
    step: Step

    def send(self) -> None:
        self.ints.send()
        self.floats.send()


class CompiledEngine:
    """Keeps what it compiled, and decodes one text at a time: a drafter joins the text whose judge was opened last."""

    name = "compiled"
    context_rule = "sliding"
    static = True
    branches = False  # no heads, no trees

    def __init__(self, longest: int = 0) -> None:
        """`longest`: tokens of the longest text to come, so that what is compiled for one text serves all."""
        self.longest = longest
        self.seats: dict[tuple, Seat] = {}
        self.places: dict[tuple, Place] = {}
        self.place: Place | None = None
        self.positions = 0

    @property
    def compile_s(self) -> float:
        """Seconds spent compiling so far."""
        return sum(seat.step.compile_s for seat in self.seats.values())

    def open_judge(self, target: Llama, sampling: Sampling, capacity: int, gamma: int) -> "CompiledJudge":
        """The judge of one text of at most `capacity` tokens with proposals of at most `gamma`."""
        device, key = target.lm_head.weight.device, (id(target), gamma)
        if key not in self.places:
            self.places[key] = Place.make(gamma, target.config.vocabulary, device)
        self.place, self.positions = self.places[key], _positions(max(self.longest, capacity) + gamma + 1)
        build = plain_step if gamma == 0 else partial(verdict_step, gamma=gamma)
        seat = self._seat(("judge",), target, lambda ring: build(target, ring, sampling), sampling, (2, 1 + gamma))
        return CompiledJudge(target, seat, self.place)

    def open_draft(self, model: Llama, sampling: Sampling, threshold: float | None) -> "CompiledDraft":
        build = lambda ring: draft_step(model, ring, sampling, threshold)  # noqa: E731
        seat = self._seat(("draft", threshold), model, build, sampling, (5, self.place.gamma))
        return CompiledDraft(model, seat, self.place)

    def open_mtp(self, target: Llama, mtp: torch.nn.Module, sampling: Sampling) -> "CompiledMTP":
        build = lambda ring: mtp_step(target, mtp, ring, sampling)  # noqa: E731
        seat = self._seat(("mtp", id(mtp)), target, build, sampling, (4 + self.place.gamma, self.place.gamma), layers=1)
        return CompiledMTP(target, mtp, seat, self.place)

    def open_proposer(self, proposer: Callable, *parts, sampling: Sampling, capacity: int):
        """One that proposes on the host."""
        return proposer(*parts, engine=self, sampling=sampling, capacity=capacity)

    def _seat(
        self,
        kind: tuple,
        model: Llama,
        build: Callable,
        sampling: Sampling,
        sizes: tuple[int, int],
        layers: int | None = None,
    ) -> Seat:
        """The seat of a step; models are told by identity, and the step keeps them alive."""
        key = (*kind, id(model), id(self.place), sampling, self.positions)
        if key not in self.seats:
            device, widest = model.lm_head.weight.device, max(self.place.gamma + 2, CHUNK)
            layers = layers or model.config.layers
            ring = Ring.allocate(model, layers=layers, widest=widest, positions=self.positions)
            ints, floats = Box(sizes[0], torch.int64, device), Box(sizes[1], torch.float64, device)
            self.seats[key] = Seat(ring=ring, ints=ints, floats=floats, step=Step(build(ring), device))
        return self.seats[key]


def _positions(capacity: int) -> int:
    """Rows of the tables of angles: a power of two, so that texts of most lengths share a compiled call."""
    return max(MIN_POSITIONS, 1 << (capacity - 1).bit_length())


def read_prompt(model: Llama, ring: Ring, tokens: Sequence[int]) -> Tensor:
    """Fill the ring with `tokens`, and return their hidden states [T, D]."""
    device, found = model.lm_head.weight.device, [model.lm_head.weight.new_zeros(0, model.config.width)]
    for first in range(0, len(tokens), CHUNK):
        some_BT = torch.tensor([tokens[first : first + CHUNK]], device=device)
        found.append(model.hidden(some_BT, ring.at(torch.tensor(first, device=device)))[0])
    return torch.cat(found)


class CompiledJudge:
    """The target of one text."""

    def __init__(self, target: Llama, seat: Seat, place: Place):
        self.target, self.seat, self.place = target, seat, place
        self.prompt_read = False
        self.ahead = np.empty(0)

    def _begin(self, tokens: Sequence[int]) -> None:
        if not self.prompt_read:
            hidden_TD = read_prompt(self.target, self.seat.ring, tokens[:-1])
            self.prompt_read, self.place.hidden_TD = True, hidden_TD
        self.seat.ints.numbers[:] = len(tokens) - 1, tokens[-1]

    def sample(self, tokens: Sequence[int], uniforms: Uniforms, clock: Clock) -> int:
        """The token after `tokens` by plain decoding."""
        self._begin(tokens)
        self.seat.floats.numbers[0] = uniforms.extra.random()
        self.seat.send()
        told = self.seat.step(self.seat.ints.device, self.seat.floats.device)
        clock.lap("verify")
        token, total = told.tolist()
        clock.lap("sync")
        _check_total(total, len(tokens))
        return int(token)

    def judge(self, tokens: Sequence[int], proposal: Proposal | LaidOut, uniforms: Uniforms, clock: Clock) -> Decision:
        """The verdict on what lies in the place, after `tokens`."""
        seat, place, gamma = self.seat, self.place, self.place.gamma
        self._begin(tokens)
        if isinstance(proposal, Proposal):
            place.put(proposal)
        if len(self.ahead) < gamma:  # how many will be used is known when the verdict is
            self.ahead = np.concatenate((self.ahead, uniforms.accept.random(gamma - len(self.ahead))))
        seat.floats.numbers[0] = uniforms.extra.random()
        seat.floats.numbers[1:] = self.ahead[:gamma]
        seat.send()
        told, hidden_TD = seat.step(seat.ints.device, seat.floats.device, place.tokens.device, place.probs.device)
        clock.lap("verify")
        accept_len, token, total, drafted, *rest = told.tolist()
        clock.lap("sync")
        _check_total(total, len(tokens))
        drafted, accept_len = int(drafted), int(accept_len)
        self.ahead = self.ahead[drafted:]
        return Decision(
            tokens=[*map(int, rest[:accept_len]), int(token)],
            drafted=drafted,
            examined=min(accept_len + 1, drafted),
            accept_len=accept_len,
            accept_probs=tuple(rest[gamma : gamma + drafted]),
            output=Output(logits_TV=None, hidden_TD=hidden_TD, first=len(tokens) - 1),
        )

    def rollback(self, length: int) -> None:
        pass


def _check_total(total: float, length: int) -> None:
    if not 0.0 < total < float("inf"):
        raise ValueError(f"target_probs after {length} tokens must be a distribution, got a mass of {total} to draw")


class CompiledDraft:
    """The draft model of one text; `known` tokens of it are in its ring."""

    def __init__(self, model: Llama, seat: Seat, place: Place):
        self.model, self.seat, self.place = model, seat, place
        self.known: int | None = None

    def propose(self, tokens: Sequence[int], gamma: int, generator: np.random.Generator) -> Proposal | LaidOut:
        """Lay at most `gamma` proposals into the place."""
        if gamma == 0:
            return no_proposal(self.model.config.vocabulary)
        if self.known is None:
            read_prompt(self.model, self.seat.ring, tokens[:-1])
            self.known = len(tokens) - 1
        lacking = len(tokens) - self.known
        assert 1 <= lacking <= 2, f"a round leaves the draft one or two tokens behind, not {lacking}"
        self.seat.ints.numbers[:] = self.known, lacking - 1, gamma, tokens[self.known], tokens[-1]
        self.seat.floats.numbers[:gamma] = generator.random(gamma)
        self.seat.send()
        self.seat.step(
            self.seat.ints.device, self.seat.floats.device, self.place.tokens.device, self.place.probs.device
        )
        self.known = len(tokens) + self.place.gamma - 1
        return LaidOut(forwards=self.place.gamma)

    def observe(self, output: Output, length: int) -> None:
        if self.known is not None:
            self.known = min(self.known, length)


class CompiledMTP:
    """The MTP module of one text, one proposal a round from the target's last hidden states."""

    def __init__(self, target: Llama, mtp: torch.nn.Module, seat: Seat, place: Place):
        self.target, self.mtp, self.seat, self.place = target, mtp, seat, place
        self.output: Output | None = None
        self.prompt_read = False

    def propose(self, tokens: Sequence[int], gamma: int, generator: np.random.Generator) -> Proposal | LaidOut:
        if self.output is None or gamma == 0:
            return no_proposal(self.target.config.vocabulary)
        first, count = self.output.first, len(tokens) - 1 - self.output.first
        if not self.prompt_read:
            self._read_prompt(tokens[1 : first + 1])
        seat, place = self.seat, self.place
        seat.ints.numbers[:3] = first, count - 1, gamma
        seat.ints.numbers[3 : 3 + count] = tokens[first + 1 :]
        seat.floats.numbers[:gamma] = generator.random(gamma)
        seat.send()
        seat.step(seat.ints.device, seat.floats.device, self.output.hidden_TD, place.tokens.device, place.probs.device)
        return LaidOut(forwards=1)

    def _read_prompt(self, next_tokens: Sequence[int]) -> None:
        """Fill the ring with the prompt's hidden states, each with the token after it."""
        device, ring, hidden_TD = self.place.hidden_TD.device, self.seat.ring, self.place.hidden_TD
        for first in range(0, len(next_tokens), CHUNK):
            some_BT = torch.tensor([next_tokens[first : first + CHUNK]], device=device)
            at = ring.at(torch.tensor(first, device=device))
            self.mtp(self.target, hidden_TD[None, first : first + some_BT.shape[1]], some_BT, at)
        self.prompt_read = True

    def observe(self, output: Output, length: int) -> None:
        self.output = output
