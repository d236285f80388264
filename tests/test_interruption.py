"""kill, kill -9, Ctrl-C and a closed terminal: what a training does, through the library and the command line."""

import errno
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from resuming import CORPUS, STEPS, TEXT, TRAINING, checkpointer_at, same_but_for_seconds, trained
from specledger.foundation import fingerprint
from specledger.training import checkpoint
from specledger.training.checkpointer import Checkpointer, Stopped
from specledger.training.stopping import StopSignals


@pytest.fixture(scope="module")
def undisturbed():
    return trained()


# --- signals ---


def test_a_signal_keeps_the_step_that_it_met(tmp_path, undisturbed):
    path = tmp_path / "kept.safetensors"
    with StopSignals() as signals:
        checkpointer = checkpointer_at(path, asked=lambda: signals.asked, kind=Checkpointer)
        with pytest.raises(
            Stopped, match=rf"^stopped by SIGTERM; the checkpoint of step 11 is kept in {path}, the same"
        ):
            trained(
                checkpointer=checkpointer,
                on_step=lambda step: os.kill(os.getpid(), signal.SIGTERM) if step == 11 else None,
            )
    taken = []
    resumed = trained(checkpointer=checkpointer_at(path), on_step=taken.append)
    assert taken[0] == 12 and same_but_for_seconds(resumed, undisturbed)


def test_a_signal_after_the_last_step_loses_nothing(tmp_path, undisturbed):
    """It arrives while the whole validation text is evaluated; the next start has only that left to do."""
    path, asked, taken = tmp_path / "kept.safetensors", [], []
    checkpointer = checkpointer_at(path, asked=lambda: asked[0] if asked else None)
    checkpointer.heed = lambda: (
        (Checkpointer.heed(checkpointer), asked.append("SIGINT")) if checkpointer._kept_step == STEPS else None
    )
    with pytest.raises(Stopped, match=rf"stopped by SIGINT; the checkpoint of step {STEPS} is kept"):
        trained(checkpointer=checkpointer)
    resumed = trained(checkpointer=checkpointer_at(path), on_step=taken.append)
    assert taken == [] and same_but_for_seconds(resumed, undisturbed)


def test_a_signal_on_a_full_disk_says_what_is_left(tmp_path, monkeypatch):
    def write(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(checkpoint, "write", write)
    with pytest.raises(Stopped, match=r"^stopped by SIGTERM; no checkpoint is kept, the same command starts anew$"):
        trained(checkpointer=checkpointer_at(tmp_path / "kept", asked=lambda: "SIGTERM"))


def test_signals_have_their_usual_effect_again_later(monkeypatch, ctrl_c):
    with StopSignals() as signals:
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)  # the same Ctrl-C once more, by way of a parent
        assert signals.asked == "SIGINT"
        monkeypatch.setattr("specledger.training.stopping.PATIENCE_S", 0.0)
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)


def test_what_was_ignored_stays_ignored():
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with StopSignals() as signals:
            signal.raise_signal(signal.SIGHUP)
            assert signals.asked is None
        assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)


# --- the command line ---


class Command:
    """`python -m specledger train` in a folder of its own."""

    def __init__(self, folder: Path, steps: int):
        self.folder, self.checkpoint = folder, folder / "checkpoints" / "mtp-3.safetensors"
        folder.mkdir()
        (folder / "text.txt").write_text(TEXT, encoding="utf-8")
        record = {"vocabulary": list(CORPUS.vocabulary.symbols), "train_characters": len(CORPUS.train)}
        (folder / "corpus.json").write_text(json.dumps({**record, "prompt": "ROMEO:\n"}))
        model = {"layers": 1, "width": 16, "heads": 4, "kv_heads": 2}
        training = {**TRAINING, "steps": steps, "evaluate_every": 50}
        machine = {"device": "cpu", "threads": 1, "context": 16}
        self.settings = json.dumps({"training": training, "model": model, "mtp_weight": 0.3, **machine})

    def start(self) -> subprocess.Popen:
        command = [sys.executable, "-m", "specledger", "train", "--settings", self.settings, "--code", "c"]
        command += ["--log", "train.log", "--model", "mtp", "--seed", "3", "--text", "text.txt"]
        command += ["--record", "corpus.json", "--history", "model/history.csv"]
        command += ["--checkpoint", "checkpoints/mtp-3.safetensors", "--checkpoint-every", "0"]
        variables = {**os.environ, "PYTHONPATH": str(fingerprint.PACKAGE.parent)}
        return subprocess.Popen(command, cwd=self.folder, env=variables, stderr=subprocess.PIPE, text=True)

    def interrupt(self, number: int) -> tuple[int, str]:
        """Send a signal soon after a checkpoint was written; the exit code and what was said."""
        before = self.checkpoint.stat().st_mtime_ns if self.checkpoint.exists() else 0
        process = self.start()
        while process.poll() is None:
            if self.checkpoint.exists() and self.checkpoint.stat().st_mtime_ns > before:
                time.sleep(0.05)
                process.send_signal(number)
                break
            time.sleep(0.005)
        said = process.communicate(timeout=60)[1]
        return process.returncode, said

    def results(self) -> dict:
        """All files of the model, seconds left out."""
        found = {path.name: path.read_bytes() for path in (self.folder / "model").iterdir()}
        rows = [row.rsplit(b",", 1)[0] for row in found["history.csv"].splitlines()]
        assert found["history.csv"].splitlines()[0].endswith(b",elapsed_s")
        record = json.loads(found["training.json"])
        assert record.pop("train_s") > 0
        certificate = json.loads(found["certificate.json"])
        for name in ("history.csv", "training.json"):  # whose bytes hold seconds, and so their sums
            assert certificate["files"].pop(name)
        return {**found, "history.csv": rows, "training.json": record, "certificate.json": certificate}


@pytest.mark.slow
def test_the_command_goes_on_after_kill_9_and_kill(tmp_path):
    """One training that is killed (-9), then terminated, beside one that is left alone."""
    alone, disturbed = Command(tmp_path / "alone", 500), Command(tmp_path / "disturbed", 500)
    left_alone = alone.start()
    code, said = disturbed.interrupt(signal.SIGKILL)
    assert code == -signal.SIGKILL and said == ""
    code, said = disturbed.interrupt(signal.SIGTERM)
    assert code == 1 and "Traceback" not in said
    goes_on, stopped = said.splitlines()
    assert goes_on.startswith("specledger: train mtp seed 3: the training goes on after step ")
    assert stopped.startswith("specledger train: stopped by SIGTERM; the checkpoint of step ")
    assert stopped.endswith("is kept in checkpoints/mtp-3.safetensors, the same command goes on from there")
    assert not (disturbed.folder / "model").exists()
    process = disturbed.start()
    said = process.communicate(timeout=120)[1]
    assert process.returncode == 0 and "goes on after step" in said
    assert left_alone.wait(timeout=120) == 0, left_alone.stderr.read()
    assert disturbed.results() == alone.results()
    for command in (alone, disturbed):
        assert not command.checkpoint.parent.exists()
