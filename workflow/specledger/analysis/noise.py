"""What the machine's noise does to a ratio, and what reading the clocks costs: pairs that should differ by nothing."""

import numpy as np
import pandas as pd

from specledger.analysis.frames import PLAIN, is_true, ordered
from specledger.analysis.timing import BLOCK, ratio_interval
from specledger.statistics.intervals import LEVEL, Interval
from specledger.tables.registry import TABLES

AA, CLOCKS = "A/A", "clocks"
KEYS = [*BLOCK, "engine", "drafter", "gamma"]
CLOCK_LIMIT = 2.0  # percent of a text that reading the clocks may cost


def _pairs(first: pd.DataFrame, second: pd.DataFrame) -> pd.DataFrame:
    """The log ratio of seconds a token, first over second, of the runs of one method in one block."""
    both = first.merge(second, on=KEYS, suffixes=("", "_second"))
    ratio = (both["wall_s"] / both["tokens"]) / (both["wall_s_second"] / both["tokens_second"])
    return both[KEYS].assign(log_ratio=np.log(ratio))


def noise_pairs(runs: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """By kind the pairs: plain run over plain run, and each run with clocks over its twin without."""
    clocked = is_true(runs["clocked"])
    first = runs[(runs["copy"] == 0) & clocked]
    again = runs[(runs["copy"] == 1) & clocked & (runs["drafter"] == PLAIN)]
    return {AA: _pairs(first, again), CLOCKS: _pairs(first, runs[(runs["copy"] == 0) & ~clocked])}


def _holds_one(found: Interval) -> bool | None:
    return None if found.lo is None else bool(found.lo <= 1 <= found.hi)


def _row(kind: str, key: tuple, pairs: pd.DataFrame, family: int) -> dict:
    """One pair; of several such pairs one may miss 1.00 by chance, so `inside_family` shares 5% among them."""
    found = ratio_interval(pairs, "log_ratio")
    row = dict(zip(("engine", "drafter", "gamma"), key, strict=True)) | {"pair": kind}
    row |= {"ratio": found.mean, "lo": found.lo, "hi": found.hi, "method": found.method, "level": found.level}
    row |= {"n_pairs": len(pairs), "n_seeds": pairs["seed"].nunique()}
    row["inside"] = _holds_one(found)
    row["inside_family"] = _holds_one(ratio_interval(pairs, "log_ratio", 1 - (1 - LEVEL) / family))
    # The middle half of single pairs, from quartile to quartile: what one pair may be off by.
    low, high = np.quantile(pairs["log_ratio"], (0.25, 0.75))
    row["spread_percent"] = 100 * (np.exp(high - low) - 1)
    if kind == CLOCKS:
        ends = {"cost_percent": found.mean, "cost_percent_lo": found.lo, "cost_percent_hi": found.hi}
        row |= {name: np.nan if end is None else 100 * (end - 1) for name, end in ends.items()}
    return row


def noise_table(runs: pd.DataFrame) -> pd.DataFrame:
    """One row per engine and pair: A/A (the plain run twice) and clocks (with over without reading them)."""
    rows = []
    for kind, pairs in noise_pairs(runs).items():
        groups = list(pairs.groupby(["engine", "drafter", "gamma"]))
        rows += [_row(kind, key, group, len(groups)) for key, group in groups]
    return ordered(pd.DataFrame(rows, columns=TABLES["noise"].computed), ["pair", "engine", "drafter", "gamma"])


def _deciding(clocks: pd.DataFrame) -> pd.Series:
    """The pair whose interval lies furthest beyond the limit; if none does, the one whose interval ends highest."""
    beyond = clocks[clocks["cost_percent_lo"] > CLOCK_LIMIT]
    if len(beyond):
        return clocks.loc[beyond["cost_percent_lo"].idxmax()]
    return clocks.loc[clocks["cost_percent_hi"].astype(float).fillna(np.inf).idxmax()]


def noise_summary(noise: pd.DataFrame) -> dict:
    """How many A/A pairs hold 1.00 in their interval, and the clocks that decide what reading them costs."""
    same, clocks = (noise[noise["pair"] == kind] for kind in (AA, CLOCKS))
    judged = same["inside_family"].dropna()
    dearest = _deciding(clocks) if len(clocks) else None
    ends = {name: None if dearest is None else dearest[name] for name in ("cost_percent_lo", "cost_percent_hi")}
    return {
        "aa_pairs": len(same),
        "aa_judged": len(judged),
        "aa_inside": int(judged.astype(bool).sum()),
        "clock_limit_percent": CLOCK_LIMIT,
        "clock_percent": None if dearest is None else float(dearest["cost_percent"]),
        **{name.replace("cost", "clock"): None if pd.isna(end) else float(end) for name, end in ends.items()},
        "clock_engine": None if dearest is None else dearest["engine"],
    }
