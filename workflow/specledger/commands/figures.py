"""Stage `figures`: draw the figures of the study."""

from pathlib import Path

from specledger.reporting.figures import draw_all


def add_arguments(parser) -> None:
    parser.add_argument("--results", type=Path, required=True)
    parser.add_argument("--output", type=Path, required=True)


def run(options, log) -> None:
    options.output.mkdir(parents=True, exist_ok=True)
    draw_all(options.results, options.output)
