"""Stage `corpus`: get the text, check that it is usable, and record what it is."""

import json
from pathlib import Path

from specledger.corpus.source import acquire
from specledger.corpus.text import Vocabulary, check_usable, split_point
from specledger.foundation.records import hash_text, write_json, write_text


def add_arguments(parser) -> None:
    parser.add_argument("--source", required=True, help="where the text is and what it is used for, as JSON")
    parser.add_argument("--text", type=Path, required=True)
    parser.add_argument("--record", type=Path, required=True)


def run(options, log) -> None:
    settings = json.loads(options.settings)
    asked = json.loads(options.source)
    text, origin = acquire(asked, log.say)
    name = origin["origin"]
    check_usable(
        text,
        name=name,
        context=asked["context"],
        validation_fraction=settings["validation_fraction"],
        prompt=origin["prompt"] or asked["prompt"],
        positions=asked["positions"],
        order=asked["order"],
    )
    vocabulary = Vocabulary.of(text)
    split = split_point(len(text), settings["validation_fraction"])
    write_text(options.text, text)
    record = {
        **origin,
        "characters": len(text),
        "vocabulary": list(vocabulary.symbols),
        "train_characters": split,
        "validation_characters": len(text) - split,
        "settings_hash": hash_text(options.settings),
        "code_hash": options.code,
    }
    write_json(options.record, record)
    log.say(f"corpus: {len(text):,} characters, {len(vocabulary)} symbols, from {origin['source']} {name}")
