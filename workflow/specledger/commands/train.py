"""Stage `train`: one model (plain, mtp or draft) from one seed, from where an interruption left it."""

import json
from functools import partial

from specledger.commands import training as shared
from specledger.commands.folders import certify
from specledger.corpus.text import Corpus
from specledger.drafters.mtp import MTPModule
from specledger.foundation.devices import describe, prepare
from specledger.foundation.records import read_json, write_json, write_rows
from specledger.models.llama import LlamaConfig, count_parameters
from specledger.models.storage import save_model
from specledger.training.settings import TrainingSettings
from specledger.training.target import Trained, train


def add_arguments(parser) -> None:
    parser.add_argument("--model", required=True, choices=("plain", "mtp", "draft"))
    shared.add_arguments(parser)


def run(options, log) -> None:
    settings = json.loads(options.settings)
    device = prepare(settings["device"], settings["threads"])
    corpus = Corpus.load(options.text, read_json(options.record))
    config = LlamaConfig(vocabulary=len(corpus.vocabulary), context=settings["context"], **settings["model"])
    training = TrainingSettings(**settings["training"], mtp_weight=settings.get("mtp_weight"))
    name = f"train {options.model} seed {options.seed}"
    log.write(f"training {options.model}, seed {options.seed}, on {describe(device)}, {settings['threads']} thread(s)")
    trained = shared.carry_out(
        name,
        options,
        log,
        steps=training.steps,
        made_by=shared.identity(options, options.model, corpus, describe(device)),
        train=partial(train, config, training, corpus, mtp_of=MTPModule, seed=options.seed, device=device),
        save=lambda trained: save(options, settings, config, training, trained, device),
    )
    log.say(f"{name}: validation loss {trained.validation_loss:.4f} in {trained.train_s:.0f} s")


def save(options, settings: dict, config: LlamaConfig, training: TrainingSettings, trained: Trained, device) -> None:
    """The model, its history, what came of it, and its certificate."""
    folder = options.history.parent
    save_model(folder, trained.model, trained.mtp)
    write_rows(options.history, trained.history)
    record = {
        "model": options.model,
        "parameters": count_parameters(trained.model),
        "head_parameters": count_parameters(trained.mtp) if trained.mtp is not None else 0,
        "chosen_step": trained.chosen_step,
        "validation_loss": trained.validation_loss,
        "validation_mtp_loss": trained.validation_mtp_loss,
        "train_s": round(trained.train_s, 3),
    }
    record |= shared.facts(options, settings, training, context=config.context, device=device)
    write_json(folder / "training.json", record)
    certify(folder, options, describe(device), settings["threads"])
