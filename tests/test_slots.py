"""Which GPU a job takes: a free one of its own, as long as there is one. No GPU is needed for it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from specledger.foundation import slots
from specledger.foundation.slots import gpu_of_its_own

HOLD = (
    "import os, sys\n"
    "from specledger.foundation.slots import gpu_of_its_own\n"
    "with gpu_of_its_own('cuda', print):\n"
    "    print(os.environ['CUDA_VISIBLE_DEVICES'], flush=True)\n"
    "    sys.stdin.read()\n"
)


@pytest.fixture(autouse=True)
def own_folder(tmp_path, monkeypatch):
    """The locks of this test alone."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    yield
    monkeypatch.setattr("tempfile.tempdir", None)


def job(gpus: str) -> tuple[subprocess.Popen, list[str]]:
    """A process that holds a GPU until its input ends, and what it says."""
    variables = {**os.environ, "CUDA_VISIBLE_DEVICES": gpus, "PYTHONPATH": str(Path(slots.__file__).parents[2])}
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    process = subprocess.Popen([sys.executable, "-c", HOLD], env=variables, **pipes)
    return process, [process.stdout.readline().strip()]


def test_jobs_at_once_take_one_gpu_each_and_give_it_back():
    first, (one,) = job("0,1")
    second, (other,) = job("0,1")
    assert {one, other} == {"0", "1"}
    third, said = job("0,1")
    assert said == ["all 2 GPUs are held by other jobs; this one shares the first (--resources gpu=2)"]
    assert third.stdout.readline().strip() == "0"
    first.kill()  # as kill -9 of a job: the lock goes with the process
    first.wait()
    fourth, (again,) = job("0,1")
    assert again == one
    for process in (second, third, fourth):
        process.communicate("")


@pytest.mark.parametrize(
    ("gpus", "device", "taken"),
    [
        ("GPU-a,GPU-b", "auto", "GPU-a"),
        ("3, 5", "cuda", "3"),
        ("0", "cuda", None),
        ("", "auto", None),
        ("0,1", "cpu", None),
        ("0,1", "cuda:1", None),
    ],
)
def test_what_is_chosen(gpus, device, taken, monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", gpus)
    with gpu_of_its_own(device, pytest.fail) as found:
        assert found == taken
        assert os.environ["CUDA_VISIBLE_DEVICES"] == (taken or gpus)


def test_without_a_driver_nothing_is_set(monkeypatch, tmp_path):
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setattr(slots, "DRIVER", tmp_path / "absent")
    with gpu_of_its_own("auto", pytest.fail) as found:
        assert found is None and "CUDA_VISIBLE_DEVICES" not in os.environ


def test_the_driver_says_how_many_there_are(monkeypatch, tmp_path):
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setattr(slots, "DRIVER", tmp_path)
    for name in ("0000:01:00.0", "0000:02:00.0"):
        (tmp_path / name).mkdir()
    with gpu_of_its_own("auto", pytest.fail) as found:
        assert found == "0" and os.environ["CUDA_VISIBLE_DEVICES"] == "0"
