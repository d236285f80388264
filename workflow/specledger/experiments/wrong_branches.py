"""Complete decoders of trees with a fault in the target's forward over the nodes or in what its cache keeps of them.

The rule and the drafter are right in all of them.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from specledger.decoding.engines import CachedSession, Output
from specledger.experiments.remembered import Remembered
from specledger.experiments.wrong_decoders import WrongDecoder, WrongSessions
from specledger.experiments.wrong_rules import SLIP
from specledger.models.cache import Branches, Where
from specledger.models.llama import Llama
from specledger.theory.trees import Tree

FORKED = Tree.of((-1, -1, -1, 0, 1))  # siblings, of which the first two go on
FAN = Tree.of((-1, -1, -1, -1))  # rounds are short, so that what they leave in the cache is soon read


@dataclass(frozen=True, kw_only=True)
class InOneLine(Branches):
    """Nodes that are taken for tokens one after another in what `takes` names of a `Where`."""

    takes: str

    def where(self, count: int) -> Where:
        honest = super().where(count)
        self.cache.rollback(self.cache.length - count)
        return replace(honest, **{self.takes: getattr(self.cache.where(count), self.takes)})


def in_one_line(session: CachedSession, takes: str) -> CachedSession:
    session.cache.branches = partial(InOneLine, takes=takes)
    return session


class OtherBranchSession:
    """Keeps as many nodes as were accepted, but those of the branch at `place` among all that are as long."""

    def __init__(self, session: Any, place: int):
        self.session, self.place = session, place
        self.tree: Tree | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self.session, name)

    def branch(self, tokens: Sequence[int], proposed: Sequence[int], tree: Tree) -> Output:
        self.tree = tree
        return self.session.branch(tokens, proposed, tree)

    def keep(self, path: Sequence[int], nodes: int) -> None:
        other = self.tree.path(self.tree.levels[len(path) - 1][self.place]) if path else ()
        self.session.keep(other, nodes)


def wrong_branches(target: Llama) -> list[WrongDecoder]:
    """The battery of decoders of trees, the correct one first."""

    def inside(wrong: Callable) -> Callable[[Remembered], Remembered]:
        """What a session does differently is done once for each history, as by the engine that is remembered."""
        return lambda honest: Remembered(engine=WrongSessions(honest=honest.engine, target=target, wrong=wrong))

    def keeping(place: int) -> Callable[[Remembered], WrongSessions]:
        wrong = partial(OtherBranchSession, place=place)
        return lambda honest: WrongSessions(honest=honest, target=target, wrong=wrong)

    def fault(name: str, sees: tuple[str, ...], tree: Tree, source: str = SLIP, **parts: Any) -> WrongDecoder:
        return WrongDecoder(name=name, source=source, uses="draft", sees=sees, tree=tree, **parts)

    ngrams = ("2-gram", "3-gram")
    return [
        fault("correct", (), FORKED, "Miao et al. 2024 (SpecInfer), algorithm 2"),
        fault("cousins-seen", ngrams, FORKED, engine=inside(partial(in_one_line, takes="mask"))),
        fault("node-position-by-row", ngrams, FORKED, engine=inside(partial(in_one_line, takes="places"))),
        fault("first-branch-kept", ("3-gram",), FAN, engine=keeping(0)),
        fault("last-branch-kept", ("3-gram",), FAN, engine=keeping(-1)),
    ]
