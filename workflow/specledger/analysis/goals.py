"""What this project set out to reach, judged by the same rules as the published readings, on any corpus."""

from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from specledger.analysis import claims, rules
from specledger.analysis.measures import Evidence, Measured
from specledger.analysis.measures_time import MEASURES

GOAL_COLUMNS = "goal title unit rule measured lo hi interval verdict reason why".split()
REACHED, MISSED, INCONCLUSIVE, NOT_MEASURED = "reached", "missed", "inconclusive", "not measured"
VERDICTS = {rules.REPRODUCED: REACHED, rules.NOT_REPRODUCED: MISSED, rules.INCONCLUSIVE: INCONCLUSIVE}
REQUIRED = {"id", "title", "unit", "rule", "measure", "trained"}


@dataclass(frozen=True, kw_only=True)
class Goal:
    """One goal: the rule that our number must satisfy, and whether that needs models trained to the end."""

    id: str
    title: str
    unit: str
    rule: dict
    measure: dict
    trained: bool
    note: str = ""


def parse_goal(entry: object, where: str) -> Goal:
    """One entry of the file, checked; UserError names the key, the value and what is allowed."""
    claims.check_keys(entry, REQUIRED, {"note"}, where)
    claims.check_rule({**entry, "published": None, "comparable": True}, where)
    claims.check_measure(entry, where)
    return Goal(**entry)


def read_goals(path: Path) -> list[Goal]:
    """All goals of config/claims.yaml, in its order."""
    return claims.parse_all(path, "goals", parse_goal)


def _judged(goal: Goal, measured: Measured | None, *, quick: bool) -> dict[str, str | None]:
    """Verdict, the key of its reason, and the reason; what was not measured is neither reached nor missed."""
    if measured is None:
        return {"verdict": NOT_MEASURED, "reason": None, "why": "Not measured in this study."}
    found = claims.UNTRAINED if quick and goal.trained else rules.judge(goal.rule, None, measured)
    text = f"Ours is {rules.number(measured.value)} ({measured.interval}): {found.reason}"
    why = f"{text}; {goal.note}." if goal.note else f"{text}."
    return {"verdict": VERDICTS[found.verdict], "reason": found.key, "why": why}


def judge_goals(goals: list[Goal], evidence: Evidence, *, quick: bool) -> pd.DataFrame:
    """The table goals.csv: one row a goal, in the file's order."""
    rows = []
    for goal in goals:
        arguments = {key: value for key, value in goal.measure.items() if key != "quantity"}
        measured = MEASURES[goal.measure["quantity"]](evidence, **arguments)
        cells = (measured.value, measured.lo, measured.hi, measured.interval) if measured else (None,) * 4
        rows.append(
            {"goal": goal.id, "title": goal.title, "unit": goal.unit, "rule": rules.describe(goal.rule, None)}
            | dict(zip(("measured", "lo", "hi", "interval"), cells, strict=True))
            | _judged(goal, measured, quick=quick)
        )
    return pd.DataFrame(rows, columns=GOAL_COLUMNS)
