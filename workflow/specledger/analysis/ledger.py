"""The ledger: what each method yields and costs, from single texts to seeds to one row a method."""

import numpy as np
import pandas as pd

from specledger.analysis.costs import FORWARD, PROPOSE, ROUND, with_ratios
from specledger.analysis.engines import writes_other_text
from specledger.analysis.frames import PLAIN, columns_of, known, mean, ordered
from specledger.analysis.timing import is_counted, ratio_interval
from specledger.foundation.drafters import CHOOSERS, TYPICAL, branched
from specledger.statistics.intervals import Interval, t_interval
from specledger.tables.registry import TABLES
from specledger.theory.speculation import expected_tokens_per_round, measured_cost_speedup, walltime_speedup

METHOD = ["engine", "context_rule", "drafter", "gamma", "temperature"]


def methods_by_seed(texts: pd.DataFrame, forwards: pd.DataFrame) -> pd.DataFrame:
    """One row per seed and method: counts pooled over its texts, medians of paired log ratios, costs.

    Args:
        texts: the study's texts with their ratios, as `timing.with_ratios` gives them.

    Counts are of the texts that every method has, seconds of all that were timed.
    alpha is the sum of accepted over the sum of examined proposals, examined = min(A + 1, gamma) a round.
    c, v and overhead are of single timings over that of a one-token forward: of one proposed token, of
    verifying gamma + 1 positions, of what a round takes beside its proposal and its forward.
    """
    groups = texts.groupby(["seed", *METHOD], sort=True)
    counted = texts[is_counted(texts)].groupby(["seed", *METHOD], sort=True)
    sums = counted[["accepted", "examined", "rounds", "tokens", "drafted"]].sum()
    forwards_of = counted[["target_forwards", "draft_forwards"]].mean()
    medians = groups[["log_speedup", "log_vs_recompute"]].median()
    table = pd.concat([forwards_of, groups[["wall_s"]].mean(), medians], axis=1).assign(
        tokens=sums["tokens"] / counted.size(),
        repeats=groups.size(),
        alpha=sums["accepted"] / sums["examined"].where(sums["examined"] > 0),
        tokens_per_round=sums["tokens"] / sums["rounds"],
        proposals=sums["drafted"] / sums["rounds"],
    )
    table["forwards_per_token"] = table["target_forwards"] / table["tokens"]
    return _with_costs(table.reset_index(), with_ratios(forwards))


def _with_costs(table: pd.DataFrame, costs: pd.DataFrame) -> pd.DataFrame:
    verify = costs[costs["part"] == FORWARD].assign(gamma=costs["positions"] - 1)
    one = verify.loc[verify["positions"] == 1, ["seed", "engine", "target_s"]]
    table = table.merge(one, on=["seed", "engine"], how="left")
    keys = ["seed", "engine", "drafter", "gamma"]
    for part, name in ((PROPOSE, "c"), (ROUND, "round_c")):
        rows = costs.loc[costs["part"] == part, [*keys, "c"]]
        table = table.merge(rows.rename(columns={"c": name}), on=keys, how="left")
    rows = verify[["seed", "engine", "gamma", "c"]].rename(columns={"c": "v"})
    table = table.merge(rows, on=["seed", "engine", "gamma"], how="left")
    table["v"] = table["v"].where(table["gamma"] > 0)
    plain = table["drafter"] == PLAIN
    spent = (table["gamma"] * table["c"]).where(~plain, 0.0) + table["v"].where(~plain, 1.0)
    table["overhead"] = (table["round_c"] - spent).where(~table["drafter"].isin(CHOOSERS))
    table["token_s"] = table["wall_s"] / table["tokens"]
    table["token_in_forwards"] = table["token_s"] / table["target_s"]
    return table


def _theory(row: dict[str, float], plain_overhead: float) -> dict[str, float]:
    """What the formulas say at the row's own means, so that a reader can recompute them from the row.

    They speak of gamma proposals a round, so a drafter that chooses how many to make has none of them.
    """
    alpha, gamma, c, v, yielded = (row[key] for key in ("alpha", "gamma", "c", "v", "tokens_per_round"))
    cells = dict.fromkeys(("eq1", "theorem38", "cost_model", "cost_model_overhead"), np.nan)
    if gamma == 0 or row["drafter"] in CHOOSERS:
        return cells
    if not np.isnan(alpha) and not branched(row["drafter"]):  # equation (1) is of chains
        cells["eq1"] = expected_tokens_per_round(alpha, gamma)
        if not np.isnan(c):
            cells["theorem38"] = walltime_speedup(alpha, gamma, c)
    if not np.isnan(c) and not np.isnan(v):
        costs = {"tokens_per_round": yielded, "verify_s": v, "draft_s": c, "gamma": gamma}
        cells["cost_model"] = measured_cost_speedup(plain_s=1.0, **costs)
        if not np.isnan(row["overhead"]) and not np.isnan(plain_overhead):
            cells["cost_model_overhead"] = measured_cost_speedup(
                plain_s=1.0 + plain_overhead, overhead_s=row["overhead"], **costs
            )
    return cells


def _speedups(texts: pd.DataFrame, plain: bool) -> dict:
    found = ratio_interval(texts)
    if plain:  # 1 by definition, not by measurement
        found = Interval(mean=1.0, lo=None, hi=None, n=1, level=0.0, method="")
    cells = columns_of("speedup", found) | {"speedup_method": found.method or None}
    return cells | columns_of("speedup_vs_recompute", ratio_interval(texts, "log_vs_recompute"))


def _ledger_row(
    key: tuple, group: pd.DataFrame, texts: pd.DataFrame, plain_overhead: float, parted: bool
) -> dict[str, float]:
    row = dict(zip(METHOD, key, strict=True))
    plain, alphas = row["drafter"] == PLAIN, known(group["alpha"])
    row |= {
        "tree_nodes": row["gamma"],
        # Past the window the verifying pass sees shorter histories than plain decoding does.
        "lossless": not parted
        and (plain or row["context_rule"] == "sliding")
        and not str(row["drafter"]).endswith(TYPICAL),
        "target_forwards": mean(group["target_forwards"]),
        "draft_forwards": mean(group["draft_forwards"]),
        "tokens": mean(group["tokens"]),
        **columns_of("alpha", t_interval(alphas) if alphas else None),
        **columns_of("tokens_per_round", t_interval(group["tokens_per_round"])),
        **columns_of("wall_s", t_interval(group["wall_s"])),
        **_speedups(texts, plain),
        **{name: mean(group[name]) for name in ("c", "v", "overhead", "proposals")},
        "seeds": group["seed"].nunique(),
        "repeats": int(group["repeats"].min()),
    }
    return row | _theory(row, plain_overhead)


def ledger_table(
    by_seed: pd.DataFrame, texts: pd.DataFrame, agreement: pd.DataFrame, typical: pd.DataFrame
) -> pd.DataFrame:
    """One row per engine, drafter and gamma, beside the theory.

    Args:
        agreement: as `engines.agreement_table` gives it: what writes other texts than its reference is not lossless.
        typical: as `systems.typical_table` gives it: the TV from p that a lossy acceptance costs a token.

    Means and 95% t intervals over seeds; of speed-ups the median of all pairs and its bootstrap interval.
    """
    plain = by_seed[by_seed["drafter"] == PLAIN].groupby(["engine", "temperature"])["overhead"].mean()
    by_method = dict(list(texts.groupby(METHOD, sort=True)))
    other = agreement.loc[writes_other_text(agreement), ["engine", "drafter", "gamma"]]
    parted = set(other.itertuples(index=False, name=None))
    rows = [
        _ledger_row(key, group, by_method[key], plain[key[0], key[-1]], (key[0], *key[2:4]) in parted)
        for key, group in by_seed.groupby(METHOD, sort=True)
    ]
    table = pd.DataFrame(rows).merge(typical[["drafter", "gamma", "tv"]], on=["drafter", "gamma"], how="left")
    return ordered(table[TABLES["ledger"].computed], METHOD)
