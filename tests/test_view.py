"""The view of a run: what is left, what a job is at, plain lines without a terminal; and how a run ends early."""

import io
import os
import re
import signal
import subprocess
import sys
import time

import pytest
from specledger.foundation import view
from specledger.foundation.progress import VIEWED, Log, Progress
from specledger.foundation.view import Job, Run, View, seconds_in


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True

    def screen(self) -> list[str]:
        """What is to be seen after all that was written: the two escapes that the view uses are carried out."""
        lines = [""]
        for part in re.split(r"(\x1b\[\d+F\x1b\[0J|\n)", self.getvalue()):
            if part == "\n":
                lines.append("")
            elif found := re.fullmatch(r"\x1b\[(\d+)F\x1b\[0J", part):
                del lines[-1 - int(found[1]) :]
                lines.append("")
            else:
                lines[-1] += part
        return lines


@pytest.fixture
def clock(monkeypatch):
    now = [1000.0]
    monkeypatch.setattr(view.time, "time", lambda: now[0])
    return now


def job(rule: str, model: str | None = None, seed: int = 1, **named) -> Job:
    return Job.of(rule, {"seed": seed} | ({"model": model} if model else {}), **named)


def test_a_job_is_named_by_its_rule_and_what_it_is_of():
    found = job("train", "mtp", seed=2)
    assert (found.name, found.kind) == ("train mtp seed 2", "train mtp")
    assert Job.of("sweep_of_seed", {"seed": "1"}).name == "sweep seed 1" and Job.of("tables", {}).name == "tables"


def test_what_is_left_is_worked_out_from_past_and_present_jobs(clock):
    """Two at once. By hand: trainings of 100 s known from before, until one took 60; a sweep alone of 30 s."""
    run = Run(at_once=2)
    run.jobs = {n: job("train", "plain", seed=n, past_s=100.0) for n in (1, 2, 3, 4)}
    run.jobs[5] = job("sweep_of_seed", seed=1, past_s=30.0, alone=True)
    assert run.left(clock[0]) == "about 4 min left"  # 4 * 100 / 2 + 30 = 230 s
    for number in (1, 2):
        run.jobs[number].begun = clock[0]
    clock[0] += 60
    assert run.left(clock[0]) == "about 3 min left"  # (40 + 40 + 100 + 100) / 2 + 30 = 170 s
    run.jobs[1].ended = clock[0]
    # All of its kind are now taken to last 60 s: 1 left of the second, 60 of the others, in turns of two.
    assert run.left(clock[0]) == "about 2 min left"
    run.jobs[6] = job("checks_of_seed")
    assert run.left(clock[0]) == "about 2 min left, and 1 job of a kind that was never timed"
    assert run.headline(clock[0]) == f"1 of 6 jobs, 60 s so far, {run.left(clock[0])}"


def test_the_longest_job_bounds_what_is_left(clock):
    run = Run(at_once=8)
    run.jobs = {1: job("train", "mtp", past_s=1000.0), 2: job("train", "draft", past_s=10.0)}
    assert run.left(clock[0]) == "about 17 min left"


def test_a_running_job_is_read_in_its_log(tmp_path, clock, monkeypatch):
    monkeypatch.setenv(VIEWED, "1")
    clock[0] = tmp_path.stat().st_mtime
    log, found = Log(tmp_path / "log"), job("train", "plain")
    found.log, found.begun = tmp_path / "log", clock[0]
    log.say("the training goes on after step 7")
    log.write("train plain seed 1: step 12/500 loss 1.234 250 s left")
    assert found.look() == ["specledger: the training goes on after step 7"] and found.look() == []
    assert found.line(clock[0]) == "train plain seed 1: step 12/500 loss 1.234, 4 min left"
    assert found.left_s(9.0, clock[0]) == 250.0
    log.tell("specledger train: damaged", "Traceback (most recent call last):\n  File x\n")
    assert found.look() == ["specledger train: damaged"]
    assert "Traceback" in (tmp_path / "log").read_text()
    found.begun, found._read = clock[0] + 100, 0  # of an earlier run
    assert found.look() == []


def test_a_stage_in_a_view_writes_to_its_log_alone(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv(VIEWED, "1")
    with Progress("train", 2, Log(tmp_path / "log")) as progress:
        progress._logged -= 5
        progress.advance("loss 1.0")
    Log(tmp_path / "other").say("a word")
    assert capsys.readouterr() == ("", "")
    assert re.search(r"^\d\d:\d\d:\d\d train: step 1/2 loss 1\.0 \d+ s left$", (tmp_path / "log").read_text(), re.M)
    monkeypatch.delenv(VIEWED)
    Log(tmp_path / "other").say("a word")
    assert capsys.readouterr().err == "specledger: a word\n"


def test_seconds_of_a_benchmark_file(tmp_path):
    path = tmp_path / "1.tsv"
    path.write_text("s\th:m:s\tmax_rss\n12.5\t0:00:12\t300.1\n")
    assert seconds_in(path) == 12.5
    path.write_text("s\n")
    assert seconds_in(path) is None and seconds_in(tmp_path / "none.tsv") is None


def test_without_a_terminal_each_end_is_a_plain_line(clock):
    stream, run = io.StringIO(), Run(at_once=1)
    run.jobs = {1: Job.of("corpus", {}), 2: job("train", "mtp")}
    shown = View(stream)
    shown.begin(run)
    assert VIEWED not in os.environ
    shown.begun(1, "corpus", {}, [])
    clock[0] += 3
    shown.ended(1)
    shown.begun(2, "train", {"model": "mtp", "seed": 1}, [])
    clock[0] += 100
    shown.failed(2)
    shown.close()
    assert stream.getvalue() == (
        "specledger: corpus took 3 s: 1 of 2 jobs, 3 s so far, 1 job of a kind that was never timed is left\n"
    )


def test_on_a_terminal_the_block_is_drawn_in_place(tmp_path, clock, monkeypatch):
    monkeypatch.setattr(View, "_keep_drawing", lambda self: None)
    stream, run = Terminal(), Run(at_once=2)
    run.jobs = {1: job("train", "mtp", past_s=50.0), 2: job("train", "mtp", seed=2, past_s=50.0)}
    shown = View(stream)
    shown.begin(run)
    assert os.environ[VIEWED] == "1"
    for number in (1, 2):
        shown.begun(number, "train", {"model": "mtp", "seed": number}, [str(tmp_path / str(number))])
    for _ in range(3):
        clock[0] += 1
        shown.say()
    shown.say("specledger: a word")
    assert stream.screen() == [
        "specledger: a word",
        "[" + "·" * 24 + "] 0 of 2 jobs, 3 s so far, about 47 s left",
        "  train mtp seed 1: 3 s so far",
        "  train mtp seed 2: 3 s so far",
        "",
    ]
    shown.ended(2)
    assert stream.screen()[1] == "[" + "█" * 12 + "·" * 12 + "] 1 of 2 jobs, 3 s so far, about 1 s left"
    shown.close()
    assert stream.screen() == ["specledger: a word", ""] and VIEWED not in os.environ


def test_a_closed_terminal_is_no_error(clock):
    stream = Terminal()
    shown = View(stream)
    shown.begin(Run())
    stream.close()
    shown.begun(1, "corpus", {}, [])
    shown.ended(1)
    shown.say("a word")
    shown.close()


# --- how a run ends ---

MAIN = """
import subprocess, sys, threading
from specledger.foundation import ending
sys.argv[0] = "snakemake"
jobs = [subprocess.Popen(["bash", "-c", f"set -e; {sys.executable} -c '{code}'; echo done"]) for code in sys.argv[1:]]
ending.end_jobs_on_signals()
print("ready", flush=True)
try:
    threading.Event().wait()
except KeyboardInterrupt:
    print([job.wait() for job in jobs], ending.asked(), flush=True)
"""
SLEEPS = 'import os, time; os.write(1, b"1\\n"); time.sleep(600)'
KEEPS = 'import os, signal, sys, time; signal.signal(15, lambda *_: sys.exit(7)); os.write(1, b"1\\n"); time.sleep(600)'
STAYS = 'import os, signal, time; signal.signal(15, signal.SIG_IGN); os.write(1, b"1\\n"); time.sleep(600)'


def main(*jobs: str, **named) -> subprocess.Popen:
    from specledger.foundation import fingerprint

    variables = {**os.environ, "PYTHONPATH": str(fingerprint.PACKAGE.parent)}
    quoted = [code.replace("'", "'\\''") for code in jobs]
    process = subprocess.Popen(
        [sys.executable, "-c", MAIN, *quoted], env=variables, stdout=subprocess.PIPE, text=True, **named
    )
    assert sorted(process.stdout.readline() for _ in range(1 + len(jobs))) == ["1\n"] * len(jobs) + ["ready\n"]
    return process


@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP", "SIGINT"])
def test_a_signal_ends_the_jobs_first_and_then_the_run(name, ctrl_c):
    """A job that writes a checkpoint at SIGTERM has the time for it, and its shell passes on how it ended."""
    process = main(SLEEPS, KEEPS)
    process.send_signal(getattr(signal, name))
    assert process.communicate(timeout=60)[0] == f"[143, 7] {name}\n"


def test_a_job_that_stays_is_killed():
    process = main(STAYS)
    begun = time.monotonic()
    process.send_signal(signal.SIGTERM)
    assert process.communicate(timeout=60)[0] in ("[137] SIGTERM\n", "[-9] SIGTERM\n")
    assert time.monotonic() - begun > 5


def test_what_the_shell_ignores_stays_ignored():
    ignored = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        process = main(SLEEPS)
    finally:
        signal.signal(signal.SIGHUP, ignored)
    process.send_signal(signal.SIGHUP)
    time.sleep(0.5)
    assert process.poll() is None
    process.send_signal(signal.SIGTERM)
    assert process.communicate(timeout=60)[0] == "[143] SIGTERM\n"
