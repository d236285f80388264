"""The quantities of the clock, on which the goals of the study are judged; registered with the rest."""

import numpy as np
import pandas as pd

from specledger.analysis import costs
from specledger.analysis.frames import PLAIN
from specledger.analysis.measures import MEAN, Evidence, Measured, exact, measure, of_pairs, over_seeds
from specledger.analysis.measures_rule import MEASURES
from specledger.analysis.noise import AA, CLOCKS
from specledger.analysis.timing import SUM_LIMIT, row_names
from specledger.analysis.trees import RULED_OUT
from specledger.foundation.errors import UserError

__all__ = ["MEASURES"]
OWN, RECOMPUTE = "own", "recompute"
OURS, TRANSFORMERS = "specledger", "transformers"


def _named(row: pd.Series) -> str:
    names = row_names(row)
    return f"{names['engine']}, {names['drafter']}, gamma {names['gamma']}"


@measure
def best_speedup(evidence: Evidence, *, over: str = OWN) -> Measured | None:
    """The largest speed-up of a lossless row, over plain decoding of its own engine or of `recompute`.

    The row is chosen by the number that is then shown, which flatters it a little; its interval is its own.
    """
    column = {OWN: "speedup", RECOMPUTE: "speedup_vs_recompute"}.get(over)
    if column is None:
        raise UserError(f"best_speedup.over: must be {OWN} or {RECOMPUTE}, got {over!r}")
    rows = evidence.ledger[(evidence.ledger["drafter"] != PLAIN) & evidence.ledger["lossless"].astype(bool)]
    rows = rows.dropna(subset=[column])
    if rows.empty:
        return None
    row = rows.loc[rows[column].idxmax()]
    texts = evidence.texts
    same = (texts["engine"] == row["engine"]) & (texts["drafter"] == row["drafter"]) & (texts["gamma"] == row["gamma"])
    logs = "log_speedup" if over == OWN else "log_vs_recompute"
    return of_pairs(texts[same], logs, f", of the fastest row ({_named(row)})")


@measure
def parts_off(evidence: Evidence) -> Measured:
    """How far the parts of the worst row miss its clock, as a share of it."""
    row = evidence.time.loc[evidence.time["off"].abs().idxmax()]
    return exact(abs(row["off"]), f"largest of {len(evidence.time)} rows ({_named(row)})")


@measure
def other_share(evidence: Evidence) -> Measured:
    """The largest share of a row's clock that no reading explains; a part counted twice makes it negative."""
    row = evidence.time.loc[evidence.time["other_share"].idxmax()]
    least = evidence.time["other_share"].min()
    if least < -SUM_LIMIT:
        return exact(np.inf, f"parts overlap: the least is {least:.3g} of {len(evidence.time)} rows")
    return exact(row["other_share"], f"largest of {len(evidence.time)} rows ({_named(row)})")


@measure
def clock_cost(evidence: Evidence) -> Measured | None:
    """What reading the clocks adds to a text, as a share, of the dearest pair of runs with and without."""
    rows = evidence.noise[evidence.noise["pair"] == CLOCKS]
    if rows.empty:
        return None
    row = rows.loc[rows["ratio"].idxmax()]
    words = f"{row['method']}, {row['level']:.0%}, dearest of {len(rows)} ({_named(row)})"
    if row["n_seeds"] == 1 or pd.isna(row["lo"]):
        return Measured(value=row["ratio"] - 1, interval="none, n = 1")
    return Measured(value=row["ratio"] - 1, lo=row["lo"] - 1, hi=row["hi"] - 1, interval=words)


@measure
def aa_inside(evidence: Evidence) -> Measured | None:
    """Share of engines whose plain run against itself has 1.00 in its interval, at 95% for all engines together."""
    judged = evidence.noise.loc[evidence.noise["pair"] == AA, "inside_family"].dropna().astype(bool)
    return None if judged.empty else exact(judged.mean(), f"exact, {int(judged.sum())} of {len(judged)} engines")


@measure
def cost_model_miss(evidence: Evidence) -> Measured | None:
    """How far the full-cost model misses the measured ratio of the worst row, as a share of it."""
    rows = evidence.cost_model
    if rows.empty:
        return None
    row = rows.loc[rows["miss"].abs().idxmax()]
    return exact(abs(row["miss"]), f"largest of {len(rows)} rows ({_named(row)})")


@measure
def proposal_cost(evidence: Evidence, *, engine: str, drafter: str, gamma: int) -> Measured | None:
    """c of one token of a proposal of gamma tokens: over the engine's target forward of one position."""
    rows = evidence.forwards
    rows = rows[(rows["part"] == costs.PROPOSE) & (rows["engine"] == engine) & (rows["drafter"] == drafter)]
    rows = rows[rows["gamma"] == gamma]
    return None if rows.empty else over_seeds(rows.set_index("seed")["c"], MEAN)


@measure
def peer_ratio(evidence: Evidence, *, method: str) -> Measured | None:
    """Seconds of transformers' `method` over those of our fastest, paired by block, on the same weights in one run.

    Ours is plain decoding where theirs drafts nothing, else a speculative method; of several settings of theirs the
    fastest counts. None where benchmarks/peers.py was not run.
    """
    rows = evidence.peers
    rows = rows[(rows["program"] == TRANSFORMERS) & (rows["method"] == method)].dropna(subset=["ratio_to_ours"])
    if rows.empty:
        return None
    row = rows.loc[rows["seconds"].idxmin()]
    return _ratio_of(row, "ratio_to_ours", f"{int(row['repeats'])} blocks")


@measure
def training_ratio(evidence: Evidence, *, model: str) -> Measured | None:
    """Tokens a second of our training loop over those of a plain one, paired by block; the fastest precision counts."""
    rows = evidence.training_speed
    rows = rows[(rows["loop"] == OURS) & (rows["model"] == model)]
    if rows.empty:
        return None
    row = rows.loc[rows["ratio"].idxmax()]
    return _ratio_of(row, "ratio", f"{int(row['blocks'])} blocks")


@measure
def tree_ratio(evidence: Evidence) -> Measured | None:
    """The speed of the best tree over that of the best chain of the same drafter, where a tree gains most."""
    rows = evidence.trees.dropna(subset=["ratio"])
    if rows.empty:
        return None
    row = rows.loc[rows["ratio"].idxmax()]
    ends = {end: None if pd.isna(row[f"ratio_{end}"]) else float(row[f"ratio_{end}"]) for end in ("lo", "hi")}
    ruled_out = (evidence.trees["verdict"] == RULED_OUT).sum()
    where = f"{row['drafter']}, {int(row['nodes'])} nodes; v(N) rules it out for {ruled_out} of {len(rows)} drafters"
    return Measured(
        value=float(row["ratio"]), **ends, interval=f"{row['method']}, of the drafter that gains most ({where})"
    )


@measure
def heads_training(evidence: Evidence) -> Measured | None:
    """Seconds of training all heads of a seed over those of its target; None where no head was trained."""
    return None if evidence.heads_share.empty else over_seeds(evidence.heads_share, MEAN)


def _ratio_of(row: pd.Series, name: str, n: str) -> Measured:
    """A ratio with the interval that its table gives it."""
    ends = {end: None if pd.isna(row[f"{name}_{end}"]) else float(row[f"{name}_{end}"]) for end in ("lo", "hi")}
    return Measured(value=float(row[name]), **ends, interval=f"{row['interval']}, n = {n}")
