"""What the measuring stages share: their arguments, the bundle of a seed, and the certificate."""

import json
from pathlib import Path

from specledger.commands import folders
from specledger.commands.folders import add_folder
from specledger.corpus.text import Corpus
from specledger.experiments.bundle import ModelBundle, load_bundle
from specledger.foundation.devices import describe, prepare
from specledger.foundation.records import read_json


def add_arguments(parser) -> None:
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--text", type=Path, required=True)
    parser.add_argument("--record", type=Path, required=True)
    add_folder(parser, "--mtp", "files of the target with its MTP module")
    add_folder(parser, "--draft", "files of the draft model")
    parser.add_argument("--ngram", type=Path, required=True, help="the n-gram's file")
    parser.add_argument("--heads", type=Path, nargs="*", default=[], help="files <head>/<seed>/heads.safetensors")
    parser.add_argument("--shapes", type=Path, nargs="*", default=[], help="the file of the trees of this seed, if any")
    add_folder(parser, "--output", "the files to write")


def begin(options) -> tuple[dict, Corpus, ModelBundle]:
    """The settings, the corpus and the models that the options name."""
    settings = json.loads(options.settings)
    device = prepare(settings["device"], settings["threads"])
    corpus = Corpus.load(options.text, read_json(options.record), settings["prompt"])
    return (
        settings,
        corpus,
        load_bundle(
            mtp=options.mtp,
            draft=options.draft,
            ngram=options.ngram,
            device=device,
            drafting=settings.get("drafting"),
            heads=options.heads,
            shapes=options.shapes[0] if options.shapes else None,
            symbols=len(corpus.vocabulary),
        ),
    )


def certify(options, settings: dict, bundle: ModelBundle) -> None:
    """Write certificate.json beside the results."""
    device = describe(bundle.target.lm_head.weight.device)
    folders.certify(options.output, options, device, settings["threads"])
