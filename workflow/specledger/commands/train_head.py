"""Stage `train-head`: one head on top of a trained target, from where an interruption left it."""

import json
from functools import partial

from specledger.commands import training as shared
from specledger.commands.folders import add_folder, certify, inputs_of
from specledger.corpus.text import Corpus
from specledger.drafters.mtp import load_mtp
from specledger.drafters.registry import begin, load_head, save_head
from specledger.foundation.devices import describe, prepare
from specledger.foundation.drafters import HEADS, SPECS
from specledger.foundation.errors import UserError
from specledger.foundation.records import read_json, write_json, write_rows
from specledger.models.llama import count_parameters
from specledger.models.storage import load_model, of_one_vocabulary
from specledger.training.loop import Fitted, fit
from specledger.training.settings import TrainingSettings
from specledger.training.subject import Subject


def add_arguments(parser) -> None:
    parser.add_argument("--head", required=True, choices=HEADS)
    add_folder(parser, "--mtp", "files of the target with its MTP module")
    add_folder(parser, "--first", "files of the head that this one begins with", required=False)
    shared.add_arguments(parser)


def run(options, log) -> None:
    settings, options.begins_with = json.loads(options.settings), SPECS[options.head].begins_with
    device = prepare(settings["device"], settings["threads"])
    corpus = Corpus.load(options.text, read_json(options.record))
    training, subject = TrainingSettings(**settings["training"]), _begin(options, settings, len(corpus.vocabulary))
    name = f"train-head {options.head} seed {options.seed}"
    log.write(f"training {options.head}, seed {options.seed}, on {describe(device)}, {settings['threads']} thread(s)")
    done = shared.carry_out(
        name,
        options,
        log,
        steps=training.steps,
        made_by=shared.identity(options, options.head, corpus, describe(device), **inputs_of(options)),
        train=partial(fit, subject, training, corpus, seed=options.seed, device=device),
        save=lambda done: save(options, settings, training, subject, done, device),
    )
    losses = ", ".join(f"{key.removesuffix('_loss')} {loss:.4f}" for key, loss in done.losses.items())
    log.say(f"{name}: validation {losses} in {done.train_s:.0f} s")


def _begin(options, settings: dict, symbols: int) -> Subject:
    """The head at its first step, on the CPU."""
    target = load_model(options.mtp, "cpu")
    of_one_vocabulary(symbols, {options.mtp: target.config})
    spec, first = SPECS[options.head], None
    if spec.begins_with is not None:
        if options.first is None:
            raise UserError(f"{spec.name} begins with the heads of {spec.begins_with}; give their files with --first")
        first, _ = load_head(options.first, spec.begins_with, target)
    share = settings["trunk_learning_rate_fraction"] if spec.joint else 0.0
    return begin(spec.name, target, load_mtp(options.mtp, target), seed=options.seed, trunk_share=share, first=first)


def save(options, settings: dict, training: TrainingSettings, subject: Subject, done: Fitted, device) -> None:
    """The head, its history, what came of it, and its certificate."""
    folder, joint = options.history.parent, SPECS[options.head].joint
    save_head(folder, options.head, subject.head, subject.target if joint else None)
    write_rows(options.history, done.history)
    record = {
        "head": options.head,
        "head_parameters": count_parameters(subject.head),
        "trunk": "its own" if joint else "frozen",
        "chosen_step": done.chosen_step,
        **{f"validation_{name}": loss for name, loss in done.losses.items()},
        "train_s": round(done.train_s, 3),
    }
    record |= shared.facts(options, settings, training, context=subject.context, device=device)
    write_json(folder / "training.json", record)
    certify(folder, options, describe(device), settings["threads"])
