"""Rates, independence and the gap of rounds made by hand, with values worked out by hand."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from specledger.analysis.acceptance import acceptance_tables, survival
from specledger.analysis.gap import gap_table, uniform_starts
from specledger.analysis.tables import write_csv
from specledger.foundation.errors import UserError

# seed | repeat | round | drafted | accept_len | accept_probs, at gamma 2: two texts, each with a cut round.
ROUNDS = """
1 | 1 | 1 | 2 | 2 | 1 0.5
1 | 1 | 2 | 2 | 0 | 0.5 1
1 | 1 | 3 | 1 | 1 | 0.8
1 | 1 | 4 | 0 | 0 |
2 | 1 | 1 | 2 | 1 | 1 0.2
2 | 1 | 2 | 2 | 2 | 1 1
2 | 1 | 3 | 0 | 0 |
"""


def rounds(lines: str = ROUNDS, *, engine: str = "cached", gamma: int = 2) -> pd.DataFrame:
    names = ("seed", "repeat", "round", "drafted", "accept_len", "accept_probs")
    rows = [
        dict(zip(names, (cell.strip() for cell in line.split("|")), strict=True)) for line in lines.split("\n")[1:-1]
    ]
    table = pd.DataFrame(rows).astype(dict.fromkeys(names[:-1], int)).replace({"accept_probs": {"": np.nan}})
    examined = np.minimum(table["accept_len"] + 1, table["drafted"])
    return table.assign(engine=engine, drafter="draft", gamma=gamma, examined=examined)


def plain_texts(texts: dict[int, list[tuple[float, float]]]) -> pd.DataFrame:
    rows = [
        {"seed": 1, "text": text, "position": position, "drafter": "draft", "beta": beta, "kept": kept}
        for text, pairs in texts.items()
        for position, (beta, kept) in enumerate(pairs)
    ]
    return pd.DataFrame(rows)


def test_rates_by_hand():
    rates, _ = acceptance_tables(rounds())
    first, second = (row for _, row in rates.iterrows())
    # Position 1: proposed in five rounds, accepted in four of them; of the two texts 2 of 3 and 2 of 2.
    assert (first["examined"], first["accepted"], first["rate"], first["reached"]) == (5, 4, 0.8, 0.8)
    residuals = np.array([2 - 0.8 * 3, 2 - 0.8 * 2])
    half = stats.t.ppf(0.975, 1) * np.sqrt(2 * (residuals**2).sum()) / 5
    assert first["rate_lo"] == pytest.approx(0.8 - half) and first["rate_hi"] == pytest.approx(0.8 + half)
    assert first["reached_rb"] == pytest.approx((1 + 0.5 + 0.8 + 1 + 1) / 5)
    # Position 2: proposed four times, examined where the first was accepted, which was three times.
    assert (second["examined"], second["accepted"], second["reached"]) == (3, 2, 0.5)
    assert second["rate"] == pytest.approx(2 / 3) and second["texts"] == 2
    assert second["reached_rb"] == pytest.approx((0.5 + 0.5 + 0.2 + 1) / 4)


def test_independence_by_hand():
    _, table = acceptance_tables(rounds())
    row = table.iloc[0]
    # Examined are 2, 1, 1, 0 and 2, 2, 0; accepted 3 and 3.
    assert row["alpha"] == pytest.approx(6 / 8) and row["texts"] == 2
    assert row["alpha_lo"] == row["alpha_hi"] == pytest.approx(0.75)  # 3 of 4 in both texts
    assert row["tokens_per_round"] == pytest.approx(13 / 7)
    sums = [1 + 0.5, 0.5 + 0.5, 0.8, 0, 1 + 0.2, 1 + 1, 0]
    assert row["tokens_per_round_rb"] == pytest.approx(1 + np.mean(sums))
    counts = [[4, 2], [1, 1]]
    assert row["homogeneity_p"] == pytest.approx(stats.chi2_contingency(counts, correction=False).pvalue)
    assert np.isnan(row["geometric_p"]) and np.isnan(row["lag1"])  # too few rounds: one pair a text says nothing


def test_a_position_never_proposed_is_empty():
    rates, table = acceptance_tables(rounds("\n1 | 1 | 1 | 1 | 1 | 0.5\n", gamma=2))
    assert np.isnan(rates.loc[1, "rate"]) and np.isnan(rates.loc[1, "reached"]) and rates.loc[1, "texts"] == 0
    assert np.isnan(table.loc[0, "alpha_lo"]) and table.loc[0, "alpha"] == 1
    assert np.isnan(table.loc[0, "homogeneity_p"]) and np.isnan(table.loc[0, "lag1"])


def test_probabilities_must_belong_to_the_proposals():
    cells = pd.Series(["1 0.5", np.nan, "0.25"])
    products = survival(cells, np.array([2, 0, 1]), 2)
    assert products.tolist() == [[1, 0.5], [0, 0], [0.25, 0]]
    with pytest.raises(UserError, match="3 numbers for 4 proposals"):
        survival(cells, np.array([2, 0, 2]), 2)
    with pytest.raises(UserError, match="accept_probs"):
        survival(pd.Series(["1 x"]), np.array([2]), 2)
    with pytest.raises(UserError, match="out of range"):
        acceptance_tables(rounds("\n1 | 1 | 1 | 1 | 2 | 0.5\n"))


def test_uniform_starts_by_hand():
    """Two texts of three positions: two starts each have room for gamma 2, and none reaches into the next text."""
    texts = plain_texts({1: [(0.5, 1.0), (0.6, 0.5), (0.7, 1.0)], 2: [(0.9, 0.25), (0.8, 1.0), (1.0, 1.0)]})
    starts = [1 + 0.5 + 1.0 * 0.6, 1 + 0.6 + 0.5 * 0.7, 1 + 0.9 + 0.25 * 0.8, 1 + 0.8 + 1.0 * 1.0]
    found = uniform_starts(texts, "draft", 2)
    assert found["uniform"] == pytest.approx(np.mean(starts)) and found["texts"] == 2
    residuals = np.array([sum(starts[:2]), sum(starts[2:])]) - 2 * np.mean(starts)
    half = stats.t.ppf(0.975, 1) * np.sqrt(2 * (residuals**2).sum()) / 4
    assert found["uniform_hi"] == pytest.approx(np.mean(starts) + half)
    assert np.isnan(uniform_starts(texts, "draft", 4)["uniform"])  # no start has room
    assert np.isnan(uniform_starts(texts, "mtp", 1)["uniform"])


def test_the_gap_by_hand(tmp_path):
    texts = plain_texts({1: [(0.5, 1.0), (0.6, 0.5), (0.7, 1.0)]})
    everything = pd.concat([rounds(), rounds(engine="recompute")])
    table = gap_table(everything, texts)
    assert list(table["engine"]) == ["cached"]
    row = table.iloc[0]
    eq1, uniform, full, measured = 1 + 0.75 + 0.75**2, (2.1 + 1.95) / 2, (3 + 1 + 2 + 3) / 4, 13 / 7
    assert row["eq1"] == pytest.approx(eq1) and row["measured"] == pytest.approx(measured, abs=1e-8)
    assert row["drift"] == pytest.approx(uniform - eq1) and row["dependence"] == pytest.approx(full - uniform)
    assert row["ending"] == pytest.approx(measured - full, abs=1e-8) and row["uniform"] == pytest.approx(uniform)
    # In the file's own digits, too.
    write_csv(table, tmp_path / "gap.csv")
    for found in (row, pd.read_csv(tmp_path / "gap.csv").iloc[0]):
        assert abs(found["eq1"] + found["drift"] + found["dependence"] + found["ending"] - found["measured"]) < 1e-12


def simulated(betas: np.ndarray, gamma: int, generator: np.random.Generator) -> pd.DataFrame:
    """Rounds over a text whose position t is accepted with probability betas[t], whatever is proposed."""
    rows, done = [], 0
    while done < len(betas):
        drafted = min(gamma, len(betas) - done - 1)
        probs = betas[done : done + drafted]
        refused = np.flatnonzero(generator.random(drafted) >= probs)
        accept_len = int(refused[0]) if refused.size else drafted
        rows.append({"round": len(rows) + 1, "drafted": drafted, "accept_len": accept_len})
        rows[-1]["accept_probs"] = " ".join(f"{value:.6g}" for value in probs) or np.nan
        done += accept_len + 1
    return pd.DataFrame(rows)


def test_what_each_step_of_the_gap_stands_for():
    """One coin: no drift, no dependence. Difficulty in stretches: drift above 0, and rounds start on hard ground.

    200 texts of 100 positions from one generator: the steps' standard errors are below 0.02, so that the
    bounds of 0.1 are five of them.
    """
    generator, gamma = np.random.default_rng(1), 4
    for stretches in (False, True):
        frames, texts = [], {}
        for text in range(200):
            hard = np.repeat(generator.random(5) < 0.5, 20) if stretches else np.zeros(100, bool)
            betas = np.where(hard, 0.4, 0.9) if stretches else np.full(100, 0.7)
            frames.append(simulated(betas, gamma, generator).assign(seed=1, repeat=text))
            texts[text] = list(zip(betas, betas, strict=True))  # kept is beta on average
        table = pd.concat(frames, ignore_index=True).assign(engine="cached", drafter="draft", gamma=gamma)
        row = gap_table(table, plain_texts(texts)).iloc[0]
        if stretches:
            assert row["drift"] > 0.1 and row["dependence"] < -0.1
        else:
            assert abs(row["drift"]) < 0.1 and abs(row["dependence"]) < 0.1
        assert row["ending"] < 0  # cut rounds yield less
        rates, methods = acceptance_tables(table)
        assert np.abs(rates["reached"] - rates["reached_rb"]).max() < 0.05
        assert methods.loc[0, "tokens_per_round"] == pytest.approx(methods.loc[0, "tokens_per_round_rb"], abs=0.05)
        for column in ("homogeneity_p", "geometric_p", "lag1_p"):
            assert (methods.loc[0, column] < 0.001) == stretches, column
        assert (methods.loc[0, "lag1"] > 0.1) == stretches


def test_a_sweep_without_the_cached_engine_has_no_gap():
    table = gap_table(rounds(engine="recompute"), plain_texts({1: [(0.5, 1.0)]}))
    assert table.empty and {"eq1", "measured"} <= set(table.columns)
