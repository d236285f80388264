"""Trainings of heads repeat to the bit, interrupted or not, and their command says in a line what is wrong."""

import json

import pytest
import torch
from resuming import CORPUS, TEXT, Interrupted, checkpointer_at
from small import CPU, SCHEDULE, sizes, tiny_llama, tiny_mtp
from specledger.commands.run import main
from specledger.drafters.registry import begin, build_head, load_head, save_head
from specledger.foundation.drafters import HEADS
from specledger.foundation.errors import UserError
from specledger.models.storage import load_model, save_model
from specledger.training.loop import fit
from specledger.training.settings import TrainingSettings

STEPS = 12
TRAINING = {"steps": STEPS, "batch": 4, **SCHEDULE, "evaluate_every": 5, "checkpoint": "best", "precision": "auto"}
CONFIG = sizes(len(CORPUS.vocabulary), context=16, layers=2, width=16)
TARGET, MTP = tiny_llama(CONFIG, seed=1, std=0.1), tiny_mtp(CONFIG, seed=2, std=0.1)


def medusa1():
    head = build_head("medusa1", CONFIG)
    head.begin_as(TARGET)
    return head


def trained(name: str, *, seed: int = 1, checkpointer=None, fall_at: int | None = None, **changes):
    """The weights of a head (and of its trunk), its history without seconds, and what it ended with."""
    subject = begin(name, TARGET, MTP, seed=seed, trunk_share=0.2, first=medusa1())

    def show(step, _read_loss):
        if step == fall_at:
            raise Interrupted

    settings = TrainingSettings(**{**TRAINING, **changes})
    done = fit(subject, settings, CORPUS, seed=seed, device=CPU, on_step=show, checkpointer=checkpointer)
    weights = {f"{i}.{key}": value for i, part in enumerate(subject.parts) for key, value in part.state_dict().items()}
    return weights, [{**row, "elapsed_s": 0} for row in done.history], done.losses, done.chosen_step


def same(one, other) -> bool:
    return one[1:] == other[1:] and all(torch.equal(one[0][name], other[0][name]) for name in one[0])


@pytest.mark.parametrize("name", HEADS)
def test_the_same_bits_after_a_fall(name, tmp_path):
    """Also of eagle, whose steps draw noise: the stream that draws it is kept."""
    torch.manual_seed(1)
    undisturbed = trained(name)
    torch.manual_seed(2)  # a global seed must not matter
    assert same(trained(name), undisturbed)
    assert not same(trained(name, seed=2), undisturbed)
    for fall_at in (6, 11):
        with pytest.raises(Interrupted):
            trained(name, checkpointer=checkpointer_at(tmp_path / "kept"), fall_at=fall_at)
    assert same(trained(name, checkpointer=checkpointer_at(tmp_path / "kept")), undisturbed)


@pytest.mark.parametrize("name", ["parallel", "eagle"])
def test_a_loss_that_is_no_number_is_refused(name):
    with pytest.raises(UserError, match=r"the loss is (nan|inf) at step \d+; lower training\.\*\.learning_rate$"):
        trained(name, learning_rate=1e38, warmup_steps=0, clip_norm=1e30)


# --- the command ---


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A text, its record, and a target with its MTP module."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "text.txt").write_text(TEXT, encoding="utf-8")
    record = {"vocabulary": list(CORPUS.vocabulary.symbols), "train_characters": len(CORPUS.train)}
    (tmp_path / "corpus.json").write_text(json.dumps({**record, "prompt": "ROMEO:\n"}))
    save_model(tmp_path / "mtp", TARGET, MTP)
    return tmp_path


def run(folder, name: str, *more: str, settings: dict | None = None) -> int:
    settings = {"training": TRAINING, "device": "cpu", "threads": 1} | (settings or {})
    files = [f"mtp/{file}" for file in ("config.json", "model.safetensors", "heads.safetensors")]
    command = ["train-head", "--settings", json.dumps(settings), "--head", name, "--seed", "3", "--mtp", *files]
    command += ["--text", "text.txt", "--record", "corpus.json", "--history", f"heads/{name}/history.csv"]
    return main([*command, "--checkpoint", f"checkpoints/{name}.safetensors", "--code", "c", *more])


def test_the_command_writes_a_head_and_what_made_it(folder, capsys):
    assert run(folder, "medusa1", "--first") == 0  # as the rule says it: no such files for this head
    first = folder / "heads" / "medusa1"
    assert {path.name for path in first.iterdir()} == {
        "heads.safetensors", "history.csv", "training.json", "certificate.json"
    }  # fmt: skip
    record, certificate = (json.loads((first / name).read_text()) for name in ("training.json", "certificate.json"))
    assert (record["head"], record["trunk"], record["tokens"]) == ("medusa1", "frozen", STEPS * 4 * 16)
    assert record["validation_ahead5_loss"] > 0 and record["train_s"] > 0
    assert certificate["stage"] == "train-head" and set(certificate["inputs"]) == {"text", "mtp"}
    assert (first / "history.csv").read_text().startswith("step,train_loss,validation_loss,validation_ahead2_loss,")

    share = {"trunk_learning_rate_fraction": 0.1}
    assert run(folder, "medusa2", "--first", str(first / "heads.safetensors"), settings=share) == 0
    certificate = json.loads((folder / "heads" / "medusa2" / "certificate.json").read_text())
    assert set(certificate["inputs"]) == {"text", "mtp", "medusa1"}
    target = load_model(folder / "mtp", CPU)
    _, own = load_head(folder / "heads" / "medusa2", "medusa2", target)
    assert not torch.equal(own.lm_head.weight, target.lm_head.weight)
    assert not (folder / "checkpoints").exists()
    assert "specledger: train-head medusa2 seed 3: validation loss " in capsys.readouterr().err


def test_the_command_says_in_a_line_what_is_wrong(folder, capsys):
    assert run(folder, "medusa2") == 1
    assert "medusa2 begins with the heads of medusa1; give their files with --first\n" in capsys.readouterr().err
    save_head(folder / "other", "eagle", build_head("eagle", CONFIG))
    assert run(folder, "medusa2", "--first", str(folder / "other" / "heads.safetensors")) == 1
    assert "other/heads.safetensors: not the weights of this model" in capsys.readouterr().err
    save_model(folder / "mtp", TARGET)
    assert run(folder, "mtp2") == 1
    said = capsys.readouterr().err
    assert "mtp/heads.safetensors: holds no MTP module" in said and said.count("\n") == 1
