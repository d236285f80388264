"""When a training's state is kept, and what is said about it: at most 1% of the time goes into checkpoints."""

import contextlib
import time
from collections.abc import Callable
from functools import cached_property
from pathlib import Path

import torch

from specledger.foundation.errors import UserError
from specledger.training import checkpoint
from specledger.training.checkpoint import Checkpoint, Unusable
from specledger.training.state import State

EVERY_S = 20.0  # what a kill -9 may cost
SHARE = 0.01  # of the time, for disks on which a checkpoint takes long


class Stopped(UserError):
    """The training was asked to stop; the text says what is kept."""


class Checkpointer:
    """Keeps one training in one file: `restore`, then `keep` whenever `due`, and `remove` at the end.

    Args:
        identity: what makes the weights, by name; a file in which any of it differs is ignored.
        say: takes a line for the user.
        asked: the name of the signal that asks to stop, or None.
    """

    def __init__(
        self,
        path: Path,
        identity: dict[str, str],
        *,
        say: Callable[[str], None],
        asked: Callable[[], str | None] = lambda: None,
        every_s: float = EVERY_S,
        share: float = SHARE,
    ):
        self.path, self.identity, self._say, self._asked = path, identity, say, asked
        self._every_s, self._share = every_s, share
        self._next, self._failed, self._kept_step = time.monotonic() + every_s, False, None

    @cached_property
    def found(self) -> Checkpoint | None:
        """What an earlier start of the same training left; anything else is named in one line and ignored."""
        try:
            return checkpoint.read(self.path, self.identity)
        except Unusable as why:
            self._say(f"checkpoint {self.path} {why}; ignored, the training starts at its first step")
            return None

    def restore(self, state: State) -> None:
        if self.found is not None:
            state.restore(self.found.tensors, self.found.facts)
            self._kept_step = state.step
            self._say(f"the training goes on after step {state.step}, from checkpoint {self.path}")

    def due(self) -> bool:
        return self._asked() is not None or time.monotonic() >= self._next

    def keep(self, state: State) -> None:
        """Write the state, or say why not and go on; Stopped if that is asked. A state with a NaN is not kept."""
        begun, tensors = time.monotonic(), state.tensors()
        if all(bool(torch.isfinite(tensor).all()) for tensor in tensors.values()):
            self._write(tensors, state)
        now = time.monotonic()
        self._next = now + max(self._every_s, (now - begun) / self._share)
        self.heed()

    def _write(self, tensors: dict, state: State) -> None:
        try:
            checkpoint.write(self.path, tensors, state.facts(), self.identity)
        except OSError as error:
            if not self._failed:  # once, not every few seconds while a disk stays full
                why = f"{error.strerror or error}; the training goes on, {self.kept()}"
                self._say(f"checkpoint {self.path} could not be written after step {state.step}: {why}")
            self._failed = True
        else:
            self._kept_step, self._failed = state.step, False

    def kept(self) -> str:
        """What lies on disk, in words."""
        if self._kept_step is None:
            return "no checkpoint is kept"
        return f"the checkpoint of step {self._kept_step} is kept in {self.path}"

    def heed(self) -> None:
        """Stopped if a signal asked for it."""
        if (name := self._asked()) is not None:
            again = "starts anew" if self._kept_step is None else "goes on from there"
            raise Stopped(f"stopped by {name}; {self.kept()}, the same command {again}")

    def remove(self) -> None:
        """The training is done: nothing stays, nor what a kill -9 left half written."""
        for path in (self.path, *self.path.parent.glob(f".{self.path.name}.*.part")):
            try:
                path.unlink(missing_ok=True)
            except OSError as error:  # the training is done all the same
                self._say(f"checkpoint {path} could not be removed: {error.strerror or error}")
        with contextlib.suppress(OSError):  # another training's checkpoint lies there
            self.path.parent.rmdir()
