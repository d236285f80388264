"""The systems that the chapter names, one by one: what the paper reports, what ours gives here, what is comparable."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from specledger.analysis import claims
from specledger.analysis.frames import columns_of, known, mean
from specledger.analysis.heads import beyond_target
from specledger.foundation.drafters import HEADS, TREE, TYPICAL, base_of, branched, fastest
from specledger.statistics.intervals import t_interval
from specledger.tables.registry import TABLES

REQUIRED = {"id", "title", "source", "published", "setting", "comparable", "drafters"}
CHAIN, BRANCHES = "chain", "tree"
YIELD, SPEED = (
    ("tokens_per_round", "tokens_per_round_lo", "tokens_per_round_hi"),
    ("speedup", "speedup_lo", "speedup_hi"),
)
LEDGER_CELLS = (*YIELD, *SPEED, "speedup_method", "seeds")


@dataclass(frozen=True, kw_only=True)
class System:
    """A published system, what its paper reports in which setting, and the drafters of ours that stand for it."""

    id: str
    title: str
    source: str
    published: str
    setting: str
    comparable: str
    drafters: list[str]


def parse_system(entry: object, where: str) -> System:
    """One entry of the file, checked; UserError names the key."""
    claims.check_keys(entry, REQUIRED, set(), where)
    return System(**entry)


def read_systems(path: Path) -> list[System]:
    """All systems of config/claims.yaml, in its order."""
    return claims.parse_all(path, "systems", parse_system)


def positions_of(rounds: pd.DataFrame) -> list[float]:
    """Acceptance at each place of a round, over the rounds that came to it: accepted there over judged there."""
    found = []
    for place in range(1, int(rounds["accept_len"].max()) + 2 if len(rounds) else 1):
        judged = rounds["examined"] >= place
        if not judged.any():
            break
        found.append(float((rounds.loc[judged, "accept_len"] >= place).mean()))
    return found


def typical_table(typical: pd.DataFrame) -> pd.DataFrame:
    """One row per lossy drafter and number of nodes: the TV that it costs a token, with a t interval over seeds."""
    rows = []
    for (drafter, gamma), group in typical.groupby(["drafter", "gamma"], sort=True):
        by_seed = group.groupby("seed")
        about = {"drafter": drafter, "gamma": gamma, "contexts": int(by_seed.size().max()), "seeds": by_seed.ngroups}
        about["accepted_share"] = float((group["accept_len"] > 0).mean())
        rows.append(about | columns_of("tv", t_interval(by_seed["tv"].mean())))
    return pd.DataFrame(rows, columns="drafter gamma contexts seeds accepted_share tv tv_lo tv_hi".split())


def systems_table(
    systems: list[System],
    ledger: pd.DataFrame,
    rounds: pd.DataFrame,
    heads: pd.DataFrame,
    training: pd.DataFrame,
    typical: pd.DataFrame,
) -> pd.DataFrame:
    """One row per system and drafter of ours, chains and trees apart, each in its fastest setting on its engine.

    The engine is the fastest one that serves chains and trees alike, `compiled` where the study has it.
    """
    engines = set(ledger.loc[ledger["drafter"].map(lambda name: branched(name) or name in HEADS), "engine"])
    engine = fastest(engines or set(ledger["engine"]))
    rows = []
    for system in systems:
        about = {"system": system.id, **{key: getattr(system, key) for key in sorted(REQUIRED - {"id", "drafters"})}}
        for base in system.drafters:
            parameters, share = beyond_target(base_of(base), heads, training)
            for name in (base,) if base.endswith(TYPICAL) else (base, base + TREE):
                same = ledger[(ledger["engine"] == engine) & (ledger["drafter"] == name)].dropna(subset=["speedup"])
                if len(same):
                    row = same.loc[same["speedup"].idxmax()]
                    cost = {"parameters": parameters, "train_share": share}
                    rows.append(about | cost | _cells(row, rounds, typical))
    return pd.DataFrame(rows, columns=TABLES["systems"].computed)


def _cells(row: pd.Series, rounds: pd.DataFrame, typical: pd.DataFrame) -> dict:
    """What ours gives."""
    method = (rounds["engine"] == row["engine"]) & (rounds["drafter"] == row["drafter"])
    own = rounds[method & (rounds["gamma"] == row["gamma"])]
    lossy = typical[(typical["drafter"] == row["drafter"]) & (typical["gamma"] == row["gamma"])]
    cost = {key: mean(lossy[key]) if len(known(lossy[key])) else np.nan for key in ("tv", "tv_lo", "tv_hi")}
    return {
        **{key: row[key] for key in ("engine", "drafter", "gamma", "lossless")},
        **{key: row[key] for key in LEDGER_CELLS},
        "shape": BRANCHES if branched(row["drafter"]) else CHAIN,
        "alpha_by_position": " ".join(f"{rate:.3f}" for rate in positions_of(own)),
        **(cost if len(lossy) else dict.fromkeys(cost, 0.0 if row["lossless"] else np.nan)),
    }
