"""Tables of heads, trees and systems, by hand."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.stats import t
from specledger.analysis import heads, systems, trees
from specledger.analysis.frames import of_chains
from specledger.foundation.errors import UserError
from specledger.statistics.intervals import Interval
from specledger.tables.registry import TABLES

CLAIMS = Path(__file__).parents[1] / "config" / "claims.yaml"
TRAINING = pd.DataFrame(
    [
        {"model": model, "seed": seed, "train_s": seconds, "parameters": size, "head_parameters": head}
        for seed in (1, 2)
        for model, seconds, size, head in (
            ("plain", 80.0, 700, 0), ("mtp", 100.0 * seed, 700, 200), ("draft", 20.0 * seed, 50, 0),
        )
    ]
)  # fmt: skip
HEADS = pd.DataFrame(
    [
        {"head": head, "seed": seed, "trunk": "frozen", "head_parameters": size, "steps": 10, "train_s": seconds * seed}
        | {"validation_ahead2_loss": 1.5 + seed / 10, "validation_ahead3_loss": None if head == "eagle" else 2.0}
        for seed in (1, 2)
        for head, size, seconds in (("eagle", 30, 10.0), ("medusa1", 40, 20.0), ("medusa2", 40, 30.0))
    ]
)


def test_heads_by_hand():
    table = heads.heads_table(HEADS, TRAINING)
    assert list(zip(table["head"], table["loss"], strict=True)) == [
        ("medusa1", "ahead2"), ("medusa1", "ahead3"), ("medusa2", "ahead2"), ("medusa2", "ahead3"), ("eagle", "ahead2"),
    ]  # fmt: skip
    row = table.iloc[-1]
    assert (row["value"], row["n"], row["train_share"]) == (pytest.approx(1.65), 2, pytest.approx(0.1))
    assert heads.heads_table(pd.DataFrame(), TRAINING).empty


@pytest.mark.parametrize(
    ("drafter", "parameters", "share"),
    [("draft", 50, 0.2), ("mtp", 200, (0.2 + 0.6) / 2), ("ngram", 0, 0), ("eagle", 30, 0.1), ("medusa2", 40, 0.5)],
)
def test_what_a_drafter_costs_beyond_its_target(drafter, parameters, share):
    """mtp: what its target took longer than the plain one; medusa2 begins with medusa1, and pays for it."""
    assert heads.beyond_target(drafter, HEADS, TRAINING) == (parameters, pytest.approx(share))


def ledger() -> pd.DataFrame:
    """One chain of gamma 2 and trees of 4 and 8 nodes: rounds of 1.6 and 1.7 and 2.5 forwards."""
    cells = [
        ("eagle", 2, 2.0, 1.25, 0.2, 1.1, 0.1, True),
        ("eagle_tree", 4, 2.4, 1.4, 0.1, 1.2, 0.1, True),
        ("eagle_tree", 8, 2.6, 1.3, 0.1, 1.6, 0.1, True),
        ("medusa1", 2, 1.5, 1.1, 0.1, 1.1, 0.1, True),
        ("medusa1_typical", 4, 3.0, 1.9, 0.1, 1.2, 0.1, False),
    ]
    names = ["drafter", "gamma", "tokens_per_round", "speedup", "c", "v", "overhead", "lossless"]
    table = pd.DataFrame(cells, columns=names).assign(engine="cached", seeds=2, speedup_method="bootstrap")
    for name in ("speedup", "tokens_per_round"):
        table[f"{name}_lo"], table[f"{name}_hi"] = table[name] - 0.1, table[name] + 0.1
    return table.assign(cost_model_overhead=table["tokens_per_round"] / (1 + table["gamma"] / 10))


def texts(tree: float) -> pd.DataFrame:
    rows = []
    for seed in (1, 2):
        for repeat in (1, 2, 3):
            for drafter, gamma, speed in (("eagle", 2, 1.25), ("eagle_tree", 4, tree), ("eagle_tree", 8, 1.3)):
                noise = 0.01 * repeat  # shared by the texts of a block
                row = {"seed": seed, "repeat": repeat, "temperature": 1.0, "engine": "cached", "drafter": drafter}
                rows.append({**row, "gamma": gamma, "log_speedup": np.log(speed) + noise})
    return pd.DataFrame(rows)


SHAPES = pd.DataFrame(
    [{"seed": s, "drafter": "eagle_tree", "nodes": 4, "depth": 2, "expected_tokens": 2.4 + s / 10} for s in (1, 2)]
)


def by_seed(table: pd.DataFrame, factors: tuple[float, ...] = (1.0, 1.0)) -> pd.DataFrame:
    """The rows of each seed; trees of seed k yield a factor of the tokens."""
    trees_ = table["drafter"].str.endswith("_tree")
    rows = [
        table.assign(
            seed=seed, tokens_per_round=table["tokens_per_round"].where(~trees_, table["tokens_per_round"] * by)
        )
        for seed, by in enumerate(factors, start=1)
    ]
    return pd.concat(rows)


def made(table: pd.DataFrame, speed: float, factors: tuple[float, ...] = (1.0, 1.0)) -> pd.DataFrame:
    return trees.trees_table(table, by_seed(table, factors), texts(speed), SHAPES)


def test_trees_beside_chains_by_hand():
    table = made(ledger(), 1.4)
    assert table["drafter"].tolist() == ["eagle"]  # medusa1 has no lossless tree
    row = table.iloc[0]
    assert (row["chain_gamma"], row["nodes"], row["depth"], row["nodes_predicted"]) == (2, 4, 2, 4)
    assert row["expected_tokens"] == pytest.approx(2.55)
    assert row["ratio"] == pytest.approx(1.4 / 1.25) and row["ratio_lo"] == pytest.approx(row["ratio"])
    # The chain's round takes .4 + 1.1 + .1 = 1.6; 4 nodes add .1 of v, 8 nodes .5.
    assert row["most_ratio"] == pytest.approx(max(1.2 * 1.6 / 1.7, 1.3 * 1.6 / 2.1))
    assert row["most_ratio_lo"] == row["most_ratio_hi"] == pytest.approx(row["most_ratio"]), "seeds that agree"
    assert row["verdict"] == trees.RULED_OUT
    apart = made(ledger(), 1.4, (0.9, 1 / 0.9)).iloc[0]
    assert apart["most_ratio"] == pytest.approx(row["most_ratio"]), "the geometric mean over seeds"
    half = t.ppf(0.975, 1) * np.std(np.log([0.9, 1 / 0.9]), ddof=1) / np.sqrt(2)
    assert apart["most_ratio_hi"] == pytest.approx(row["most_ratio"] * np.exp(half))
    assert apart["verdict"] == trees.MISSED, "the bound of two seeds that part rules nothing out; the clock does"
    assert made(ledger(), 1.5).iloc[0]["verdict"] == trees.REACHED
    cheap = ledger().assign(c=[0.2, 0.05, 0.1, 0.1, 0.1])  # a tree that drafts for less than its chain
    row = made(cheap, 1.4).iloc[0]
    assert row["most_ratio"] == pytest.approx(1.2 * 1.6 / (0.2 + 1.2 + 0.1))
    nothing = made(ledger().query("drafter == 'medusa1'"), 1.4)
    assert list(nothing.columns) == trees.TREE_TABLE and nothing.empty


@pytest.mark.parametrize(
    ("lo", "hi", "most", "verdict"),
    [
        (1.16, 1.3, 1.1, trees.REACHED),
        (1.0, 1.2, 1.1, trees.RULED_OUT),
        (1.0, 1.1, 1.3, trees.MISSED),
        (1.0, 1.2, 1.3, trees.UNDECIDED),
        (None, None, 1.3, trees.UNDECIDED),
        (1.0, 1.2, None, trees.UNDECIDED),
    ],
)
def test_verdicts_of_trees(lo, hi, most, verdict):
    def interval(lo: float | None, hi: float | None) -> Interval:
        return Interval(mean=1.1, lo=lo, hi=hi, n=2, level=0.95, method="t")

    assert trees.verdict(interval(lo, hi), interval(None if most is None else 0.5, most)) == verdict


def test_siblings_of_all_seeds():
    ranks = pd.DataFrame(
        [
            {"seed": 1, "drafter": "eagle", "depth": 1, "rank": 0, "examined": 10, "acceptance": 0.8},
            {"seed": 2, "drafter": "eagle", "depth": 1, "rank": 0, "examined": 30, "acceptance": 0.6},
            {"seed": 1, "drafter": "eagle", "depth": 2, "rank": 9, "examined": 0, "acceptance": None},
        ]
    )
    table = trees.ranks_table(ranks)
    assert len(table) == 1
    assert (table["examined"][0], table["acceptance"][0], table["seeds"][0]) == (40, pytest.approx(0.7), 2)


def rounds() -> pd.DataFrame:
    """A tree's rounds: judged at one, two and two places; accepted at none, one and two."""
    rows = [(0, 1), (1, 2), (2, 2)]
    cells = {"engine": "cached", "drafter": "eagle_tree", "gamma": 4}
    return pd.DataFrame([{**cells, "accept_len": length, "examined": judged} for length, judged in rows])


def test_acceptance_by_position():
    assert systems.positions_of(rounds()) == pytest.approx([2 / 3, 1 / 2])
    assert systems.positions_of(rounds().iloc[:0]) == []


def test_systems_by_hand():
    typical = systems.typical_table(
        pd.DataFrame(
            [
                {"seed": seed, "drafter": "medusa1_typical", "gamma": 4, "position": p, "accept_len": p, "tv": 0.4 * p}
                for seed in (1, 2)
                for p in (0, 1)
            ]
        )
    )
    assert typical.iloc[0][["tv", "accepted_share", "contexts"]].tolist() == pytest.approx([0.2, 0.5, 2])
    listed = [one for one in systems.read_systems(CLAIMS) if one.id in ("medusa1", "eagle", "deepseek")]
    table = systems.systems_table(listed, ledger(), rounds(), HEADS, TRAINING, typical)
    assert list(zip(table["drafter"], table["shape"], table["gamma"], strict=True)) == [
        ("medusa1", "chain", 2), ("medusa1_typical", "tree", 4), ("eagle", "chain", 2), ("eagle_tree", "tree", 4),
    ]  # fmt: skip
    assert table["tv"].tolist() == pytest.approx([0, 0.2, 0, 0])
    assert table["parameters"].tolist() == [40, 40, 30, 30]
    assert table["alpha_by_position"].tolist() == ["", "", "", "0.667 0.500"]
    assert list(table.columns) == TABLES["systems"].names


def test_the_systems_of_the_chapter_are_listed():
    listed = systems.read_systems(CLAIMS)
    assert [one.id for one in listed] == ["draft", "deepseek", "gloeckle", "medusa1", "medusa2", "eagle"]
    assert all(one.published and one.setting and one.comparable and one.drafters for one in listed)


def test_an_unknown_key_of_a_system_is_named(tmp_path):
    path = tmp_path / "claims.yaml"
    path.write_text("claims: []\nsystems:\n  - {id: x, name: y}\n")
    with pytest.raises(UserError, match="unknown key name"):
        systems.read_systems(path)


def test_chains_are_told_from_trees():
    assert of_chains(ledger())["drafter"].tolist() == ["eagle", "medusa1"]
