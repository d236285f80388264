"""What the user sees while a stage runs: a bar on a terminal, a line every few seconds in a log."""

import contextlib
import sys
import time
from pathlib import Path

from tqdm import tqdm

LOG_EVERY_S = 5.0
PRINT_EVERY_S = 20.0


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

    def say(self, line: str) -> None:
        """To the log and to the terminal."""
        self.write(line)
        print(f"specledger: {line}", file=sys.stderr, flush=True)


class Progress:
    """Steps of one task, of which some may be `already` done: call `advance` after each; the bar goes at the end."""

    def __init__(self, label: str, total: int, log: Log, unit: str = "step", already: int = 0):
        self.label, self.total, self.log, self.unit = label, total, log, unit
        self.done = self._already = already
        self.start = time.monotonic()
        self._logged, self._printed = self.start, self.start
        shown = sys.stderr.isatty()
        self._bar = tqdm(total=total, initial=already, desc=label, unit=unit, leave=False) if shown else None

    def __enter__(self) -> "Progress":
        return self

    def __exit__(self, *_) -> None:
        if self._bar is not None:
            self._bar.close()
        self.log.write(f"{self.label}: {self.done}/{self.total} in {time.monotonic() - self.start:.1f} s")

    def due(self) -> bool:
        """Whether the next `advance` will write a line, so that costly detail is read only then."""
        return self._bar is not None or time.monotonic() - self._logged >= LOG_EVERY_S

    def advance(self, detail: str = "") -> None:
        self.done += 1
        if self._bar is not None:
            self._bar.set_postfix_str(detail, refresh=False)
            self._bar.update()
        now = time.monotonic()
        if now - self._logged >= LOG_EVERY_S:
            self._logged = now
            left = (now - self.start) / (self.done - self._already) * (self.total - self.done)
            line = f"{self.label}: {self.unit} {self.done}/{self.total} {detail} {left:.0f} s left"
            self.log.write(line)
            if self._bar is None and now - self._printed >= PRINT_EVERY_S:
                self._printed = now
                print(f"specledger: {line}", file=sys.stderr, flush=True)
