"""Stage `audit-table`: the verdicts of all rows together, as a table and as a page."""

import json
import shlex
from dataclasses import replace
from pathlib import Path

from specledger.audit.matrix import LONG
from specledger.audit.measure import Measured
from specledger.audit.page import write_page
from specledger.audit.verdicts import COLUMNS, judge_white, table, trusted, whole
from specledger.foundation.records import read_json, write_rows


def add_arguments(parser) -> None:
    parser.add_argument("--rows", type=Path, nargs="+", required=True)
    parser.add_argument("--record", type=Path, required=True, help="the corpus', whose symbols the tokens are")
    parser.add_argument("--page", type=Path, required=True)
    parser.add_argument("--output", type=Path, required=True)


def command(config: str, row: Path) -> str:
    """What samples one row anew, from the same seeds."""
    return shlex.join(["snakemake", "--cores", "1", "--configfile", config, "--force", str(row)])


def run(options, log) -> None:
    settings = json.loads(options.settings)
    rows = [
        replace(Measured.from_json(read_json(path)), command=command(settings["config"], path)) for path in options.rows
    ]
    judged = judge_white(rows, level=settings["level"])
    for one in judged:
        log.write(f"{one.row.system}, {one.row.mode}: {one.verdict} ({one.why}), n {one.row.n}")
    for line in trusted(judged):
        log.say(f"audit: {line}; the run can't be trusted")
    log.say(f"audit: {whole(judged)}")
    write_rows(options.output, table(judged), COLUMNS)
    symbols = read_json(options.record)["vocabulary"]
    write_page(
        options.page,
        judged,
        title="specledger's audit of other people's decoders",
        level=settings["level"],
        facts=[
            ("Models", f"target {settings['target']} and draft model of the study {settings['study']}"),
            ("Systems", "; ".join(dict.fromkeys(f"{one.system} ({one.version})" for one in rows))),
            ("Prompts", f"start: {settings['start']!r}; long: {LONG} characters that no model was trained on"),
            ("Vocabulary", f"{len(symbols)} symbols"),
        ],
    )
