"""Stage `audit-environment`: the environment of one audited system."""

from pathlib import Path

from specledger.audit import environments
from specledger.audit.workers import registry


def add_arguments(parser) -> None:
    parser.add_argument("--system", required=True, help="the name of an audited system")
    parser.add_argument("--requirements", type=Path, required=True)
    parser.add_argument("--output", type=Path, required=True, help="installed.json in the environment's folder")


def run(options, log) -> None:
    adapter = registry.adapter(options.system)
    log.say(f"audit: installing {options.system} into {options.output.parent} (once)")
    environments.make(options.output.parent, options.requirements, adapter.UNWANTED, log.write)
