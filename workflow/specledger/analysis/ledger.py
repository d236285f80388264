"""The ledger: what each method yields and costs, from single texts to seeds to one row a method."""

import numpy as np
import pandas as pd

from specledger.foundation.errors import UserError
from specledger.statistics.intervals import Interval, exp_t_interval, t_interval
from specledger.theory.speculation import expected_tokens_per_round, measured_cost_speedup, walltime_speedup

METHOD = ["engine", "context_rule", "drafter", "gamma", "temperature"]
BLOCK = ["seed", "repeat", "temperature"]
PARTS = ["draft", "verify", "accept", "other"]
ORDER = ("recompute", "cached", "target", "none", "draft", "mtp", "ngram")
SHOWN_FIRST = {name: place for place, name in enumerate(ORDER)}

LEDGER_COLUMNS = (
    "engine context_rule drafter gamma tree_nodes temperature lossless target_forwards draft_forwards tokens "
    "alpha alpha_lo alpha_hi tokens_per_round tokens_per_round_lo tokens_per_round_hi wall_s wall_s_lo wall_s_hi "
    "speedup speedup_lo speedup_hi speedup_vs_recompute c eq1 theorem38 cost_model v overhead "
    "cost_model_overhead seeds repeats"
).split()
TIME_COLUMNS = "engine drafter gamma draft catch_up verify accept sync other wall_s".split()
FORWARD_TABLE_COLUMNS = "engine model positions seconds seconds_lo seconds_hi c".split()


def ordered(frame: pd.DataFrame, columns: list[str]) -> pd.DataFrame:
    """Rows sorted by `columns`: known engines and drafters in the order of the report, the rest by name."""

    def rank(column: pd.Series) -> pd.Series:
        if column.name in ("engine", "drafter", "model"):
            return column.map(lambda name: f"{SHOWN_FIRST.get(name, 99):02d} {name}")
        return column

    return frame.sort_values(columns, key=rank, kind="stable").reset_index(drop=True)


def with_ratios(runs: pd.DataFrame) -> pd.DataFrame:
    """Each text with its log ratio to the plain text of its block, on its engine and on recompute.

    The ratio is of seconds a token, so that a text that ends a token late is not penalised.
    Adds: log_speedup, log_vs_recompute (nan without that engine), alpha and tokens_per_round of the text.
    """
    plain = runs[runs["drafter"] == "none"]
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
    return table.assign(
        log_speedup=np.log(table["plain_s"] / per_token),
        log_vs_recompute=np.log(table["recompute_s"] / per_token),
        alpha=table["accepted"] / table["examined"].where(table["examined"] > 0),
        tokens_per_round=table["tokens"] / table["rounds"],
    )


def forward_costs(forwards: pd.DataFrame) -> pd.DataFrame:
    """Each single forward with target_s, the target's at one position of the same seed and engine, and c."""
    one = forwards[(forwards["model"] == "target") & (forwards["positions"] == 1)]
    one = one[["seed", "engine", "seconds"]].rename(columns={"seconds": "target_s"})
    table = forwards.merge(one, on=["seed", "engine"], how="left")
    return table.assign(c=table["seconds"] / table["target_s"])


def methods_by_seed(runs: pd.DataFrame, forwards: pd.DataFrame) -> pd.DataFrame:
    """One row per seed and method: counts pooled over its texts, medians of paired log ratios, costs.

    alpha is the sum of accepted over the sum of examined proposals, examined = min(A + 1, gamma) a round.
    c and v are times of single forwards over that of the target at one position; overhead is what a round
    spends outside forwards (accepting and the rest), over the same.
    """
    groups = with_ratios(runs).groupby(["seed", *METHOD], sort=True)
    sums = groups[["accepted", "examined", "rounds", "tokens", "accept_s", "other_s"]].sum()
    means = groups[["target_forwards", "draft_forwards", "wall_s", *(f"{part}_s" for part in PARTS)]].mean()
    medians = groups[["log_speedup", "log_vs_recompute"]].median()
    table = pd.concat([means, medians], axis=1).assign(
        tokens=sums["tokens"] / groups.size(),
        repeats=groups.size(),
        alpha=sums["accepted"] / sums["examined"].where(sums["examined"] > 0),
        tokens_per_round=sums["tokens"] / sums["rounds"],
        overhead_s=(sums["accept_s"] + sums["other_s"]) / sums["rounds"],
    )
    table["forwards_per_token"] = table["target_forwards"] / table["tokens"]
    return _with_costs(table.reset_index(), forward_costs(forwards))


def _with_costs(table: pd.DataFrame, costs: pd.DataFrame) -> pd.DataFrame:
    target = costs[costs["model"] == "target"]
    one = target.loc[target["positions"] == 1, ["seed", "engine", "target_s"]]
    drafts = costs.loc[(costs["model"] != "target") & (costs["positions"] == 1), ["seed", "engine", "model", "c"]]
    verify = target.assign(gamma=target["positions"] - 1)[["seed", "engine", "gamma", "c"]]
    table = table.merge(one, on=["seed", "engine"], how="left")
    table = table.merge(drafts.rename(columns={"model": "drafter"}), on=["seed", "engine", "drafter"], how="left")
    table = table.merge(verify.rename(columns={"c": "v"}), on=["seed", "engine", "gamma"], how="left")
    table["v"] = table["v"].where(table["gamma"] > 0)
    table["overhead"] = table["overhead_s"] / table["target_s"]
    table["token_s"] = table["wall_s"] / table["tokens"]
    table["token_in_forwards"] = table["token_s"] / table["target_s"]
    return table


def _known(values: pd.Series) -> list[float]:
    return values.dropna().tolist()


def _mean(values: pd.Series) -> float:
    known = _known(values)
    return float(np.mean(known)) if known else np.nan


def columns_of(name: str, interval: Interval | None) -> dict[str, float]:
    """The three cells name, name_lo, name_hi; empty where there is no interval."""
    if interval is None:
        return {name: np.nan, f"{name}_lo": np.nan, f"{name}_hi": np.nan}
    ends = {f"{name}_lo": interval.lo, f"{name}_hi": interval.hi}
    return {name: interval.mean, **{key: np.nan if end is None else end for key, end in ends.items()}}


def _theory(row: dict[str, float], plain_overhead: float) -> dict[str, float]:
    """What the formulas say at the row's own means, so that a reader can recompute them from the row."""
    alpha, gamma, c, v, yielded = (row[key] for key in ("alpha", "gamma", "c", "v", "tokens_per_round"))
    cells = dict.fromkeys(("eq1", "theorem38", "cost_model", "cost_model_overhead"), np.nan)
    if gamma == 0:
        return cells
    if not np.isnan(alpha):
        cells["eq1"] = expected_tokens_per_round(alpha, gamma)
        if not np.isnan(c):
            cells["theorem38"] = walltime_speedup(alpha, gamma, c)
    if not np.isnan(c) and not np.isnan(v):
        costs = {"tokens_per_round": yielded, "verify_s": v, "draft_s": c, "gamma": gamma}
        cells["cost_model"] = measured_cost_speedup(plain_s=1.0, **costs)
        cells["cost_model_overhead"] = measured_cost_speedup(
            plain_s=1.0 + plain_overhead, overhead_s=row["overhead"], **costs
        )
    return cells


def _ledger_row(key: tuple, group: pd.DataFrame, plain_overhead: float) -> dict[str, float]:
    row = dict(zip(METHOD, key, strict=True))
    plain = row["drafter"] == "none"
    alphas = _known(group["alpha"])
    row |= {
        "tree_nodes": row["gamma"],
        # Past the window the verifying pass sees shorter histories than plain decoding does.
        "lossless": plain or row["context_rule"] == "sliding",
        "target_forwards": _mean(group["target_forwards"]),
        "draft_forwards": _mean(group["draft_forwards"]),
        "tokens": _mean(group["tokens"]),
        **columns_of("alpha", t_interval(alphas) if alphas else None),
        **columns_of("tokens_per_round", t_interval(group["tokens_per_round"])),
        **columns_of("wall_s", t_interval(group["wall_s"])),
        **columns_of("speedup", exp_t_interval(group["log_speedup"])),
        "speedup_vs_recompute": float(np.exp(_mean(group["log_vs_recompute"]))),
        **{name: _mean(group[name]) for name in ("c", "v", "overhead")},
        "seeds": group["seed"].nunique(),
        "repeats": int(group["repeats"].max()),
    }
    if plain:  # 1 by definition, not by measurement
        row |= columns_of("speedup", Interval(mean=1.0, lo=None, hi=None, n=1, level=0.0, method=""))
    return row | _theory(row, plain_overhead)


def ledger_table(by_seed: pd.DataFrame) -> pd.DataFrame:
    """One row per engine, drafter and gamma: means and 95% t intervals over seeds, beside the theory."""
    plain = by_seed[by_seed["drafter"] == "none"].groupby(["engine", "temperature"])["overhead"].mean()
    rows = [_ledger_row(key, group, plain[key[0], key[-1]]) for key, group in by_seed.groupby(METHOD, sort=True)]
    table = pd.DataFrame(rows)[LEDGER_COLUMNS]
    return ordered(table, METHOD)


def time_table(by_seed: pd.DataFrame) -> pd.DataFrame:
    """Where a text's seconds go, per engine, drafter and gamma: means over seeds of means over texts."""
    columns = {f"{part}_s": part for part in PARTS}
    keys = ["engine", "drafter", "gamma"]
    means = by_seed.groupby(keys)[[*columns, "wall_s"]].mean().reset_index()
    # Not told apart yet; the columns are there for engines that do.
    return ordered(means.rename(columns=columns).assign(catch_up=np.nan, sync=np.nan)[TIME_COLUMNS], keys)


def forwards_table(forwards: pd.DataFrame) -> pd.DataFrame:
    """Seconds of single forwards: per seed a median, then mean and t interval over seeds, and c."""
    keys = ["engine", "model", "positions"]
    rows = []
    for key, group in forward_costs(forwards).groupby(keys, sort=True):
        seconds = columns_of("seconds", t_interval(group["seconds"]))
        rows.append(dict(zip(keys, key, strict=True)) | seconds | {"c": _mean(group["c"])})
    return ordered(pd.DataFrame(rows)[FORWARD_TABLE_COLUMNS], keys)
