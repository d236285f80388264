"""Stage `tables`: from the observations of the configured seeds to the tables of the study."""

import json
from pathlib import Path

from specledger.analysis.tables import write_tables
from specledger.foundation.records import read_json


def add_arguments(parser) -> None:
    parser.add_argument("--results", type=Path, required=True)
    parser.add_argument("--claims", type=Path, required=True)


def run(options, log) -> None:
    settings = json.loads(options.settings)
    corpus = read_json(options.results / "corpus" / "corpus.json")
    write_tables(
        options.results,
        options.results / "tables",
        seeds=settings["seeds"],
        claims_file=options.claims,
        compare=corpus["tiny_shakespeare"],
        quick=settings["quick"],
        margin=settings["equivalence_margin"],
        trained_heads=settings["heads"],
        with_trees=settings["trees"],
    )
