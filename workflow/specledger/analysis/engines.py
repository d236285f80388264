"""Which engines ran, what compiling took, and whether engines of one rule of context write the same texts."""

import pandas as pd

from specledger.analysis.frames import columns_of, is_true, ordered
from specledger.statistics.intervals import t_interval
from specledger.tables.registry import TABLES

AGREEMENT_KEYS = ["engine", "reference", "drafter", "gamma"]
ROUNDING = 1e-5  # in probability: a decision that fell otherwise by less may be that of two sums rounded differently


def engines_table(engines: pd.DataFrame) -> pd.DataFrame:
    """One row an engine: whether it ran at every seed, why not where it did not, and seconds of compiling."""
    engines = engines.assign(available=is_true(engines["available"]))
    rows = []
    for engine, group in engines.groupby("engine", sort=True):
        reasons = list(dict.fromkeys(group.loc[~group["available"], "why"].dropna().astype(str)))
        row = {"engine": engine, "available": bool(group["available"].all()), "why": "; ".join(reasons) or None}
        seconds = group.loc[group["available"], "compile_s"].dropna()
        row |= columns_of("compile_s", t_interval(seconds) if len(seconds) else None)
        rows.append(row | {"seeds": group["seed"].nunique()})
    return ordered(pd.DataFrame(rows, columns=TABLES["engines"].computed), ["engine"])


def agreement_table(agreement: pd.DataFrame) -> pd.DataFrame:
    """One row per engine and method: texts that equal those of the reference engine for the same random numbers.

    Of those that part: the earliest place, the largest known margin there of the random number from a cut, and
    how many margins are unknown.
    """
    agreement = agreement.assign(
        identical=is_true(agreement["identical"]), margin=pd.to_numeric(agreement["margin"], errors="coerce")
    )
    rows = []
    for key, group in agreement.groupby(AGREEMENT_KEYS, sort=True):
        row = dict(zip(AGREEMENT_KEYS, key, strict=True))
        row |= {"texts": len(group), "identical": int(group["identical"].sum())}
        row |= {"first_divergence": group["first_divergence"].min(), "margin": group["margin"].max()}
        row["margins_unknown"] = int(group.loc[~group["identical"], "margin"].isna().sum())
        rows.append(row | {"tokens": int(group["tokens"].max()), "seeds": group["seed"].nunique()})
    return ordered(pd.DataFrame(rows, columns=TABLES["agreement"].computed), ["engine", "drafter", "gamma"])


def writes_other_text(agreement: pd.DataFrame) -> pd.Series:
    """Of each row of `agreement_table`: do its texts part by more than rounding, or by nobody knows how much?"""
    return (agreement["margin"] >= ROUNDING) | (agreement["margins_unknown"] > 0)


def engines_summary(engines: pd.DataFrame, agreement: pd.DataFrame) -> dict:
    """Which engines are missing and why, how many texts agree between engines, and how far apart the others were."""
    missing = engines[~engines["available"].astype(bool)]
    return {
        "engines_missing": {row.engine: row.why or "" for row in missing.itertuples()},
        "agreement_texts": int(agreement["texts"].sum()),
        "agreement_identical": int(agreement["identical"].sum()),
        "agreement_margin": None if agreement["margin"].isna().all() else float(agreement["margin"].max()),
        "agreement_margins_unknown": int(agreement["margins_unknown"].sum()),
        "agreement_limit": ROUNDING,
    }
