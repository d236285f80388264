"""Trees beside chains: how often siblings are accepted, which tree was best, and what v(N) leaves to be won."""

import numpy as np
import pandas as pd

from specledger.analysis.frames import columns_of, known, ordered
from specledger.analysis.timing import BLOCK
from specledger.foundation.drafters import TREE, base_of
from specledger.statistics.intervals import Interval, exp_t_interval, t_interval
from specledger.statistics.paired import paired_log_interval

RANK_TABLE = "drafter depth rank examined acceptance acceptance_lo acceptance_hi seeds".split()
TREE_TABLE = (
    "engine drafter chain_gamma chain_tokens chain_speedup nodes depth expected_tokens tree_tokens tree_speedup "
    "tree_speedup_lo tree_speedup_hi ratio ratio_lo ratio_hi method nodes_predicted v_chain v_tree "
    "most_ratio most_ratio_lo most_ratio_hi verdict"
).split()
WORTH = 1.15  # times the best chain
REACHED, RULED_OUT, MISSED, UNDECIDED = "reached", "ruled out by v(N)", "not reached", "inconclusive"


def ranks_table(ranks: pd.DataFrame) -> pd.DataFrame:
    """One row per drafter, depth and rank: judged siblings of all seeds, and their acceptance with a t interval."""
    rows = []
    for (drafter, depth, rank), group in ranks.groupby(["drafter", "depth", "rank"], sort=True):
        if examined := int(group["examined"].sum()):
            values = known(group["acceptance"])
            about = {"drafter": drafter, "depth": depth, "rank": rank, "examined": examined, "seeds": len(values)}
            rows.append(about | columns_of("acceptance", t_interval(values)))
    return ordered(pd.DataFrame(rows, columns=RANK_TABLE), ["drafter", "depth", "rank"])


def trees_table(ledger: pd.DataFrame, by_seed: pd.DataFrame, texts: pd.DataFrame, shapes: pd.DataFrame) -> pd.DataFrame:
    """One row per engine and drafter with trees: its fastest chain, its fastest tree, and their ratio in the same run.

    Both are chosen by the speed-up that is then shown. `nodes_predicted` is the size that the full-cost model
    prefers. `most_ratio` is the most that any measured size could win over the chain at the measured v(N), with the
    cheaper of both draftings and of both judgings: tokens a round over tokens a round, over what the rounds take then.
    It is of one seed at a time, and given as the geometric mean over seeds with its t interval.
    """
    rows = []
    lossless = ledger[ledger["lossless"].astype(bool)].dropna(subset=["speedup"])
    trees = lossless[lossless["drafter"].str.endswith(TREE)]
    for (engine, name), sizes in trees.groupby(["engine", "drafter"], sort=True):
        base = base_of(name)
        chains = lossless[(lossless["engine"] == engine) & (lossless["drafter"] == base)]
        if len(chains):
            seeds = by_seed[by_seed["engine"] == engine]
            rows.append({"engine": engine, "drafter": base} | _row(chains, sizes, seeds, texts, shapes))
    return ordered(pd.DataFrame(rows, columns=TREE_TABLE), ["engine", "drafter"])


def _row(
    chains: pd.DataFrame, sizes: pd.DataFrame, by_seed: pd.DataFrame, texts: pd.DataFrame, shapes: pd.DataFrame
) -> dict:
    chain, tree = (rows.loc[rows["speedup"].idxmax()] for rows in (chains, sizes))
    ratio = ratio_of(tree, chain, texts)
    most = most_of(chain, sizes, by_seed)
    shape = shapes[(shapes["drafter"] == tree["drafter"]) & (shapes["nodes"] == tree["gamma"])]
    modelled = sizes.dropna(subset=["cost_model_overhead"])
    return {
        "chain_gamma": chain["gamma"], "chain_tokens": chain["tokens_per_round"], "chain_speedup": chain["speedup"],
        "nodes": tree["gamma"], "depth": shape["depth"].min(), "expected_tokens": shape["expected_tokens"].mean(),
        "tree_tokens": tree["tokens_per_round"],
        **{f"tree_{name}": tree[name] for name in ("speedup", "speedup_lo", "speedup_hi")},
        **columns_of("ratio", ratio), "method": None if ratio is None else ratio.method,
        "nodes_predicted": modelled.loc[modelled["cost_model_overhead"].idxmax(), "gamma"] if len(modelled) else np.nan,
        "v_chain": chain["v"], "v_tree": tree["v"], **columns_of("most_ratio", most), "verdict": verdict(ratio, most),
    }  # fmt: skip


def ratio_of(tree: pd.Series, chain: pd.Series, texts: pd.DataFrame) -> Interval | None:
    """The tree's speed over the chain's, from texts of the same blocks."""

    def logs(row: pd.Series) -> pd.DataFrame:
        same = (texts["engine"] == row["engine"]) & (texts["drafter"] == row["drafter"])
        return texts.loc[same & (texts["gamma"] == row["gamma"]), [*BLOCK, "log_speedup"]]

    pairs = logs(tree).merge(logs(chain), on=BLOCK, suffixes=("_tree", "_chain"))
    pairs["log"] = pairs["log_speedup_tree"] - pairs["log_speedup_chain"]
    groups = [group.dropna().to_numpy() for _, group in pairs.groupby("seed")["log"]]
    groups = [group for group in groups if group.size]
    return paired_log_interval(groups) if groups else None


def most_of(chain: pd.Series, sizes: pd.DataFrame, by_seed: pd.DataFrame) -> Interval | None:
    """What the best size could win over the chain at most, seed by seed; None where no seed timed both."""
    own = by_seed[(by_seed["drafter"] == chain["drafter"]) & (by_seed["gamma"] == chain["gamma"])].set_index("seed")
    grown = by_seed[(by_seed["drafter"] == sizes["drafter"].iloc[0]) & by_seed["gamma"].isin(sizes["gamma"])]
    grown = grown[grown["seed"].isin(own.index)].set_index("seed")
    most = pd.Series([_most(own.loc[seed], size) for seed, size in grown.iterrows()], index=grown.index, dtype=float)
    best = known(most.groupby(level="seed").max())
    return exp_t_interval(np.log(best)) if len(best) else None


def _most(chain: pd.Series, size: pd.Series) -> float:
    """What a tree of this size could win over the chain at most, at the measured v."""
    drafts, rests = ([row["gamma"] * row["c"] for row in (chain, size)], [row["overhead"] for row in (chain, size)])
    yields = size["tokens_per_round"] / chain["tokens_per_round"]
    spent = [drafts[0] + chain["v"] + rests[0], min(drafts) + size["v"] + min(rests)]
    # On a busy machine a difference of timings may come out below nothing.
    return float(yields * spent[0] / spent[1]) if min(spent) > 0 else np.nan


def verdict(ratio: Interval | None, most: Interval | None) -> str:
    """Is the best tree worth it? Only a whole interval decides: of the clock, or of the most that v(N) leaves."""
    if ratio is not None and ratio.lo is not None and ratio.lo >= WORTH:
        return REACHED
    if most is not None and most.hi is not None and most.hi < WORTH:
        return RULED_OUT
    if ratio is not None and ratio.hi is not None and ratio.hi < WORTH:
        return MISSED
    return UNDECIDED
