"""What passes between a drafter, the target and the loop in one round.

Shapes: T positions, D width, G proposals, V vocabulary.
"""

from dataclasses import dataclass

import numpy as np
from torch import Tensor


@dataclass(frozen=True, kw_only=True)
class Output:
    """One forward: logits of its last positions, and hidden states of all that it computed.

    `first` is the index in the sequence of the first row of `hidden_TD`. An engine that judges on the
    device keeps the logits there: None.
    """

    logits_TV: Tensor | None
    hidden_TD: Tensor
    first: int


@dataclass(frozen=True, kw_only=True)
class Proposal:
    """Proposed tokens [G], the rows of q that they were drawn from [G, V], and what they cost.

    `caught_up` is how many tokens the first forward took in besides the newest.
    """

    tokens: list[int]
    probs_GV: np.ndarray
    forwards: int
    caught_up: int = 0


@dataclass(frozen=True, kw_only=True)
class LaidOut:
    """A proposal that lies where the engine's next verdict reads it; what it is comes back with the verdict."""

    forwards: int
    caught_up: int = 0


@dataclass(frozen=True, kw_only=True)
class Decision:
    """What a round yields: its `tokens` are `accept_len` of the `drafted` proposals and the one after them."""

    tokens: list[int]
    drafted: int
    accept_len: int
    accept_probs: np.ndarray | tuple[float, ...]
    output: Output


def no_proposal(vocabulary: int) -> Proposal:
    return Proposal(tokens=[], probs_GV=np.empty((0, vocabulary)), forwards=0)
