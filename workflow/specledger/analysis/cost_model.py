"""Theory against clock: what single costs and an acceptance measured apart predict, beside the measured speed-up."""

from collections.abc import Callable

import numpy as np
import pandas as pd

from specledger.analysis.costs import Costs
from specledger.analysis.frames import PLAIN, ordered
from specledger.analysis.timing import METHOD, row_names
from specledger.analysis.yields import Yield, yield_of
from specledger.foundation.drafters import CHOOSERS, branched
from specledger.tables.registry import TABLES
from specledger.theory.speculation import measured_cost_speedup, walltime_speedup

MISS_LIMIT = 0.05
ALL = "all"


def predicted(costs: Costs, drafter: str, gamma: int, found: Yield) -> dict[str, float] | None:
    """The cells of one method: each cost of a round, averaged over how many proposals its rounds make.

    None where timings are so noisy that a round would take no time.
    """

    def over_rounds(seconds: Callable[[int], float]) -> float:
        return float(sum(share * seconds(k) for k, share in enumerate(found.share_K) if share > 0))

    propose = over_rounds(lambda k: costs.draft(drafter, k, gamma))
    verify = over_rounds(lambda k: costs.verify(k))
    overhead = over_rounds(lambda k: costs.overhead(drafter, k))
    if propose + verify + overhead <= 0:
        return None
    # A token's share of a proposal means nothing where nobody knows how many tokens it had.
    t_draft = np.nan if drafter in CHOOSERS else costs.propose[drafter, gamma] / gamma
    return {
        "tokens_per_round": found.tokens_per_round, "alpha_apart": found.alpha,
        "proposals": over_rounds(float), "t_ar": costs.t_ar, "t_draft": t_draft, "t_propose": propose,
        "t_verify": verify, "overhead": overhead, "plain_overhead": costs.plain_round - costs.t_ar,
        "t_round": propose + verify + overhead, "c": t_draft / costs.t_ar, "v": verify / costs.t_ar,
        "cost_model": measured_cost_speedup(
            tokens_per_round=found.tokens_per_round, plain_s=costs.plain_round, verify_s=verify,
            draft_s=propose / gamma, gamma=gamma, overhead_s=overhead,
        ),
    }  # fmt: skip


def cost_model_table(
    ledger: pd.DataFrame, costs: dict[str, Costs], plain_texts: pd.DataFrame, rounds_apart: pd.DataFrame
) -> pd.DataFrame:
    """One row per method with a measured ratio whose costs and yield were measured apart from it.

    Theorem 3.8 stands beside it at the acceptance and the c that were measured apart, with v = 1 and no
    overhead; not for a drafter that chooses how much it proposes, since it speaks of gamma proposals a round.
    """
    rows = []
    for row in ledger[ledger["drafter"] != PLAIN].itertuples():
        found = yield_of(plain_texts, rounds_apart, row.context_rule, row.drafter, row.gamma)
        priced = costs.get(row.engine)
        if found is None or priced is None or not priced.measured(row.drafter, row.gamma):
            continue
        expected = predicted(priced, row.drafter, row.gamma, found)
        if expected is None:
            continue
        cells = {"engine": row.engine, "drafter": row.drafter, "gamma": row.gamma} | expected
        if row.drafter not in CHOOSERS and not branched(row.drafter) and np.isfinite(found.alpha):
            cells["theorem38"] = walltime_speedup(min(found.alpha, 1.0), row.gamma, cells["c"])
        cells |= {"measured": row.speedup, "measured_lo": row.speedup_lo, "measured_hi": row.speedup_hi}
        cells["miss"] = cells["cost_model"] / row.speedup - 1
        cells["theorem38_miss"] = cells.get("theorem38", np.nan) / row.speedup - 1
        rows.append(cells)
    return ordered(pd.DataFrame(rows, columns=TABLES["cost_model"].computed), METHOD)


def r_squared(predicted: pd.Series, measured: pd.Series) -> float | None:
    """1 - SS_res / SS_tot of the ratios as they are; None where fewer than two or all alike are measured."""
    spread = float(((measured - measured.mean()) ** 2).sum())
    if len(measured) < 2 or spread == 0:
        return None
    return 1 - float(((measured - predicted) ** 2).sum()) / spread


def _fit(rows: pd.DataFrame) -> dict:
    """How well both predictions meet the clock over some rows; the theorem over those where it has a figure."""
    worst = rows.loc[rows["miss"].abs().idxmax()]
    theorem = rows.dropna(subset=["theorem38"])
    found = {
        "n": len(rows),
        "r2": r_squared(rows["cost_model"], rows["measured"]),
        "worst_miss": float(worst["miss"]),
        "worst_row": row_names(worst),
        "within": int((rows["miss"].abs() <= MISS_LIMIT).sum()),
        "limit": MISS_LIMIT,
        "theorem38_n": len(theorem),
        "theorem38_r2": r_squared(theorem["theorem38"], theorem["measured"]),
        "theorem38_worst_miss": None,
    }
    if len(theorem):
        found["theorem38_worst_miss"] = float(theorem.loc[theorem["theorem38_miss"].abs().idxmax(), "theorem38_miss"])
    return found


def cost_model_summary(table: pd.DataFrame) -> dict:
    """By engine and over all rows: R2, the worst miss and its row."""
    if table.empty:
        return {}
    return {engine: _fit(rows) for engine, rows in table.groupby("engine", sort=False)} | {ALL: _fit(table)}
