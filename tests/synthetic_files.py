"""What the made-up result folders share: how a file is written, and the bundle of the study."""

import csv
import json
from pathlib import Path

import numpy as np

SYMBOLS = sorted("\n !$&',-.3:;?ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz")
GAMMAS = (1, 2, 3, 4, 6, 8)
ENGINES = {"recompute": "window", "cached": "sliding", "compiled": "sliding"}
ALPHAS = {"draft": 0.74, "mtp": 0.90, "ngram": 0.66}
SWEPT = {**ALPHAS, "lookup": 0.62, "draft_dynamic": 0.84}  # the last two choose how much they propose
HEADS = {"mtp2": 0.88, "mtp4": 0.87, "parallel": 0.7, "medusa1": 0.67, "medusa2": 0.7, "eagle": 0.8}
CHAINED = {"mtp_chained": 0.85}
TREES = {
    "draft_tree": 0.82, "mtp_chained_tree": 0.9, "ngram_tree": 0.8, "parallel_tree": 0.78, "medusa1_tree": 0.76,
    "medusa1_typical": 0.88, "medusa2_tree": 0.78, "eagle_tree": 0.87,
}  # fmt: skip
APART = HEADS | CHAINED | TREES  # of a study with heads and trees, on the engine cached alone


def gammas_of(drafter: str) -> tuple[int, ...]:
    """The MTP module proposes one token a round; drafters that choose are swept at few limits; nodes of trees."""
    if drafter == "mtp":
        return (1,)
    if drafter in TREES:
        return (16,) if drafter == "medusa1_typical" else (4, 8, 16)
    if drafter in APART:
        return (1, 2, 4) if drafter in ("mtp4", "medusa1", "medusa2", "eagle") else (1, 2)
    return GAMMAS if drafter in ALPHAS else (2, 4, 8)


def write_csv(path: Path, rows: list[dict], columns: list[str] | None = None) -> None:
    """Rows as a tidy CSV: None is an empty cell, booleans are true and false."""

    def cell(value: object) -> str:
        if value is None:
            return ""
        if isinstance(value, bool | np.bool_):
            return "true" if value else "false"
        return f"{value:.10g}" if isinstance(value, float) else str(value)

    path.parent.mkdir(parents=True, exist_ok=True)
    columns = columns or list(rows[0])
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows([cell(row.get(name)) for name in columns] for row in rows)


def write_json(path: Path, value: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value, sort_keys=True, allow_nan=False, ensure_ascii=False), encoding="utf-8")
