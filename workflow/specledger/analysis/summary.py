"""The few numbers that the report's text quotes."""

import numpy as np
import pandas as pd

from specledger.analysis.costs import PROPOSE
from specledger.foundation.drafters import TYPICAL
from specledger.statistics.families import holm
from specledger.statistics.intervals import LEVEL, Interval, paired_t_interval

REJECTION_LEVEL = 0.001


def _number(value: float | None) -> float | None:
    return None if value is None or np.isnan(value) else float(value)


def validation_losses(training: pd.DataFrame, model: str, column: str = "validation_loss") -> pd.Series:
    """A model's loss by seed, nats a character, indexed and sorted by seed."""
    return training[training["model"] == model].set_index("seed")[column].sort_index().astype(float)


def paired_difference(training: pd.DataFrame) -> tuple[Interval, dict[str, float]]:
    """Validation loss with MTP minus without, paired by seed (same data order), and its value by seed."""
    mtp, plain = validation_losses(training, "mtp"), validation_losses(training, "plain")
    values = {str(seed): float(value) for seed, value in (mtp - plain).items()}
    return paired_t_interval(mtp, plain), values


def tested(p_values: pd.Series) -> int:
    """How many tests were made: a symbol that is certain leaves nothing to test, and its p-value is empty."""
    return int(p_values.notna().sum())


def rejected(p_values: pd.Series, level: float = REJECTION_LEVEL) -> int | None:
    """How many depart from the target at `level` after Holm over those that tested anything; None where none did."""
    return int((holm(p_values) < level).sum()) if tested(p_values) else None


def _speedup(row: pd.Series) -> dict:
    return {
        "engine": row["engine"],
        "drafter": row["drafter"],
        "gamma": int(row["gamma"]),
        "speedup": _number(row["speedup"]),
        "lo": _number(row["speedup_lo"]),
        "hi": _number(row["speedup_hi"]),
        "method": row["speedup_method"],
    }


def _extremes(ledger: pd.DataFrame) -> dict:
    methods = ledger[ledger["drafter"] != "none"]
    if methods.empty:
        return {"best": None, "slowest": None, "most_tokens": None}
    typical = methods["drafter"].str.endswith(TYPICAL)  # which buys its tokens with the distribution
    most = methods.loc[methods["tokens_per_round"].where(~typical, 0.0).idxmax()]
    # A speed-up that changes the distribution is no answer to the question, so lossless rows go first.
    lossless = methods[methods["lossless"].astype(bool)]
    candidates = methods if lossless.empty else lossless
    return {
        "best": _speedup(candidates.loc[candidates["speedup"].idxmax()]),
        "slowest": _speedup(methods.loc[methods["speedup"].idxmin()]),
        "most_tokens": {
            "engine": most["engine"],
            "drafter": most["drafter"],
            "gamma": int(most["gamma"]),
            "tokens_per_round": float(most["tokens_per_round"]),
        },
    }


def _draft_costs(forwards: pd.DataFrame) -> dict[str, dict[str, float | None]]:
    """By engine and drafter the c of one token of its shortest proposal."""
    drafts = forwards[forwards["part"] == PROPOSE].sort_values("gamma").drop_duplicates(["engine", "drafter"])
    drafts = drafts.sort_values(["engine", "drafter"])
    return {
        engine: {row.drafter: _number(row.c) for row in group.itertuples()}
        for engine, group in drafts.groupby("engine")
    }


def clock_summary(ledger: pd.DataFrame, forwards: pd.DataFrame) -> dict:
    """Best, slowest and longest-reaching rows, and c by engine and drafter."""
    return _extremes(ledger) | {"c": _draft_costs(forwards)}


def _largest(prefix: pd.DataFrame, precision: str) -> float | None:
    rows = prefix.loc[prefix["precision"] == precision, "max_abs_difference"]
    return None if rows.empty else float(rows.max())


def summarise(
    *,
    training: pd.DataFrame,
    ledger: pd.DataFrame,
    forwards: pd.DataFrame,
    acceptance: pd.DataFrame,
    prefix: pd.DataFrame,
    greedy: pd.DataFrame,
) -> dict:
    """What tables/summary.json holds; ends of intervals are None where one seed gives none."""
    difference, values = paired_difference(training)
    return {
        "paired_difference": {
            "mean": difference.mean,
            "lo": difference.lo,
            "hi": difference.hi,
            "method": difference.method,
            "level": difference.level,
            "n": difference.n,
            "values": values,
        },
        **clock_summary(ledger, forwards),
        "interval": {"method": "t over seeds", "level": LEVEL, "n": difference.n},
        "prefix_max": _largest(prefix, "float32"),
        "prefix_max_float64": _largest(prefix, "float64"),
        "greedy_identical": int(greedy["identical"].sum()),
        "greedy_total": len(greedy),
        "acceptance_rows": len(acceptance),
        "acceptance_tested": tested(acceptance["p_value"]),
        "acceptance_rejected": rejected(acceptance["p_value"]),
    }
