"""The made-up heads and trees: trainings, siblings, shapes, what typical acceptance costs, and their tables."""

from pathlib import Path

import numpy as np
import pandas as pd
from specledger.analysis import heads, raw, systems, tables, trees
from specledger.tables.raw import RAW
from synthetic_files import APART, HEADS, TREES, gammas_of, write_csv
from synthetic_time import CLAIMS

DEPTH, RANKS = 4, 6  # of the trial trees
SIZES = {"mtp2": 429_312, "mtp4": 858_624, "parallel": 544_512, "medusa1": 99_328, "medusa2": 99_328, "eagle": 214_400}
AHEAD = {"mtp2": (2, 3), "mtp4": (2, 3, 4, 5), "parallel": (1, 2, 3, 4), "medusa1": (2, 3, 4, 5)}
AHEAD |= {"medusa2": (1, 2, 3, 4, 5), "eagle": (2,)}
BLIND = ("parallel", "medusa1", "medusa2")  # heads that don't know the tokens in between


def _trainings(seeds: tuple[int, ...], rng: np.random.Generator) -> pd.DataFrame:
    rows = []
    for head, size in SIZES.items():
        for seed in seeds:
            growth = 0.32 if head in BLIND else 0.01
            losses = {
                f"validation_ahead{k}_loss": 1.53 + growth * (k - 1) ** 0.6 + rng.normal(0, 0.004) for k in AHEAD[head]
            }
            trunk = "its own" if head in ("parallel", "medusa2") else "frozen"
            about = {"seed": seed, "head": head, "trunk": trunk, "head_parameters": size, "steps": 800}
            rows.append(about | {"train_s": 80.0 + rng.normal(0, 3), **losses})
    return pd.DataFrame(rows)


def _ranks(seeds: tuple[int, ...], rng: np.random.Generator) -> pd.DataFrame:
    rows = []
    for name in (name for name in TREES if name.endswith("_tree")):
        base = name.removesuffix("_tree")
        for seed in seeds:
            left = 400.0
            for depth in range(1, DEPTH + 1):
                first = APART[name] - 0.08 - (0.09 if base in BLIND else 0.01) * depth
                for rank in range(RANKS):
                    rate = float(np.clip(first * 0.45**rank + rng.normal(0, 0.01), 0.01, 0.99))
                    examined = int(left * (1 - first) ** min(rank, 1) / (rank + 1))
                    cells = {"seed": seed, "drafter": base, "depth": depth, "rank": rank, "examined": examined}
                    rows.append(cells | {"acceptance": rate})
                left *= first
    return pd.DataFrame(rows)


def _shapes(seeds: tuple[int, ...]) -> pd.DataFrame:
    rows = []
    for name, alpha in TREES.items():
        for nodes in gammas_of(name):
            deep = nodes.bit_length()
            cells = {"drafter": name, "nodes": nodes, "used": nodes, "depth": deep, "parents": ""}
            rows += [{"seed": seed, **cells, "expected_tokens": 1 + alpha * deep / 2} for seed in seeds]
    return pd.DataFrame(rows)


def write_typical(folder: Path, seeds: tuple[int, ...]) -> None:
    """acceptance/…/typical.csv: what the lossy acceptance costs, context by context."""
    rng = np.random.default_rng(17)
    for seed in seeds:
        rows = [
            {"seed": seed, "drafter": "medusa1_typical", "gamma": 16, "position": 90 + 7 * at}
            | {"accept_len": int(rng.integers(0, 4)), "tv": float(rng.beta(2, 6))}
            for at in range(25)
        ]
        write_csv(folder / "acceptance" / str(seed) / "typical.csv", rows)


def write_heads(
    folder: Path, seeds: tuple[int, ...], trainings: list[dict], clock: dict[str, pd.DataFrame], *, with_any: bool
) -> None:
    """The tables of heads, siblings, trees and systems, empty but for the last without heads."""
    rng, training = np.random.default_rng(13), pd.DataFrame(trainings)
    heads_trained = _trainings(seeds, rng) if with_any else pd.DataFrame()
    ranks = _ranks(seeds, rng) if with_any else pd.DataFrame(columns=RAW["ranks"].names)
    shapes = _shapes(seeds) if with_any else pd.DataFrame(columns=RAW["shapes"].names)
    found = {
        "heads": heads.heads_table(heads_trained, training),
        "ranks": trees.ranks_table(ranks),
        "trees": trees.trees_table(clock["ledger"], clock["by_seed"], clock["texts"], shapes),
    }
    rule = raw.read_rule(folder, list(seeds))
    said = systems.read_systems(CLAIMS)
    found["systems"] = systems.systems_table(
        said, clock["ledger"], rule.rounds, heads_trained, training, systems.typical_table(rule.typical)
    )
    for name, frame in found.items():
        tables.write_csv(frame, folder / "tables" / f"{name}.csv")
    assert not with_any or set(HEADS) == set(found["heads"]["head"])
