"""A training that is interrupted goes on from its checkpoint and ends in the same bits; a bad checkpoint is ignored."""

import errno
import math
import os
import random
import time
from pathlib import Path

import numpy as np
import pytest
import torch
from resuming import IDENTITY, MODELS, STEPS, Interrupted, checkpointer_at, same_but_for_seconds, trained
from specledger.foundation.errors import UserError
from specledger.foundation.progress import Log
from specledger.training import checkpoint
from specledger.training.checkpointer import Checkpointer
from specledger.training.state import State


@pytest.fixture(scope="module")
def undisturbed():
    return {model: trained(model) for model in MODELS}


# --- the same bits ---


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize(
    "fall_at",
    [
        pytest.param(step, marks=pytest.mark.slow if number > 2 else ())
        for number, step in enumerate(random.Random(6).sample(range(1, STEPS + 1), 10))
    ],
)
def test_a_fall_at_any_step_costs_nothing_but_time(model, fall_at, undisturbed, tmp_path):
    path = tmp_path / "kept.safetensors"
    with pytest.raises(Interrupted):
        trained(model, checkpointer=checkpointer_at(path), fall_at=fall_at)
    taken = []
    torch.manual_seed(fall_at)  # a global seed must not matter
    resumed = trained(model, checkpointer=checkpointer_at(path), on_step=taken.append)
    assert same_but_for_seconds(resumed, undisturbed[model])
    assert taken == list(range((fall_at - 1) // 4 * 4 + 1, STEPS + 1))  # and what was kept isn't done again


@pytest.mark.parametrize("changes", [{"checkpoint": "last"}, {"evaluate_every": STEPS}])
def test_many_falls_in_one_training(changes, tmp_path):
    path = tmp_path / "kept.safetensors"
    for fall_at in (5, 9, 10, 17, 26, STEPS):
        with pytest.raises(Interrupted):
            trained("mtp", checkpointer=checkpointer_at(path), fall_at=fall_at, **changes)
    assert same_but_for_seconds(
        trained("mtp", checkpointer=checkpointer_at(path), **changes), trained("mtp", **changes)
    )


def test_the_best_weights_of_before_the_fall_are_chosen_after_it(tmp_path):
    """A rate that rises far too high makes the last weights worse than those of the first evaluations."""
    wild = {"learning_rate": 6.0, "warmup_steps": STEPS - 1}
    with pytest.raises(Interrupted):
        trained(checkpointer=checkpointer_at(tmp_path / "kept"), fall_at=STEPS - 1, **wild)
    resumed = trained(checkpointer=checkpointer_at(tmp_path / "kept"), **wild)
    assert resumed.chosen_step < 28 and same_but_for_seconds(resumed, trained(**wild))


def test_a_checkpointer_does_not_change_the_bits_and_its_file_goes(undisturbed, tmp_path):
    checkpointer = checkpointer_at(tmp_path / "checkpoints" / "kept.safetensors")
    assert same_but_for_seconds(trained(checkpointer=checkpointer), undisturbed["plain"])
    assert checkpointer.path.exists()  # until the model is written: the command removes it then
    (checkpointer.path.parent / ".kept.safetensors.123.part").touch()  # what a kill -9 in the middle of writing leaves
    checkpointer.remove()
    assert not checkpointer.path.parent.exists()


def test_seconds_go_on_counting(tmp_path):
    with pytest.raises(Interrupted):
        trained(checkpointer=checkpointer_at(tmp_path / "kept"), fall_at=20, on_step=lambda _: time.sleep(0.01))
    resumed = trained(checkpointer=checkpointer_at(tmp_path / "kept"))
    assert resumed.train_s > 0.16  # the 16 steps that were kept
    assert all(a["elapsed_s"] <= b["elapsed_s"] for a, b in zip(resumed.history, resumed.history[1:], strict=False))


# --- when a checkpoint is written ---


def test_checkpoints_take_their_share_of_the_time(tmp_path, monkeypatch):
    """Each write takes 1 s of this clock and each step 0.1 s: at most one write in 100 s, and in `every_s`."""
    clock, steps = [0.0], []
    monkeypatch.setattr("specledger.training.checkpointer.time.monotonic", lambda: clock[0])

    def write(_path, _tensors, facts, _identity):
        clock[0] += 1.0
        steps.append(facts["step"])

    monkeypatch.setattr(checkpoint, "write", write)
    for every_s, expected in ((20.0, 1000), (500.0, 5000)):
        checkpointer, state = checkpointer_at(tmp_path / "kept", kind=Checkpointer, every_s=every_s), small_state()
        steps.clear()
        for state.step in range(1, 12_000):
            clock[0] += 0.1
            if checkpointer.due():
                checkpointer.keep(state)
        assert np.diff(steps).min() >= expected and np.diff(steps).max() <= expected + 1
        assert steps[0] == pytest.approx(every_s / 0.1, abs=1)


def small_state() -> State:
    module = torch.nn.ModuleList([torch.nn.Linear(2, 2)])
    return State(modules=module, optimizer=torch.optim.AdamW(module.parameters()), order=torch.Generator())


# --- what is ignored ---


@pytest.fixture
def kept(tmp_path):
    """The checkpoint of step 8 of an interrupted training."""
    with pytest.raises(Interrupted):
        trained(checkpointer=checkpointer_at(tmp_path / "kept.safetensors"), fall_at=10)
    return tmp_path / "kept.safetensors"


def ignored(path: Path, undisturbed, identity: dict = IDENTITY) -> str:
    """The one line that says why; the training then starts anew and ends as if nothing had been there."""
    said, taken = [], []
    resumed = trained(checkpointer=checkpointer_at(path, said=said, identity=identity), on_step=taken.append)
    assert taken[0] == 1 and same_but_for_seconds(resumed, undisturbed["plain"])
    assert len(said) == 1 and "\n" not in said[0]
    assert str(path) in said[0] and said[0].endswith("ignored, the training starts at its first step")
    return said[0]


@pytest.mark.parametrize("name", IDENTITY)
def test_a_checkpoint_of_anything_else_is_ignored(name, kept, undisturbed):
    assert f"(another {name})" in ignored(kept, undisturbed, {**IDENTITY, name: "another"})


def flip(raw: bytes, place: int) -> bytes:
    return raw[:place] + bytes([raw[place] ^ 1]) + raw[place + 1 :]


@pytest.mark.parametrize(
    "damage",
    [
        lambda raw: b"",
        lambda raw: raw[:7],
        lambda raw: raw[: len(raw) // 2],
        lambda raw: raw[:-1],
        lambda raw: raw + b"more",
        lambda raw: bytes(len(raw)),  # what a power cut may leave
        lambda raw: b"<html>404</html>",
        lambda raw: flip(raw, len(raw) - 100),
        lambda raw: flip(raw, len(raw) // 2),
        lambda raw: flip(raw, 3),
        lambda raw: raw.replace(b'\\"step\\": 8', b'\\"step\\": 9', 1),
        lambda raw: raw.replace(b"__metadata__", b"__metadatA__", 1),
    ],
    ids="empty header half byte longer zeros html last middle length step metadata".split(),
)
def test_a_damaged_checkpoint_is_ignored(damage, kept, undisturbed):
    raw = kept.read_bytes()
    kept.write_bytes(damage(raw))
    assert kept.read_bytes() != raw
    assert "is damaged" in ignored(kept, undisturbed)


def test_a_pickle_is_not_opened(kept, undisturbed):
    """It would run the code that it holds."""
    torch.save({"weights": torch.zeros(2)}, kept)
    assert "is damaged" in ignored(kept, undisturbed)


def test_what_is_no_file_is_ignored_and_training_goes_on(tmp_path):
    said = []
    (tmp_path / "kept").mkdir()
    trained(checkpointer=checkpointer_at(tmp_path / "kept", said=said))
    assert "can't be read (Is a directory); ignored" in said[0]
    assert "could not be written after step 4: Is a directory; the training goes on, no checkpoint is kept" in said[1]
    assert len(said) == 2


# --- a full disk, a loss that is no number ---


def test_a_full_disk_costs_one_line_and_no_checkpoint(tmp_path, monkeypatch, undisturbed):
    """The disk is full from step 9 to 22: the checkpoint of step 8 stays, nothing half written does."""
    path, said, full, sync = tmp_path / "kept.safetensors", [], [False], os.fsync

    def fsync(descriptor):
        if full[0]:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        sync(descriptor)

    def on_step(step):
        full[0] = 9 <= step <= 22
        if step in (23, 25):
            found = checkpoint.read(path, IDENTITY)
            assert found.step == (8 if step == 23 else 24) and list(tmp_path.iterdir()) == [path]

    monkeypatch.setattr("specledger.training.checkpoint.os.fsync", fsync)
    done = trained(checkpointer=checkpointer_at(path, said=said), on_step=on_step)
    assert same_but_for_seconds(done, undisturbed["plain"])
    assert said == [
        f"checkpoint {path} could not be written after step 12: No space left on device; "
        f"the training goes on, the checkpoint of step 8 is kept in {path}"
    ]


def test_a_log_on_a_full_disk_does_not_end_the_training(tmp_path):
    if not Path("/dev/full").exists():
        pytest.skip("no /dev/full, the device that is always full")
    log = Log(Path("/dev/full"))
    log.write("a line that finds no place")
    log._file = None


def test_a_loss_that_is_no_number_names_its_step_and_keeps_the_last_good(tmp_path):
    """Step 14's update makes the weights NaN, so that 15 is the first to see it; 16 is when it is looked at."""
    path = tmp_path / "kept.safetensors"
    checkpointer = checkpointer_at(path)

    def poison(step):
        if step == 14:
            with torch.no_grad():
                modules[0].lm_head.weight[0, 0] = math.nan

    modules = []
    restore = checkpointer.restore
    checkpointer.restore = lambda state: (restore(state), modules.extend(state.modules))
    expected = rf"training: the loss is nan at step 15; lower .*; the checkpoint of step 12 is kept in {path}$"
    with pytest.raises(UserError, match=expected):
        trained(checkpointer=checkpointer, on_step=poison, evaluate_every=STEPS)
    assert checkpoint.read(path, IDENTITY).step == 12


def test_weights_that_are_no_numbers_are_not_kept(tmp_path):
    """The last update of all makes them so: its own loss was still good."""
    checkpointer, state = checkpointer_at(tmp_path / "kept"), small_state()
    checkpointer.keep(state)
    with torch.no_grad():
        state.modules[0].bias[0] = math.inf
    state.step = 1
    checkpointer.keep(state)
    assert checkpoint.read(checkpointer.path, IDENTITY).step == 0
