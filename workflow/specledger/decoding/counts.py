"""What decoding returns: the tokens, what each round did, and where the time went."""

import time
from dataclasses import dataclass, field
from typing import NamedTuple

from specledger.foundation.devices import synchronize

PHASES = ("draft", "verify", "accept")


class Round(NamedTuple):
    """One round: how many tokens were proposed, how many accepted, and the drafter's forwards.

    `accept_probs` are min(1, p/q) of the proposals.
    """

    drafted: int
    accept_len: int
    draft_forwards: int
    accept_probs: tuple[float, ...] = ()


class Clock:
    """Seconds by phase of one generation; on a GPU each reading waits for the device first."""

    def __init__(self, device):
        self.device = device
        self.seconds = dict.fromkeys(PHASES, 0.0)
        synchronize(device)
        self.start = self.last = time.perf_counter()

    def lap(self, phase: str) -> None:
        """Give the time since the last reading to `phase`."""
        if self.device.type == "cuda":
            synchronize(self.device)
        now = time.perf_counter()
        self.seconds[phase] += now - self.last
        self.last = now

    def total(self) -> float:
        synchronize(self.device)
        return time.perf_counter() - self.start


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
        return sum(min(r.accept_len + 1, r.drafted) for r in self.rounds)
