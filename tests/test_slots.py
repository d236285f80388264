"""Which GPU a job takes: a free one of its own, as long as there is one. No GPU is needed for it."""

import argparse
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from specledger.commands import run
from specledger.foundation import slots
from specledger.foundation.errors import UserError
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


def driven(monkeypatch, folder: Path, *, built: bool, seen: int) -> None:
    """A driver with two GPUs, and how many PyTorch sees of the one that was taken."""
    for name in ("0000:01:00.0", "0000:02:00.0"):
        (folder / "driver" / name).mkdir(parents=True)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setattr(slots, "DRIVER", folder / "driver")
    monkeypatch.setattr(slots, "cuda_count", lambda: seen)
    monkeypatch.setattr(torch.backends.cuda, "is_built", lambda: built)


def main_of(stage: str, monkeypatch) -> tuple[int, list]:
    """The exit code of a stage, and which GPUs it saw."""
    seen = []
    stage = argparse.Namespace(stage=stage, settings='{"device": "auto"}', log=None)
    stage.run = lambda options, log: seen.append(os.environ.get("CUDA_VISIBLE_DEVICES"))
    monkeypatch.setattr(run, "parse", lambda arguments: stage)
    return run.main([]), seen


@pytest.mark.parametrize(
    ("stage", "seen"), [("sweep", "0"), ("train", "0"), ("page", None), ("paper", None), ("tables", None)]
)
def test_only_stages_that_compute_take_a_gpu(stage, seen, monkeypatch, tmp_path):
    driven(monkeypatch, tmp_path, built=True, seen=1)
    assert main_of(stage, monkeypatch) == (0, [seen])


def test_every_stage_with_a_device_computes():
    computing = [name for name in run.STAGES if "prepare(" in code_of(name) or "measuring" in code_of(name)]
    assert set(computing) == run.COMPUTING


def code_of(stage: str) -> str:
    return (Path(run.__file__).parent / f"{stage.replace('-', '_')}.py").read_text(encoding="utf-8")


def test_a_gpu_that_pytorch_does_not_see_is_one_line(monkeypatch, tmp_path, capsys):
    driven(monkeypatch, tmp_path, built=True, seen=0)
    assert main_of("sweep", monkeypatch) == (1, [])
    said = capsys.readouterr().err
    assert said.startswith("specledger sweep: GPU 0 was taken for this job, and PyTorch sees no GPU there; set CUDA_")
    assert said.count("\n") == 1


@pytest.mark.parametrize(("built", "seen"), [(True, 1), (False, 0)])
def test_a_pytorch_without_cuda_computes_on_the_cpu_as_it_said(built, seen, monkeypatch, tmp_path):
    driven(monkeypatch, tmp_path, built=built, seen=seen)
    slots.check_seen("0")


def test_a_list_of_gpus_on_a_machine_without_any_is_no_error(monkeypatch, tmp_path):
    driven(monkeypatch, tmp_path, built=True, seen=0)
    with pytest.raises(UserError, match="GPU 1 was taken"):
        slots.check_seen("1")
    monkeypatch.setattr(slots, "DRIVER", tmp_path / "absent")
    slots.check_seen("1")
