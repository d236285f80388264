"""An engine that remembers: each distinct history of forwards and rollbacks is computed once, by the real one.

A session's answer depends only on what it was asked before. Many short texts after one prompt share their
histories, so that the complete decoder, with its caches, rollbacks and drafters' states, runs thousands of
times for the price of the histories that differ. The first time a history turns up, the session of the
engine that is remembered does it, from a copy of its state.
"""

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from specledger.decoding.engines import Engine, Output
from specledger.models.llama import Llama
from specledger.sampling.distributions import Sampling


@dataclass(kw_only=True)
class Moment:
    """What a history led to: its last answer, how to get a session of one's own in that state, what has followed."""

    fresh: Callable[[], Any]
    answer: Any = None
    asked: tuple = ()  # kept, since an output is told by its identity
    after: dict[tuple, "Moment"] = field(default_factory=dict)


def copies(session: Any, models: dict[int, Any]) -> Callable[[], Any]:
    """Copies of a session's state; the models' weights are shared."""
    return lambda: copy.deepcopy(session, dict(models))


class RememberedSession:
    """Walks the tree of histories; takes the place of a TargetSession and a Proposer."""

    caught_up = 0

    def __init__(self, start: Moment, models: dict[int, Any]):
        self.moment, self.models = start, models

    def forward(self, *arguments: Any, **named: Any) -> Any:
        """forward(tokens, rows=...) of a target."""
        return self._ask("forward", *arguments, **named)

    def branch(self, *arguments: Any) -> Any:
        """branch(tokens, proposed, tree) of a target."""
        return self._ask("branch", *arguments)

    def begin(self, *arguments: Any) -> Any:
        """begin(output, tokens) of a proposer."""
        return self._ask("begin", *arguments)

    def expand(self, *arguments: Any) -> Any:
        """expand(parents, tokens) of a proposer."""
        return self._ask("expand", *arguments)

    def _ask(self, name: str, *arguments: Any, **named: Any) -> Any:
        key = (name, *(_told(value) for value in (*arguments, *named.values())))
        known = self.moment.after.get(key)
        if known is None:
            session = self.moment.fresh()
            answer = getattr(session, name)(*arguments, **named)
            known = self.moment.after[key] = Moment(fresh=copies(session, self.models), answer=answer, asked=arguments)
        self.moment = known
        return known.answer

    def chain(self, *_: Any) -> None:
        """What is drawn in one call depends on its uniforms, and no history is met twice: it is asked for each."""

    def rollback(self, length: int) -> None:
        self._step("rollback", length)

    def end(self, length: int) -> None:
        """Of a proposer (see `decoding.proposers`)."""
        self._step("end", length)

    def keep(self, path: Sequence[int], nodes: int) -> None:
        """Of a target that verified a tree."""
        self._step("keep", tuple(path), nodes)

    def _step(self, name: str, *arguments: Any) -> None:
        """Remembered as a step to be made when an answer is asked for: it costs less than a copy."""
        before, key = self.moment, (name, *arguments)
        known = before.after.get(key)
        if known is None:

            def stepped() -> Any:
                session = before.fresh()
                getattr(session, name)(*arguments)
                return session

            known = before.after[key] = Moment(fresh=stepped)
        self.moment = known


def _told(value: Any) -> Any:
    """What tells an argument apart; an output by its identity, which the moment keeps alive."""
    if isinstance(value, list):
        return tuple(value)
    return id(value) if isinstance(value, Output) else value


@dataclass(frozen=True, kw_only=True)
class Remembered:
    """Stands in for an `Engine`; what it remembers lasts as long as it does."""

    engine: Engine
    _starts: dict[tuple, Moment] = field(default_factory=dict, repr=False)

    @property
    def name(self) -> str:
        return self.engine.name

    @property
    def context_rule(self) -> str:
        return self.engine.context_rule

    @property
    def branches(self) -> bool:
        return self.engine.branches

    @property
    def rules(self) -> Any:
        return self.engine.rules

    def open(self, model: Llama, capacity: int) -> RememberedSession:
        return self._open((id(model), capacity), lambda: self.engine.open(model, capacity), (model,))

    def open_proposer(self, proposer: Callable[..., Any], *parts: Any, sampling: Sampling, capacity: int) -> Any:
        """One that is asked anew each time where it remembers nothing that takes long."""
        start = lambda: self.engine.open_proposer(proposer, *parts, sampling=sampling, capacity=capacity)  # noqa: E731
        if proposer.certain:
            return start()
        return self._open((proposer, *map(id, parts), sampling, capacity), start, (*parts, self.engine))

    def _open(self, key: tuple, start: Callable[[], Any], models: tuple) -> RememberedSession:
        shared = {id(model): model for model in models}
        if key not in self._starts:
            self._starts[key] = Moment(fresh=copies(start(), shared))
        return RememberedSession(self._starts[key], shared)
