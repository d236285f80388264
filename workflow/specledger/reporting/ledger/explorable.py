"""A row of the ledger opened, and the waterfall: what theory says of a method, and where its time went."""

from collections.abc import Mapping

from specledger.reporting import explorables, views_ledger
from specledger.reporting.document import Explorable
from specledger.reporting.formats import interval, known, number, times
from specledger.reporting.study import Study
from specledger.reporting.tables import Row, Table
from specledger.reporting.views_ledger import PARTS
from specledger.reporting.wording import Wording, shape_of

COLUMNS = (
    "gamma alpha tokens_per_round eq1 theorem38 cost_model cost_model_overhead overhead c v speedup speedup_lo "
    "speedup_hi wall_s"
).split()
WHICH = ("engine", "drafter", "gamma")
BEST = "best"
SHAPES = ("chain", "tree")
RATIOS = ("theorem38", "cost_model", "cost_model_overhead", "speedup")
APART = "tokens_per_round t_ar plain_overhead t_propose t_verify overhead cost_model miss".split()


def _key(row: Row) -> tuple:
    return tuple(row[name] for name in WHICH)


def _apart(row: Row | None) -> dict | None:
    """The prediction whose costs and acceptance were measured apart from the row; seconds become milliseconds."""
    if row is None or not all(known(row[name]) for name in APART):
        return None
    seconds = {"plain": row["t_ar"] + row["plain_overhead"], "propose": row["t_propose"], "verify": row["t_verify"]}
    times_ms = {name: 1000 * value for name, value in (seconds | {"overhead": row["overhead"]}).items()}
    cells = {"tokens": row["tokens_per_round"], "value": row["cost_model"], "miss": row["miss"]} | times_ms
    return {name: explorables.rounded(value) for name, value in cells.items()}


def _row(row: Row, time: Mapping[tuple, Row], apart: Mapping[tuple, Row], lossy: str) -> dict:
    key = _key(row)
    parts = (
        {part: explorables.rounded(time[key][part]) for part in PARTS if known(time[key][part])} if key in time else {}
    )
    cells = {name: explorables.rounded(row.get(name), 7) for name in COLUMNS}
    about = {"engine": row["engine"], "drafter": row["drafter"], "shape": shape_of(row["drafter"])}
    return about | cells | {"gamma": row["gamma"], "parts": parts, "lossy": lossy, "apart": _apart(apart.get(key))}


def ledger(study: Study, words: Wording) -> Explorable:
    """Set to the best row, or to the first where there is none."""
    time = {_key(row): row for row in study.tables["time"].rows}
    apart = {_key(row): row for row in study.tables["cost_model"].rows}
    rows = [_row(row, time, apart, views_ledger.cost_of_typical(study, row)) for row in study.tables["ledger"].rows]
    best = study.summary["best"] or {}
    chosen = next((at for at, row in enumerate(rows) if all(row[key] == best.get(key) for key in WHICH)), 0)
    plain = [at for at, row in enumerate(rows) if row["drafter"] == "none"]
    shown = rows[chosen]
    return explorables.block(
        "ledger",
        words,
        {"rows": rows, "row": chosen, "plain": {rows[at]["engine"]: at for at in plain}, "parts": list(PARTS)},
        names={kind: dict.fromkeys(row[kind] for row in rows) for kind in ("engine", "drafter")}
        | {"part": PARTS, "size": SHAPES},
        outcomes={
            "theorem38": times(shown["theorem38"]),
            "cost_model": times(shown["cost_model"]),
            "speedup": " ".join(
                filter(None, (times(shown["speedup"]), interval(shown["speedup_lo"], shown["speedup_hi"], decimals=2)))
            ),
        },
    )


def _cases(table: Table) -> list[dict]:
    """Each method of waterfall.csv with its steps in order."""
    found: dict[tuple, dict] = {}
    for row in table.rows:
        key = tuple(row[name] for name in (*WHICH, "case"))
        case = {name: row[name] for name in (*WHICH, "case")} | {"overall": bool(row.get("overall")), "steps": []}
        case["shape"] = shape_of(row["drafter"])
        step = {"step": row["step"]} | {end: explorables.rounded(row[f"ratio_{end}"], 8) for end in ("before", "after")}
        found.setdefault(key, case)["steps"].append(step)
    return list(found.values())


def waterfall(study: Study, words: Wording) -> Explorable | None:
    """Set to the best row of all engines; None in a study whose time was not taken apart."""
    cases = _cases(study.tables["waterfall"])
    if not cases:
        return None
    best = [at for at, case in enumerate(cases) if case["case"] == BEST]
    chosen = next((at for at in best if cases[at]["overall"]), best[0] if best else 0)
    steps = cases[chosen]["steps"]
    ends = [step[end] for case in cases for step in case["steps"] for end in ("before", "after")]
    top = max((value for value in ends if known(value)), default=1.0)
    return explorables.block(
        "waterfall",
        words,
        {"cases": cases, "case": chosen, "top": top * 1.02},
        names={kind: dict.fromkeys(case[kind] for case in cases) for kind in ("engine", "drafter")} | {"size": SHAPES},
        outcomes={"forwards": times(steps[0]["after"]), "clock": times(steps[-1]["after"])}
        | {"kept": number(steps[-1]["after"] / steps[0]["after"], 2)},
    )
