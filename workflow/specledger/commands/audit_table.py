"""Stage `audit-table`: the verdicts of all rows together."""

import json
from pathlib import Path

from specledger.audit.measure import Measured
from specledger.audit.verdicts import COLUMNS, judge_white, table, trusted, whole
from specledger.foundation.records import read_json, write_rows


def add_arguments(parser) -> None:
    parser.add_argument("--rows", type=Path, nargs="+", required=True)
    parser.add_argument("--output", type=Path, required=True)


def run(options, log) -> None:
    settings = json.loads(options.settings)
    judged = judge_white([Measured.from_json(read_json(path)) for path in options.rows], level=settings["level"])
    for one in judged:
        log.write(f"{one.row.system}, {one.row.mode}: {one.verdict} ({one.why}), n {one.row.n}")
    for line in trusted(judged):
        log.say(f"audit: {line}; the run can't be trusted")
    log.say(f"audit: {whole(judged)}")
    write_rows(options.output, table(judged), COLUMNS)
