"""Eq. (1) and Theorem 3.8 under sliders, with what was measured over them."""

import math
from collections.abc import Iterable, Mapping

from specledger.foundation.drafters import branched
from specledger.reporting import explorables, findings
from specledger.reporting.document import Control, Explorable
from specledger.reporting.formats import known, number, times
from specledger.reporting.study import Study
from specledger.reporting.tables import Row
from specledger.reporting.views_bounds import ends_of
from specledger.reporting.wording import Wording
from specledger.theory.speculation import best_gamma, expected_tokens_per_round, walltime_speedup

LEAST_GAMMAS = 12
ALPHA, COST, GAMMA = 0.7, 0.2, 4  # where nothing was measured
# The frame of both drawings in SVG units: γ = 1 and the last γ across, zero and the highest value upwards.
FIRST, LAST, FLOOR, CEILING = 50, 446, 206, 14
FURTHEST = 1.5  # of the highest value: an interval that goes beyond would press the rest to the floor
COLUMNS = (
    "gamma alpha c tokens_per_round tokens_per_round_lo tokens_per_round_hi speedup speedup_lo speedup_hi cost_model"
)


def _point(row: Row) -> dict:
    """A measured row; its intervals end where the quantities do."""
    cells = {name: row[name] for name in COLUMNS.split()}
    for column in ("tokens_per_round", "speedup"):
        cells[f"{column}_lo"], cells[f"{column}_hi"], _ = ends_of(row, column)
    return {name: explorables.rounded(value) for name, value in cells.items()}


def _methods(rows: Iterable[Row]) -> list[dict]:
    """Engine × drafter with the measured points by γ."""
    found: dict[tuple, list[Row]] = {}
    for row in rows:
        found.setdefault((row["engine"], row["drafter"]), []).append(row)
    return [
        {
            "engine": engine,
            "drafter": drafter,
            "points": [_point(row) for row in sorted(points, key=lambda row: row["gamma"])],
        }
        for (engine, drafter), points in found.items()
    ]


def start_of(method: Mapping | None) -> dict:
    """Where the sliders stand for a method: at its fastest row, rounded to the sliders' steps."""
    if method is None:
        return {"alpha": ALPHA, "c": COST, "gamma": GAMMA}
    row = max(method["points"], key=lambda point: point["speedup"] or 0.0)
    return {"alpha": round(row["alpha"], 2), "c": min(1.0, round(row["c"], 2)), "gamma": int(row["gamma"])}


def _scale(values: Iterable[float | None], ends: Iterable[float | None], least: float) -> dict:
    """The highest tick and the ticks, at most seven: above all values, and the intervals' ends unless far off."""
    highest = max((value for value in values if known(value)), default=least)
    furthest = max((value for value in ends if known(value)), default=highest)
    top = max(least, math.ceil(max(highest, min(furthest, FURTHEST * highest)) * 1.02))
    step = math.ceil(top / 7)
    top = step * math.ceil(top / step)
    return {"top": top, "ticks": list(range(0, top + 1, step)), "unit": (FLOOR - CEILING) / top}


def _drawing(methods: list[dict], start: Mapping, gammas: list[int]) -> dict:
    alpha, cost, points = start["alpha"], start["c"], [point for one in methods for point in one["points"]]
    eq1 = [expected_tokens_per_round(alpha, gamma) for gamma in gammas]
    theorem = [walltime_speedup(alpha, gamma, cost) for gamma in gammas]
    measured = {kind: [point[kind] for point in points] for kind in ("tokens_per_round", "speedup", "cost_model")}
    ends = {kind: [point[f"{kind}_hi"] for point in points] for kind in ("tokens_per_round", "speedup")}
    return {
        "first": FIRST,
        "step": (LAST - FIRST) / (len(gammas) - 1),
        "floor": FLOOR,
        "ceiling": CEILING,
        "tokens": _scale([*eq1, *measured["tokens_per_round"]], ends["tokens_per_round"], 4),
        "clock": _scale([*theorem, *measured["speedup"], *measured["cost_model"]], ends["speedup"], 2),
        "eq1": eq1,
        "theorem38": theorem,
    }


def speedup(study: Study, words: Wording) -> Explorable:
    """Set to the draft model's (else the best) fastest row."""
    chains = [row for row in study.tables["ledger"].rows if row["gamma"] > 0 and not branched(row["drafter"])]
    rows = [row for row in chains if known(row["alpha"]) and known(row["c"])]
    methods = _methods(rows)
    drafts = [row for row in rows if row["drafter"] == "draft"] or rows
    fastest = max(drafts, key=lambda row: row["speedup"] or 0.0, default=None)
    chosen = next((at for at, one in enumerate(methods) if fastest and _same(one, fastest)), None)
    start = start_of(None if chosen is None else methods[chosen])
    gammas = list(range(1, max(LEAST_GAMMAS, *(int(row["gamma"]) for row in rows), 1) + 1))
    best = best_gamma(start["alpha"], start["c"], gammas)
    key = "explorables.speedup"
    measured = words.joint + words.spans(f"{key}.measured", **findings.method_names(words, fastest)) if fastest else ()
    settings = (("alpha", 0, 1, 0.01, 2), ("c", 0, 1, 0.01, 2), ("gamma", 1, gammas[-1], 1, 0))
    return explorables.block(
        "speedup",
        words,
        {"methods": methods, "chosen": chosen, "start": start, "gammas": gammas, "best": best}
        | {"drawing": _drawing(methods, start, gammas)},
        lead=words.spans(f"{key}.lead") + measured,
        names={kind: dict.fromkeys(one[kind] for one in methods) for kind in ("engine", "drafter")},
        controls=tuple(
            Control(
                id=name,
                label=words.say(f"{key}.{name}"),
                least=str(least),
                most=str(most),
                step=str(step),
                value=str(start[name]),
                text=number(start[name], decimals),
            )
            for name, least, most, step, decimals in settings
        ),
        outcomes={
            "eq1": number(expected_tokens_per_round(start["alpha"], start["gamma"]), 2),
            "theorem38": times(walltime_speedup(start["alpha"], start["gamma"], start["c"])),
            "best": f"{best} ({times(walltime_speedup(start['alpha'], best, start['c']))})",
        },
    )


def _same(method: Mapping, row: Row) -> bool:
    return (method["engine"], method["drafter"]) == (row["engine"], row["drafter"])
