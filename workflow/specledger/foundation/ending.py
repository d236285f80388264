"""How a run ends before its end: by Ctrl-C, by SIGTERM to Snakemake, or with its terminal, within ten seconds.

Left alone, Snakemake waits at SIGTERM until its jobs are done, which may be half an hour; a closed terminal ends it
with its lock in place, so that the next run is refused. Here each of the three ends the jobs first: a training writes
its checkpoint and stops (`training/stopping.py`), other stages stop at once and begin anew in the next run.
"""

import contextlib
import signal
import sys
import threading
import time
from pathlib import Path

import psutil

NAMES = ("SIGINT", "SIGTERM", "SIGHUP")
WITHIN_S = 6.0  # jobs that still run then are killed


def end_jobs_on_signals() -> None:
    """From now on these signals end the jobs of this process, and then this process as Ctrl-C does.

    To be called in the main thread once Snakemake has set up its own handlers. What nohup and a shell's & ignore
    stays ignored. A program that runs Snakemake within itself keeps its own handlers.
    """
    program = Path(sys.argv[0])
    if "snakemake" not in (program.name, program.parent.name):
        return
    for number in (getattr(signal, name) for name in NAMES if hasattr(signal, name)):
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, _End())


def asked() -> str | None:
    """The name of the signal that asked this run to end, if one did."""
    return _End.by


class _End:
    by: str | None = None  # of all signals the first: a closed terminal and Ctrl-C send more than one

    def __call__(self, number: int, _frame) -> None:
        if _End.by is not None:
            return
        _End.by = signal.Signals(number).name
        asked = _jobs()
        _send(asked, signal.SIGTERM)
        threading.Thread(target=_see_to_it, args=(asked,), daemon=True).start()
        raise KeyboardInterrupt


def _jobs() -> list[psutil.Process]:
    """What runs below this process, without the shells, which wait for their stage: Snakemake then does so too."""
    found = []
    for child in psutil.Process().children():
        with contextlib.suppress(psutil.Error):
            found += child.children(recursive=True) or [child]
    return found


def _send(processes: list[psutil.Process], number: int) -> None:
    for process in processes:
        with contextlib.suppress(psutil.Error):
            process.send_signal(number)


def _see_to_it(asked: list[psutil.Process]) -> None:
    """Ask what was just being started too, and kill what still runs after a while."""
    end = time.monotonic() + WITHIN_S
    while time.monotonic() < end:
        time.sleep(0.2)
        with contextlib.suppress(psutil.Error):  # a process that ends while it is looked at
            new = [job for job in _jobs() if job not in asked]
            _send(new, signal.SIGTERM)
            asked += new
    for _ in range(10):
        with contextlib.suppress(psutil.Error):
            _send(psutil.Process().children(recursive=True), signal.SIGKILL)
        time.sleep(0.2)
