"""Stage `compare`: a study's tables beside a reference's, with a verdict on every figure that should carry over."""

import json
from collections import Counter
from pathlib import Path

from specledger.compare.judging import Rules
from specledger.compare.page import write_page
from specledger.compare.side import Side, in_words
from specledger.compare.studies import COLUMNS, compared, row, whole
from specledger.foundation.errors import UserError
from specledger.foundation.records import certificate, sum_of, write_json, write_rows


def add_arguments(parser) -> None:
    parser.add_argument("--tables", type=Path, required=True, help="of the study")
    parser.add_argument("--page", type=Path, required=True)
    parser.add_argument("--output", type=Path, required=True, help="compare.csv; its certificate goes beside it")


def reference_of(folder: str) -> Side:
    """The reference's side; UserError where there is none."""
    path = Path(folder)
    if not any(path.glob("*.csv")):
        raise UserError(
            f"{folder}: no tables of a reference there; keep one with `make keep-reference STUDY=NAME`, or name the "
            "tables folder of another study: config compare.reference"
        )
    return Side.of(path)


def run(options, log) -> None:
    settings = json.loads(options.settings)
    yours, reference = Side.of(options.tables), reference_of(settings["reference"])
    if yours.tables.resolve() == reference.tables.resolve():
        raise UserError(f"{reference.tables}: a study beside itself; name another one: config compare.reference")
    rules = Rules(**{name: settings[name] for name in ("difference_level", "equivalence_level", "margins")})
    pairs = compared(yours, reference, rules, despite_settings=settings["despite_settings"])
    said = in_words(yours, reference)
    for line in said:
        log.write(line)
    write_rows(options.output, [row(pair) for pair in pairs], COLUMNS)
    write_page(options.page, pairs, yours=yours, reference=reference, said=said, settings=settings)
    inputs = {
        f"{name}/{path.name}": sum_of(path)
        for name, side in (("yours", yours), ("reference", reference))
        for path in sorted(side.tables.glob("*.csv"))
    }
    cells = {"stage": options.stage, "settings": options.settings, "code": options.code, "inputs": inputs}
    record = certificate(**cells, device="cpu", threads=1)
    record["files"] = {options.output.name: sum_of(options.output)}
    write_json(options.output.parent / "certificate.json", record)
    total = Counter(pair.verdict for pair in pairs)
    told = ", ".join(f"{total[verdict]} {verdict}" for verdict in sorted(total))
    log.say(f"compare: {whole(pairs)} ({told}); {options.page}")
