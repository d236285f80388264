"""What decoding returns: the tokens, what each round did, and where the time went."""

import time
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import torch

from specledger.foundation.devices import synchronize

PHASES = ("draft", "catch_up", "verify", "accept", "sync")


class Round(NamedTuple):
    """One round: how many tokens were proposed, how many accepted, and the drafter's forwards.

    `accept_probs` are min(1, p/q) of the proposals. `judged` is how many places of the text proposals were judged for:
    of a chain those up to the first rejection, which is what None stands for.
    """

    drafted: int
    accept_len: int
    draft_forwards: int
    accept_probs: tuple[float, ...] = ()
    judged: int | None = None

    @property
    def examined(self) -> int:
        return min(self.accept_len + 1, self.drafted) if self.judged is None else self.judged


class Clock:
    """Seconds by phase of one generation.

    On a GPU a reading is an event in the device's queue, so that the host needn't wait for it; the time between
    two events includes the device's waiting for work. `clocked` False reads the beginning and the end alone.
    A drafter that must take in tokens besides the newest does so in its first forward: what such proposals take
    longer than the others of the text, in the median, is given to `catch_up`.
    """

    def __init__(self, device: torch.device, clocked: bool = True):
        self.device, self.clocked = device, clocked
        self.phases: list[str] = []
        self.caught_up: list[bool] = []
        synchronize(device)
        self.start = time.perf_counter()
        self.read = _event if device.type == "cuda" else time.perf_counter
        self.marks = [self.read()] if clocked else []

    def lap(self, phase: str) -> None:
        """Give the time since the last reading to `phase`."""
        if self.clocked:
            self.marks.append(self.read())
            self.phases.append(phase)

    def lap_draft(self, caught_up: int) -> None:
        """A proposal was made, with so many tokens taken in besides the newest."""
        if self.clocked:
            self.lap("draft")
            self.caught_up.append(caught_up > 0)

    def stop(self) -> tuple[float, dict[str, float]]:
        """Seconds of the whole, and by phase where they were clocked; what no reading covers is in neither phase."""
        synchronize(self.device)
        wall_s = time.perf_counter() - self.start
        if not self.clocked:
            return wall_s, {}
        laps = np.array([_between(a, b) for a, b in pairwise(self.marks)])
        phases = np.array(self.phases, dtype=object)
        seconds = {phase: float(laps[phases == phase].sum()) for phase in PHASES}
        # On a busy machine a few long laps may make more of it than there was.
        extra = min(_extra(laps[phases == "draft"], np.array(self.caught_up, dtype=bool)), seconds["draft"])
        return wall_s, seconds | {"draft": seconds["draft"] - extra, "catch_up": extra}


def _event():
    event = torch.cuda.Event(enable_timing=True)
    event.record()
    return event


def _between(a, b) -> float:
    return b - a if isinstance(a, float) else a.elapsed_time(b) / 1000


def _extra(drafts: np.ndarray, caught_up: np.ndarray) -> float:
    """What proposals that caught up took longer than the rest; 0 where there is nothing to compare."""
    if caught_up.all() or not caught_up.any():
        return 0.0
    longer = np.median(drafts[caught_up]) - np.median(drafts[~caught_up])
    return float(max(0.0, longer) * caught_up.sum())


@dataclass(frozen=True, kw_only=True)
class Generated:
    """A decoded text: `tokens` without the prompt, its rounds in order, and its seconds."""

    tokens: list[int]
    rounds: list[Round]
    wall_s: float
    phase_s: dict[str, float] = field(default_factory=dict)

    @property
    def target_forwards(self) -> int:
        return len(self.rounds)

    @property
    def draft_forwards(self) -> int:
        return sum(r.draft_forwards for r in self.rounds)

    @property
    def drafted(self) -> int:
        return sum(r.drafted for r in self.rounds)

    @property
    def accepted(self) -> int:
        return sum(r.accept_len for r in self.rounds)

    @property
    def examined(self) -> int:
        """Proposals that the rule looked at: those after a rejection are dropped unseen."""
        return sum(r.examined for r in self.rounds)
