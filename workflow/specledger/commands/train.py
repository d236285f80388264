"""Stage `train`: one model (plain, mtp or draft) from one seed."""

import json
from pathlib import Path

from specledger.corpus.text import Corpus
from specledger.foundation.devices import describe, prepare
from specledger.foundation.progress import Progress
from specledger.foundation.records import certificate, read_json, write_json, write_rows
from specledger.models.llama import LlamaConfig, count_parameters
from specledger.models.storage import save_model
from specledger.training.loop import Trained, TrainingSettings, train


def add_arguments(parser) -> None:
    parser.add_argument("--model", required=True, choices=("plain", "mtp", "draft"))
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--text", type=Path, required=True)
    parser.add_argument("--record", type=Path, required=True)
    parser.add_argument("--history", type=Path, required=True, help="history.csv; the model's files go beside it")


def run(options, log) -> None:
    settings = json.loads(options.settings)
    device = prepare(settings["device"], settings["threads"])
    corpus = Corpus.load(options.text, read_json(options.record))
    config = LlamaConfig(vocabulary=len(corpus.vocabulary), context=settings["context"], **settings["model"])
    training = TrainingSettings(**settings["training"], mtp_weight=settings.get("mtp_weight"))
    log.write(f"training {options.model}, seed {options.seed}, on {describe(device)}, {settings['threads']} thread(s)")
    with Progress(f"train {options.model} seed {options.seed}", training.steps, log) as progress:

        def show(step, read_loss):
            progress.advance(f"loss {read_loss():.3f}" if progress.due() else "")

        trained = train(config, training, corpus, seed=options.seed, device=device, on_step=show)
    folder = options.history.parent
    save_model(folder, trained.model, trained.mtp)
    write_rows(options.history, trained.history)
    write_json(
        folder / "training.json",
        {
            "model": options.model,
            "seed": options.seed,
            **summary(training, trained),
            "tokens": training.steps * training.batch * config.context,
            "device": describe(device),
            "threads": settings["threads"],
        },
    )
    write_json(
        folder / "certificate.json",
        certificate(
            stage="train",
            settings=options.settings,
            code=options.code,
            device=describe(device),
            threads=settings["threads"],
        ),
    )
    log.say(
        f"train {options.model} seed {options.seed}: validation loss {trained.validation_loss:.4f} "
        f"in {trained.train_s:.0f} s"
    )


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
