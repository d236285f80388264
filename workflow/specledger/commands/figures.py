"""Stage `figures`: draw the figures of the study."""

from pathlib import Path

from specledger.commands.folders import add_folder
from specledger.reporting.figures import draw_all


def add_arguments(parser) -> None:
    parser.add_argument("--results", type=Path, required=True)
    add_folder(parser, "--output", "the figures")


def run(options, log) -> None:
    options.output.mkdir(parents=True, exist_ok=True)
    draw_all(options.results, options.output)
