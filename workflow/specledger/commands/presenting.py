"""What the stages `page` and `paper` share."""

import json
from pathlib import Path

from specledger.analysis.provenance import provenance


def add_arguments(parser) -> None:
    parser.add_argument("--results", type=Path, required=True)
    parser.add_argument("--expected", required=True, help="hashes that the certificates must have, as JSON")
    parser.add_argument("--output", type=Path, required=True)


def present(options, log, render) -> None:
    """Render with the study's provenance; what doesn't belong to the study is said here too."""
    config = json.loads(options.settings)
    about = provenance(options.results, config, options.settings, json.loads(options.expected))
    for line in (*about["stale"], *about["mixed"]):
        log.say(f"report: {line}")
    options.output.parent.mkdir(parents=True, exist_ok=True)
    render(options.results, options.results / "figures", about, options.output)
