"""One view of a whole run: how many jobs are done, about what time is left, and a line for each job that runs.

On a terminal the view stands at the bottom and is drawn anew each second; elsewhere each end of a job is a plain line.
What remains is worked out from how long jobs of a kind took: in this run, in earlier runs of the study (Snakemake's
benchmark files), or by an estimate of the trainings. What a running job is at, the view reads in the job's log.
"""

import contextlib
import os
import re
import shutil
import sys
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import TextIO

from specledger.foundation.progress import SAID, VIEWED

EVERY_S = 1.0
BAR = 24  # characters
LEFT = re.compile(r" (\d+) s left$")


@dataclass(kw_only=True)
class Job:
    """A job of the run. `kind` is what jobs share that take as long as each other; `alone`: nothing runs beside it."""

    name: str
    kind: str
    log: Path | None = None
    past_s: float | None = None
    alone: bool = False
    begun: float | None = None
    ended: float | None = None
    says: str = ""
    _read: int = field(default=0, repr=False)

    @classmethod
    def of(cls, rule: str, wildcards: dict, **named) -> "Job":
        """A job of a rule, named as in `train mtp seed 2`."""
        rest = {key: str(value) for key, value in wildcards.items() if key != "seed"}
        kind = " ".join([rule.removesuffix("_of_seed"), *rest.values()])
        seed = f" seed {wildcards['seed']}" if "seed" in wildcards else ""
        return cls(name=kind + seed, kind=kind, **named)

    def look(self) -> list[str]:
        """Read on in the log: `says` becomes its last line; returns the lines that are marked as said."""
        found: list[str] = []
        if self.log is None or self.begun is None:
            return found
        with contextlib.suppress(OSError):
            if self.log.stat().st_mtime < self.begun - 1:  # of an earlier run
                return found
            with self.log.open("rb") as file:
                file.seek(self._read)
                read = file.read()
            whole = read[: read.rfind(b"\n") + 1]
            self._read += len(whole)
            for line in whole.decode("utf-8", "replace").splitlines():
                text = line[9:] if line[2:3] == ":" and line[5:6] == ":" else ""  # a traceback has no time before it
                if text.startswith(SAID):
                    found.append(text.removeprefix(SAID))
                elif text:
                    self.says = text
        return found

    def line(self, now: float) -> str:
        """How far it is, by its own word where it has one."""
        left = LEFT.search(self.says)
        if left is not None:
            return f"{self.says[: left.start()]}, {in_words(int(left[1]))} left"
        return f"{self.name}: {in_words(now - self.begun)} so far"

    def left_s(self, expected_s: float | None, now: float) -> float | None:
        """Seconds until it ends: by its own word where it has one."""
        if self.begun is not None and (said := LEFT.search(self.says)):
            return float(said[1])
        if expected_s is None:
            return None
        return expected_s if self.begun is None else max(expected_s - (now - self.begun), 1.0)


def seconds_in(benchmark: Path) -> float | None:
    """The seconds of a job, in the file that Snakemake wrote about it."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        head, row = benchmark.read_text(encoding="utf-8").splitlines()[:2]
        return float(dict(zip(head.split("\t"), row.split("\t"), strict=True))["s"])
    return None


def in_words(seconds: float) -> str:
    """40 s, 12 min, 3 h 20 min."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60} min"


class Run:
    """The jobs of a run by Snakemake's number, and what is known of their time."""

    def __init__(self, at_once: int = 1):
        self.jobs: dict[int, Job] = {}
        self.at_once, self.start = max(at_once, 1), time.time()

    @property
    def done(self) -> int:
        return sum(job.ended is not None for job in self.jobs.values())

    @property
    def running(self) -> list[Job]:
        return [job for job in self.jobs.values() if job.begun is not None and job.ended is None]

    def expected_s(self, job: Job) -> float | None:
        """The median of the jobs of its kind that ended in this run, else what is known from before."""
        same = [one.ended - one.begun for one in self.jobs.values() if one.kind == job.kind and one.ended]
        return median(same) if same else job.past_s

    def left(self, now: float) -> str:
        """About how long the rest takes, and how many jobs nothing is known of."""
        side_by_side, alone, longest, unknown = 0.0, 0.0, 0.0, 0
        for job in self.jobs.values():
            if job.ended is not None:
                continue
            seconds = job.left_s(self.expected_s(job), now)
            if seconds is None:
                unknown += 1
            elif job.alone:
                alone += seconds
            else:
                side_by_side += seconds
                longest = max(longest, seconds)
        known = alone + max(side_by_side / self.at_once, longest)
        if unknown:
            untimed = f"{unknown} jobs of kinds that were" if unknown > 1 else "1 job of a kind that was"
            verb = "are" if unknown > 1 else "is"
            alone = f"{untimed} never timed {verb} left"
            return f"about {in_words(known)} left, and {untimed} never timed" if known else alone
        return f"about {in_words(known)} left"

    def headline(self, now: float) -> str:
        so_far = f"{self.done} of {len(self.jobs)} jobs, {in_words(now - self.start)} so far"
        return so_far if self.done == len(self.jobs) else f"{so_far}, {self.left(now)}"


class View:
    """Shows a run on `stream`: drawn in place where that is a terminal, else a plain line when a job ends."""

    def __init__(self, stream: TextIO = sys.stderr):
        self.stream, self.run = stream, Run()
        self.drawn = stream.isatty() and os.environ.get("TERM") != "dumb"
        self._lines, self._lock, self._over = 0, threading.RLock(), threading.Event()
        self._thread = None

    def begin(self, run: Run) -> None:
        """Show this run from now on."""
        self.run = run
        if self.drawn and self._thread is None:
            os.environ[VIEWED] = "1"  # the jobs inherit it
            self._thread = threading.Thread(target=self._keep_drawing, daemon=True)
            self._thread.start()

    def begun(self, number: int, rule: str, wildcards: dict, logs: list[str]) -> None:
        with self._lock:
            if self.run.jobs and number not in self.run.jobs:
                return  # a target, such as `all`, which does nothing
            job = self.run.jobs.setdefault(number, Job.of(rule, wildcards))
            job.log = Path(logs[0]) if logs else None
            job.begun, job.ended, job.says, job._read = time.time(), None, "", 0

    def ended(self, number: int) -> None:
        with self._lock:
            job = self.run.jobs.get(number)
            if job is None or job.begun is None:
                return
            said, job.ended = job.look(), time.time()
            if self.drawn:
                self.say(*said)
            else:
                took = in_words(job.ended - job.begun)
                self.say(f"specledger: {job.name} took {took}: {self.run.headline(job.ended)}")

    def failed(self, number: int) -> None:
        with self._lock:
            job = self.run.jobs.get(number)
            if job is not None and job.begun is not None:
                self.say(*job.look())
                job.begun = None

    def say(self, *lines: str) -> None:
        """Lines that stay."""
        with self._lock:
            self._clear()
            for line in lines:
                self._write(line + "\n")
            self._draw()

    def close(self) -> None:
        self._over.set()
        with self._lock:
            self._clear()
            self.drawn = False
        os.environ.pop(VIEWED, None)

    def _keep_drawing(self) -> None:
        while not self._over.wait(EVERY_S):
            with self._lock:
                said = [line for job in self.run.running for line in job.look()]
                self.say(*said)

    def _write(self, text: str) -> None:
        with contextlib.suppress(OSError, ValueError):  # a terminal that was closed
            self.stream.write(text)
            self.stream.flush()

    def _clear(self) -> None:
        if self._lines:
            self._write(f"\x1b[{self._lines}F\x1b[0J")
            self._lines = 0

    def _draw(self) -> None:
        if not self.drawn or self._over.is_set() or not self.run.jobs:
            return
        size, now = shutil.get_terminal_size(), time.time()
        full = BAR * self.run.done // len(self.run.jobs)
        lines = [f"[{'█' * full}{'·' * (BAR - full)}] {self.run.headline(now)}"]
        lines += [f"  {job.line(now)}" for job in self.run.running]
        lines = [line[: size.columns - 1] for line in lines[: max(size.lines - 1, 1)]]
        self._write("\n".join(lines) + "\n")
        self._lines = len(lines)


current: View | None = None  # of this process; the Snakefile tells it what will run


def written_since(moment: float, *paths: Path) -> list[Path]:
    """Those of the files that were written at `moment` or later: a run for another target makes no report."""
    return [path for path in paths if path.exists() and path.stat().st_mtime >= moment]
