"""What the user sees while a stage runs: lines in its log, and on the terminal a bar, lines, or the view of the run.

Where the run draws a view of all its jobs (`view.py`, which sets `VIEWED`), a stage writes to its log alone: the view
reads there how far the stage is, and prints the lines that are marked as said.
"""

import contextlib
import os
import sys
import time
from pathlib import Path

from tqdm import tqdm

LOG_EVERY_S = 5.0
VIEW_EVERY_S = 1.0
PRINT_EVERY_S = 60.0
VIEWED = "SPECLEDGER_VIEWED"  # in the environment of the jobs of a run that draws a view
SAID = "! "  # stands in a log, behind the time, before a line that the user should see


class Log:
    """The log file of a stage; also the place where its traceback goes."""

    def __init__(self, path: Path | None):
        self._file = None
        if path is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = path.open("w", encoding="utf-8", buffering=1)

    def write(self, line: str) -> None:
        if self._file is not None:
            with contextlib.suppress(OSError):  # a full disk must not end work that only tells how far it is
                print(time.strftime("%H:%M:%S"), line, file=self._file)

    @property
    def viewed(self) -> bool:
        """Whether a view of the run reads this log."""
        return self._file is not None and VIEWED in os.environ

    def say(self, line: str) -> None:
        """To the log and to the terminal."""
        self.tell(f"specledger: {line}", line)

    def tell(self, line: str, logged: str) -> None:
        """A line to the terminal, by way of the view where there is one, and `logged` to the log."""
        viewed = self.viewed
        if viewed:
            self.write(SAID + line)
        if not viewed or "\n" in logged:
            self.write(logged)
        if viewed:
            return
        with contextlib.suppress(OSError):  # the terminal was closed
            print(line, file=sys.stderr, flush=True)


class Progress:
    """Steps of one task, of which some may be `already` done: call `advance` after each; the bar goes at the end."""

    def __init__(self, label: str, total: int, log: Log, unit: str = "step", already: int = 0):
        self.label, self.total, self.log, self.unit = label, total, log, unit
        self.done = self._already = already
        self.start = time.monotonic()
        self._logged, self._printed = self.start, self.start
        self._every_s = VIEW_EVERY_S if log.viewed else LOG_EVERY_S
        shown = sys.stderr.isatty() and not log.viewed
        self._bar = tqdm(total=total, initial=already, desc=label, unit=unit, leave=False) if shown else None

    def __enter__(self) -> "Progress":
        return self

    def __exit__(self, *_) -> None:
        if self._bar is not None:
            self._bar.close()
        self.log.write(f"{self.label}: {self.done}/{self.total} in {time.monotonic() - self.start:.1f} s")

    def expect(self, total: int) -> None:
        """From now on there are as many steps in all."""
        self.total = total
        if self._bar is not None:
            self._bar.total = total

    def due(self) -> bool:
        """Whether the next `advance` will write a line, so that costly detail is read only then."""
        return self._bar is not None or time.monotonic() - self._logged >= self._every_s

    def advance(self, detail: str = "") -> None:
        self.done += 1
        if self.done > self.total:  # more steps than were expected: never 23/22, nor time left below zero
            self.expect(self.done)
        if self._bar is not None:
            self._bar.set_postfix_str(detail, refresh=False)
            self._bar.update()
        now = time.monotonic()
        if now - self._logged >= self._every_s:
            self._logged = now
            left = (now - self.start) / (self.done - self._already) * (self.total - self.done)
            line = " ".join(f"{self.label}: {self.unit} {self.done}/{self.total} {detail} {left:.0f} s left".split())
            self.log.write(line)
            if self._bar is None and not self.log.viewed and now - self._printed >= PRINT_EVERY_S:
                self._printed = now
                with contextlib.suppress(OSError):
                    print(f"specledger: {line}", file=sys.stderr, flush=True)
