"""Other people's decoders held against the exact distribution, where `make audit` was run: a row a mode."""

from specledger.reporting import formats
from specledger.reporting.builder import Builder
from specledger.reporting.document import Cell, Column, Section, View, cell
from specledger.reporting.extras import extra
from specledger.reporting.formats import known
from specledger.reporting.tables import Row, Table
from specledger.reporting.views import count, grouped, num, plainly, view
from specledger.reporting.wording import Wording

LOOKS = {"kept": ("✓", "reproduced"), "departs": ("✗", "not-reproduced"), "undecided": ("?", "inconclusive")}
WARPERS = ("temperature", "top_k", "top_p", "min_p", "repetition_penalty")


def audit(make: Builder) -> Section | None:
    """The section; None where no audit was run."""
    table = extra(make.study.results, "audit")
    if table is None:
        return None
    rows = list(grouped(table.rows, "system", "mode", "prompt").values())
    audited = [tests for tests in rows if not tests[0]["control"]]
    wrong = [tests for tests in rows if known(tests[0]["expected"]) and tests[0]["verdict"] != tests[0]["expected"]]
    verdicts = [tests[0]["verdict"] for tests in audited]
    values = {
        "rows": len(audited),
        "systems": make.words.listed(table.values("system")),
        **{verdict: verdicts.count(verdict) for verdict in LOOKS},
    }
    return make.section(
        "audit",
        "",
        make.joined(
            "sections.audit.brief",
            f"sections.audit.{'distrusted' if wrong else 'trusted'}",
            controls=len(rows) - len(audited),
            **values,
        ),
        None,
        make.fold("audit", "how", make.text("sections.audit.lead"), make.text("sections.audit.after")),
        make.table("audit", verdicts_of(table, make.words, rows)),
    )


def verdicts_of(table: Table, words: Wording, rows: list[list[Row]]) -> View:
    heads = "verdict system mode sampling n p tv_draft tv_any tokens_per_forward time"
    columns = tuple(
        Column(label=words.say(f"audit_columns.{name}"), numeric=name not in ("verdict", "system", "mode", "sampling"))
        for name in heads.split()
    )
    return view(words, "audit", columns, [_cells(words, tests) for tests in rows])


def _cells(words: Wording, tests: list[Row]) -> tuple[Cell, ...]:
    row = tests[0]
    glyph, mark = LOOKS.get(row["verdict"], ("?", "inconclusive"))
    verdict = words.say(f"audit_verdicts.{row['verdict']}")
    control = words.say(f"audit_controls.{row['control']}") if row["control"] else ""
    settings = [f"{name} {formats.setting(row[name])}" for name in WARPERS if known(row[name])]
    p_values = [test["p_holm"] for test in tests if known(test["p_holm"])]
    return (
        Cell(text=f"{glyph} {verdict}", sort=verdict, mark=mark, note=control),
        cell(row["system"], sort=row["system"], note=str(row["version"] or "")),
        cell(row["mode"], sort=row["mode"]),
        cell(", ".join(settings)),
        count(row["n"]),
        plainly(min(p_values, default=None), formats.p_value),
        num(_first(tests, "detectable_tv_draft"), 3),
        num(_first(tests, "detectable_tv_any"), 3),
        num(row["tokens_per_forward"], 2),
        plainly(row["seconds_per_text"], formats.milliseconds),
    )


def _first(tests: list[Row], column: str) -> float | None:
    """The least distance that one of the tests would have seen."""
    return min((test[column] for test in tests if known(test[column])), default=None)
