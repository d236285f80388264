"""Stage `pair-page`: the page of a pair, from its tables."""

from pathlib import Path

from specledger.commands.folders import add_folder
from specledger.pair.page import write_page


def add_arguments(parser) -> None:
    add_folder(parser, "--tables", "the files of the stage `pair`")
    parser.add_argument("--output", type=Path, required=True)


def run(options, log) -> None:
    write_page(options.output, options.tables)
