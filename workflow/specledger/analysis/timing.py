"""Seconds of whole texts: each paired with the plain text of its block, and told apart by part.

A block is one seed and repeat. Of its runs, those of copy 0 with clocks are the study's; the second plain
run (copy 1) and the runs without clocks (clocked 0) are there for the noise alone.
"""

import numpy as np
import pandas as pd

from specledger.analysis.frames import PLAIN, is_true, ordered
from specledger.foundation.errors import UserError
from specledger.statistics.intervals import LEVEL, Interval
from specledger.statistics.paired import paired_log_interval
from specledger.tables.registry import TABLES

BLOCK = ["seed", "repeat", "temperature"]
METHOD = ["engine", "drafter", "gamma"]
PARTS = ["draft", "catch_up", "verify", "accept", "sync", "other"]
SUM_LIMIT, OTHER_LIMIT = 0.02, 0.05  # of the clock: how far the parts may miss it, and what may stay unexplained


def of_study(runs: pd.DataFrame) -> pd.DataFrame:
    """Each method's one run a block, with clocks: without the copies that are there for the noise."""
    return runs[(runs["copy"] == 0) & is_true(runs["clocked"])]


def is_counted(runs: pd.DataFrame) -> pd.Series:
    """Whether acceptance and rounds of a text count: those of the first blocks, which every method has."""
    return is_true(runs["counted"]) if "counted" in runs else pd.Series(True, index=runs.index)


def with_ratios(runs: pd.DataFrame) -> pd.DataFrame:
    """The study's texts with their log ratio to the plain text of their block, on their engine and on recompute.

    The ratio is of seconds a token, so that a text that ends a token late is not penalised.
    Adds: log_speedup, log_vs_recompute (nan without that engine), alpha and tokens_per_round of the text.
    """
    runs = of_study(runs)
    plain = runs[runs["drafter"] == PLAIN]
    plain = plain.assign(plain_s=plain["wall_s"] / plain["tokens"])
    twice = plain.duplicated([*BLOCK, "engine"])
    if twice.any():
        row = plain[twice].iloc[0]
        raise UserError(f"sweep of seed {row['seed']}: two plain rows for {row['engine']} in repeat {row['repeat']}")
    own = plain[[*BLOCK, "engine", "plain_s"]]
    base = plain.loc[plain["engine"] == "recompute", [*BLOCK, "plain_s"]].rename(columns={"plain_s": "recompute_s"})
    table = runs.merge(own, on=[*BLOCK, "engine"], how="left").merge(base, on=BLOCK, how="left")
    if table["plain_s"].isna().any():
        row = table[table["plain_s"].isna()].iloc[0]
        raise UserError(f"sweep of seed {row['seed']}: no plain row for {row['engine']} in repeat {row['repeat']}")
    per_token = table["wall_s"] / table["tokens"]
    counted = is_counted(table)
    return table.assign(
        log_speedup=np.log(table["plain_s"] / per_token),
        log_vs_recompute=np.log(table["recompute_s"] / per_token),
        alpha=table["accepted"] / table["examined"].where((table["examined"] > 0) & counted),
        tokens_per_round=table["tokens"] / table["rounds"].where(counted),
    )


def ratio_interval(texts: pd.DataFrame, column: str = "log_speedup", level: float = LEVEL) -> Interval | None:
    """exp of the median of paired log ratios over all blocks; None where none is known."""
    known = texts.dropna(subset=[column])
    groups = [group.to_numpy() for _, group in known.groupby("seed")[column]]
    return paired_log_interval(groups, level=level) if groups else None


def time_table(texts: pd.DataFrame) -> pd.DataFrame:
    """Where a text's seconds go, per method: means over seeds of means over texts, and whether they add up.

    `off` is the sum of the parts over wall_s, minus 1, and `other_share` what none of the clock's readings
    explains: the part `other` over wall_s. adds_up: off within 2%, other_share from -2% to 5%.
    """
    seconds = {f"{part}_s": part for part in PARTS}
    by_seed = texts.groupby(["seed", *METHOD])[[*seconds, "wall_s"]].mean()
    table = by_seed.groupby(METHOD).mean().reset_index().rename(columns=seconds)
    table["parts_s"] = table[PARTS].sum(axis=1)
    table["off"] = table["parts_s"] / table["wall_s"] - 1
    table["other_share"] = table["other"] / table["wall_s"]
    table["adds_up"] = (table["off"].abs() <= SUM_LIMIT) & table["other_share"].between(-SUM_LIMIT, OTHER_LIMIT)
    return ordered(table[TABLES["time"].computed], METHOD)


def row_names(row: pd.Series) -> dict:
    """What tells a method from the others, for summary.json."""
    return {"engine": row["engine"], "drafter": row["drafter"], "gamma": int(row["gamma"])}


def time_summary(time: pd.DataFrame) -> dict:
    """How many rows add up, and the worst of them by either figure."""
    off, other = (time.loc[time[column].abs().idxmax()] for column in ("off", "other_share"))
    return {
        "rows": len(time),
        "rows_that_add_up": int(time["adds_up"].sum()),
        "off_limit": SUM_LIMIT,
        "other_limit": OTHER_LIMIT,
        "worst_off": row_names(off) | {"off": float(off["off"])},
        "worst_other": row_names(other) | {"other_share": float(other["other_share"])},
    }
