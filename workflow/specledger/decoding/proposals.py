"""What passes between a drafter, the target and the loop in one round.

Shapes: T positions, D width, G proposals, V vocabulary.
"""

from dataclasses import dataclass, field, replace

import numpy as np

from specledger.models.arrays import Array, take
from specledger.theory.trees import Tree


@dataclass(kw_only=True, slots=True)
class Output:
    """One forward: logits of its last positions, and hidden states of all that it computed.

    `first` is the index in the sequence of the first row of `hidden_TD`; `before_TD` is the stream before the last
    block, where a head asks for it.
    """

    logits_TV: Array | None
    hidden_TD: Array
    first: int
    before_TD: Array | None = None
    _along: dict[tuple[int, ...], "Output"] | None = field(default=None, repr=False)

    def along(self, rows: tuple[int, ...]) -> "Output":
        """The output of these rows alone, as if they had been computed in a line; the same object for the same rows."""
        if self._along is None:
            self._along = {}
        if rows not in self._along:
            before_TD = None if self.before_TD is None else take(self.before_TD, rows)
            hidden_TD = take(self.hidden_TD, rows)
            self._along[rows] = replace(self, hidden_TD=hidden_TD, before_TD=before_TD, _along=None)
        return self._along[rows]


@dataclass(kw_only=True, slots=True)
class Proposal:
    """Proposed tokens [G], the rows of q that they were drawn from [G, V], and what they cost.

    `caught_up` is how many tokens the first forward took in besides the newest. `tree` says what follows what; None
    is a chain. `typical` proposals are judged by typical acceptance, which is lossy, and not by `verify`.
    """

    tokens: list[int]
    probs_GV: np.ndarray
    forwards: int
    caught_up: int = 0
    tree: Tree | None = None
    typical: bool = False


@dataclass(kw_only=True, slots=True)
class Decision:
    """What a round yields: its `tokens` are `accept_len` of the `drafted` proposals and the one after them.

    `examined` is how many places of the text proposals were judged for.
    """

    tokens: list[int]
    drafted: int
    examined: int
    accept_len: int
    accept_probs: np.ndarray | tuple[float, ...]
    output: Output


def no_proposal(vocabulary: int) -> Proposal:
    return Proposal(tokens=[], probs_GV=np.empty((0, vocabulary)), forwards=0)
