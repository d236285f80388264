"""Complete decoders with a fault in a cache, a drafter's state, a limit or a counter.

Each wraps the honest parts in `decoding`; the rule itself is right in all of them. `source` names the
public report of such a fault, and `sees` the tests that should catch it. Those of trees are in `wrong_branches`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from specledger.decoding.counts import Generated
from specledger.decoding.drafter import Drafter
from specledger.decoding.engines import Engine, Output
from specledger.decoding.proposals import Proposal
from specledger.models.llama import Llama
from specledger.sampling.distributions import Sampling
from specledger.theory.trees import Tree


@dataclass(frozen=True, kw_only=True)
class WrongDecoder:
    """A fault, the drafter that it is shown with, and what to put in the place of honest parts.

    `drafter` and `engine` wrap what is given to the loop; `beyond` is how many tokens more it is asked
    for at a gamma; `report` changes what comes out. With a `tree` the drafter proposes that, and the engine keeps
    a cache.
    """

    name: str
    source: str
    uses: str
    sees: tuple[str, ...]
    drafter: Callable[[Drafter], Any] = lambda honest: honest
    engine: Callable[[Any], Any] = lambda honest: honest
    beyond: Callable[[int], int] = lambda gamma: 0
    report: Callable[[Generated, int], Generated] = lambda text, count: text
    tree: Tree | None = None


@dataclass(frozen=True, kw_only=True)
class Misremembering:
    """A drafter that sees another context than the text: `recall(tokens, past)` says which."""

    honest: Drafter
    recall: Callable[[list[int], list["Past"]], list[int]]

    @property
    def name(self) -> str:
        return self.honest.name

    @property
    def max_gamma(self) -> int | None:
        return self.honest.max_gamma

    def open(self, engine: Engine, sampling: Sampling, capacity: int) -> "MisrememberingSession":
        return MisrememberingSession(self, engine, sampling, capacity)


@dataclass(frozen=True, kw_only=True)
class Past:
    """What a round began with, and what was proposed in it."""

    length: int
    proposed: list[int]


class MisrememberingSession:
    """Asks the honest drafter anew each time, so that only the context is wrong."""

    def __init__(self, drafter: Misremembering, engine: Engine, sampling: Sampling, capacity: int):
        self.drafter, self.opening = drafter, (engine, sampling, capacity + 64)
        self.past: list[Past] = []

    def propose(self, tokens: Sequence[int], gamma: int, generator: np.random.Generator) -> Proposal:
        session = self.drafter.honest.open(*self.opening)
        proposal = session.propose(self.drafter.recall(list(tokens), self.past), gamma, generator)
        self.past.append(Past(length=len(tokens), proposed=proposal.tokens))
        return proposal

    def observe(self, output: Output, length: int) -> None:
        pass


def two_short(tokens: list[int], past: list[Past]) -> list[int]:
    """The cache was cut two entries too far: the token before the last and the one before that are gone."""
    return [*tokens[:-3], tokens[-1]] if past else tokens


def without_last_accepted(tokens: list[int], past: list[Past]) -> list[int]:
    """After a full accept the last proposal never entered the draft's cache."""
    missing = set()
    ends = [*(entry.length for entry in past), len(tokens)][1:]
    for entry, end in zip(past, ends, strict=True):
        if entry.proposed and end == entry.length + len(entry.proposed) + 1:
            missing.add(end - 2)
    return [token for place, token in enumerate(tokens) if place not in missing]


def rejected_kept(tokens: list[int], past: list[Past]) -> list[int]:
    """Rejected proposals leave the cache a round late: they still stand before the newest token."""
    if not past or len(tokens) == past[-1].length + len(past[-1].proposed) + 1:
        return tokens
    last = past[-1]
    return [*tokens[: last.length], *last.proposed, tokens[-1]]


@dataclass(frozen=True, kw_only=True)
class WrongSessions:
    """An engine whose sessions of the target are `wrong`; of the drafter's models they are its own.

    `room` is how many positions more than asked for they keep.
    """

    honest: Any
    target: Llama
    wrong: Callable[[Any], Any]
    room: int = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self.honest, name)

    def open(self, model: Llama, capacity: int) -> Any:
        session = self.honest.open(model, capacity + self.room)
        return self.wrong(session) if model is self.target else session


class UntrimmedSession:
    """A target whose cache doesn't shrink: what was rejected stays, and the caller tells only how much is new."""

    def __init__(self, session: Any):
        self.session, self.fed, self.known = session, [], 0

    def forward(self, tokens: Sequence[int], rows: int) -> Output:
        self.fed += tokens[self.known :]
        self.known = len(tokens)
        return self.session.forward(self.fed, rows=rows)

    def rollback(self, length: int) -> None:
        self.known = min(self.known, length)


@dataclass(frozen=True, kw_only=True)
class StaleHidden:
    """An MTP drafter that is fed the hidden state of the position before."""

    honest: Drafter

    def __getattr__(self, name: str) -> Any:
        return getattr(self.honest, name)

    def open(self, engine: Engine, sampling: Sampling, capacity: int) -> Any:
        session = self.honest.open(engine, sampling, capacity)
        observe = session.observe

        def stale(output: Output, length: int) -> None:
            hidden_TD = torch.cat((output.hidden_TD[:1], output.hidden_TD[:-1]))
            observe(Output(logits_TV=output.logits_TV, hidden_TD=hidden_TD, first=output.first), length)

        session.observe = stale
        return session


@dataclass(frozen=True, kw_only=True)
class Overcounted(Generated):
    """A text whose report takes every proposal for examined."""

    @property
    def examined(self) -> int:
        return self.drafted


def _cut_tokens_only(text: Generated, count: int) -> Generated:
    """The text ends where it should, its counters run on."""
    return replace(text, tokens=text.tokens[:count])


def _at_round_end(text: Generated, count: int) -> Generated:
    """What a loop emits that doesn't shorten its last round: all of the round in which the end fell."""
    rounds, length = [], 0
    for done in text.rounds:
        rounds.append(done)
        length += done.accept_len + 1
        if length >= count:
            break
    return replace(text, tokens=text.tokens[:length], rounds=rounds)


def _counting_the_extra_token(text: Generated, count: int) -> Generated:
    rounds = [done._replace(accept_len=done.accept_len + 1) for done in text.rounds]
    return replace(text, rounds=rounds)


def _everything_examined(text: Generated, count: int) -> Generated:
    return Overcounted(tokens=text.tokens, rounds=text.rounds, wall_s=text.wall_s, phase_s=text.phase_s)


def wrong_states(target: Llama) -> list[WrongDecoder]:
    """A cache or a drafter's state is wrong; only that of the target changes what comes out."""

    def forgetting(name: str, source: str, recall: Callable) -> WrongDecoder:
        wrap = lambda honest: Misremembering(honest=honest, recall=recall)  # noqa: E731
        return WrongDecoder(name=name, source=source, uses="draft", sees=("acceptance",), drafter=wrap)

    return [
        forgetting("draft-cache-two-short", "mlxcel #994", two_short),
        forgetting("draft-cache-lacks-accepted", "vLLM PR #9730", without_last_accepted),
        forgetting("rejection-a-round-late", "openvino.genai #4190", rejected_kept),
        WrongDecoder(
            name="target-cache-untrimmed",
            source="mlx-lm PR #1109",
            uses="draft",
            sees=("3-gram", "acceptance"),
            engine=lambda honest: WrongSessions(honest=honest, target=target, wrong=UntrimmedSession, room=64),
        ),
        WrongDecoder(
            name="mtp-hidden-stale",
            source="vLLM PR #36531",
            uses="mtp",
            sees=("acceptance",),
            drafter=lambda honest: StaleHidden(honest=honest),
        ),
    ]


def wrong_accounts() -> list[WrongDecoder]:
    """A limit or a counter is wrong."""

    def reporting(name: str, source: str, report: Callable, past_the_end: bool = False) -> WrongDecoder:
        beyond = (lambda gamma: gamma) if past_the_end else (lambda gamma: 0)
        return WrongDecoder(name=name, source=source, uses="draft", sees=("accounting",), report=report, beyond=beyond)

    return [
        reporting("gamma-past-the-end", "exllamav2 #274, vLLM #57941", _at_round_end, past_the_end=True),
        reporting("tokens-after-the-end-counted", "vLLM #56101", _cut_tokens_only, past_the_end=True),
        reporting("acceptance-above-one", "sglang PR #11572", _counting_the_extra_token),
        reporting("accepted-over-drafted", "model-serving-minefield #98", _everything_examined),
    ]


def wrong_decoders(target: Llama) -> list[WrongDecoder]:
    """The battery of complete decoders of chains, the correct one first."""
    correct = WrongDecoder(name="correct", source="Leviathan et al. 2023, algorithm 1", uses="draft", sees=())
    return [correct, *wrong_states(target), *wrong_accounts()]
