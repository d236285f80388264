"""Stage `figures`: draw the figures of the study."""

import json
from pathlib import Path

from specledger.commands.folders import add_folder
from specledger.reporting.figures import draw_all


def add_arguments(parser) -> None:
    parser.add_argument("--results", type=Path, required=True)
    add_folder(parser, "--output", "the figures")


def run(options, log) -> None:
    options.output.mkdir(parents=True, exist_ok=True)
    language = json.loads(options.settings)["report"]["language"]
    if draw_all(options.results, options.output, language) != language:
        log.say(f"figures: no font on this machine has the letters of {language}; the figures' words are English")
