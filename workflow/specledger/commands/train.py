"""Stage `train`: one model (plain, mtp or draft) from one seed, from where an interruption left it."""

import json
from importlib import metadata
from pathlib import Path

from specledger.commands.folders import certify
from specledger.corpus.text import Corpus
from specledger.foundation.devices import describe, prepare
from specledger.foundation.fingerprint import code_hash
from specledger.foundation.progress import Progress
from specledger.foundation.records import hash_text, read_json, write_json, write_rows
from specledger.models.llama import LlamaConfig, count_parameters
from specledger.models.storage import save_model
from specledger.training.checkpoint import text_sum
from specledger.training.keeper import EVERY_S, Keeper
from specledger.training.loop import Trained, train
from specledger.training.settings import TrainingSettings
from specledger.training.step import precision_of
from specledger.training.stopping import StopSignals


def add_arguments(parser) -> None:
    parser.add_argument("--model", required=True, choices=("plain", "mtp", "draft"))
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--text", type=Path, required=True)
    parser.add_argument("--record", type=Path, required=True)
    parser.add_argument("--history", type=Path, required=True, help="history.csv; the model's files go beside it")
    parser.add_argument("--checkpoint", type=Path, required=True, help="where the training is kept until it is done")
    parser.add_argument("--checkpoint-every", type=float, default=EVERY_S, metavar="SECONDS")


def run(options, log) -> None:
    settings = json.loads(options.settings)
    device = prepare(settings["device"], settings["threads"])
    corpus = Corpus.load(options.text, read_json(options.record))
    config = LlamaConfig(vocabulary=len(corpus.vocabulary), context=settings["context"], **settings["model"])
    training = TrainingSettings(**settings["training"], mtp_weight=settings.get("mtp_weight"))
    name = f"train {options.model} seed {options.seed}"
    log.write(f"training {options.model}, seed {options.seed}, on {describe(device)}, {settings['threads']} thread(s)")
    with StopSignals() as signals:
        keeper = Keeper(
            options.checkpoint,
            identity(options, corpus, describe(device)),
            say=lambda line: log.say(f"{name}: {line}"),
            asked=lambda: signals.asked,
            every_s=options.checkpoint_every,
        )
        already = 0 if keeper.found is None else keeper.found.step
        with Progress(name, training.steps, log, already=already) as progress:

            def show(step, read_loss):
                progress.advance(f"loss {read_loss():.3f}" if progress.due() else "")

            trained = train(config, training, corpus, seed=options.seed, device=device, on_step=show, keeper=keeper)
        save(options, settings, config, training, trained, device)
        keeper.remove()
    log.say(f"{name}: validation loss {trained.validation_loss:.4f} in {trained.train_s:.0f} s")


def identity(options, corpus: Corpus, device: str) -> dict[str, str]:
    """All that makes the weights what they are, by name: a checkpoint in which any of it differs is another's."""
    return {
        "model": options.model,
        "seed": str(options.seed),
        "settings": hash_text(options.settings),
        "code": options.code or code_hash("train"),
        "text": text_sum(corpus),
        "device": device,
        "torch": metadata.version("torch"),
    }


def save(options, settings: dict, config: LlamaConfig, training: TrainingSettings, trained: Trained, device) -> None:
    """The model, its history, what came of it, and its certificate."""
    folder = options.history.parent
    save_model(folder, trained.model, trained.mtp)
    write_rows(options.history, trained.history)
    write_json(
        folder / "training.json",
        {
            "model": options.model,
            "seed": options.seed,
            **summary(training, trained),
            "precision": str(precision_of(training.precision, device)).removeprefix("torch."),
            "tokens": training.steps * training.batch * config.context,
            "device": describe(device),
            "threads": settings["threads"],
        },
    )
    certify(folder, options, describe(device), settings["threads"])


def summary(training: TrainingSettings, trained: Trained) -> dict:
    """What was trained, how, and what came of it."""
    return {
        "parameters": count_parameters(trained.model),
        "head_parameters": count_parameters(trained.mtp) if trained.mtp is not None else 0,
        **{key: getattr(training, key) for key in ("steps", "batch", "learning_rate", "checkpoint")},
        "chosen_step": trained.chosen_step,
        "validation_loss": trained.validation_loss,
        "validation_mtp_loss": trained.validation_mtp_loss,
        "train_s": round(trained.train_s, 3),
    }
