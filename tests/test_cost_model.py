"""Theory against clock on costs that are known: yields measured apart, the model, its fit, and the best gamma."""

import numpy as np
import pandas as pd
import pytest
from specledger.analysis import costs
from specledger.analysis.best_gamma import best_gamma_table
from specledger.analysis.cost_model import cost_model_summary, cost_model_table, r_squared
from specledger.analysis.yields import counted, expected_rounds, followed
from specledger.theory.speculation import best_of, expected_tokens_per_round, walltime_speedup
from synthetic_files import GAMMAS
from synthetic_time import TRUTH, forward_rows

TOKENS, ALPHA = 200, 0.7


def texts(kept: list[np.ndarray], drafter: str = "draft") -> pd.DataFrame:
    return pd.concat(
        pd.DataFrame({"seed": 1, "text": at, "position": range(len(one)), "drafter": drafter, "beta": one, "kept": one})
        for at, one in enumerate(kept)
    )


NO_ROUNDS = pd.DataFrame(
    columns=["seed", "text", "context_rule", "drafter", "gamma", "round", "drafted", "accept_len", "examined"]
)


def simulated(kept_T: np.ndarray, gamma: int, rng: np.random.Generator) -> int:
    """Rounds of a decoder that is known to write this text: each verdict drawn, nothing averaged."""
    rounds, at = 0, 0
    while at < len(kept_T):
        drafted = min(gamma, len(kept_T) - at - 1)
        refused = np.flatnonzero(rng.random(drafted) >= kept_T[at : at + drafted])
        at += 1 + (int(refused[0]) if refused.size else drafted)
        rounds += 1
    return rounds


def test_expected_rounds_are_those_of_the_decoder():
    """Uneven text, so that where rounds start matters; five standard errors of 4,000 texts."""
    rng = np.random.default_rng(3)
    kept_T = rng.choice([0.15, 0.95], size=60, p=[0.3, 0.7])
    counts = [simulated(kept_T, 4, rng) for _ in range(4_000)]
    rounds_K, accepted, examined = expected_rounds(kept_T[None], 4)
    assert abs(rounds_K.sum() - np.mean(counts)) < 5 * np.std(counts) / np.sqrt(len(counts))
    assert accepted == pytest.approx(60 - rounds_K.sum()) and accepted < examined
    # Rounds that start everywhere alike would be wrong here by far more than that.
    products = np.array([np.cumprod(kept_T[t : t + 4]).sum() for t in range(56)])
    assert abs(60 / (1 + products.mean()) - np.mean(counts)) > 20 * np.std(counts) / np.sqrt(len(counts))


def test_one_alpha_gives_eq1_but_for_the_end_of_the_text():
    found = followed(texts([np.full(20_000, ALPHA)]), "draft", 4)
    assert found.tokens_per_round == pytest.approx(expected_tokens_per_round(ALPHA, 4), rel=1e-3)
    assert found.alpha == pytest.approx(ALPHA) and found.share_K[4] > 0.999
    assert followed(texts([np.ones(20)]), "ngram", 4) is None


def test_the_first_round_of_an_mtp_module_proposes_nothing():
    rounds_K, _, _ = expected_rounds(np.ones((1, 11)), 1, late=True)
    assert list(rounds_K) == [1, 5] and list(expected_rounds(np.ones((1, 11)), 1)[0]) == [1, 5]
    assert list(expected_rounds(np.ones((1, 10)), 1, late=True)[0]) == [2, 4]
    assert list(expected_rounds(np.ones((1, 10)), 1)[0]) == [0, 5]


def test_choosers_are_counted():
    rows = [(1, 2, 2, 2), (2, 0, 0, 0), (3, 1, 0, 1)]
    frame = pd.DataFrame([(1, 1, "sliding", "lookup", 2, *row) for row in rows], columns=list(NO_ROUNDS))
    found = counted(frame, "sliding", "lookup", 2)
    assert found.tokens_per_round == pytest.approx(5 / 3) and found.alpha == pytest.approx(2 / 3)
    assert list(found.share_K) == pytest.approx([1 / 3] * 3) and counted(frame, "sliding", "lookup", 3) is None
    assert counted(frame, "window", "lookup", 2) is None


def seconds_of_a_text(engine: str, drafter: str, gamma: int) -> float:
    """The clock itself: expected seconds of a text with one alpha, by what is left to write (not by starts)."""
    truth, left = TRUTH[engine], [0.0]
    for n in range(1, TOKENS + 1):
        k = min(gamma, n - 1)
        cost = sum(truth.parts(drafter if k else "none", k, gamma).values())
        after = sum(ALPHA**a * (1 - ALPHA) * left[n - a - 1] for a in range(k)) + ALPHA**k * left[n - k - 1]
        left.append(cost + after)
    return left[-1]


def ledger(noise: float = 0.0) -> pd.DataFrame:
    """A ledger whose speed-ups are exactly what the clock above gives (times a chance of noise)."""
    rng, rows = np.random.default_rng(1), []
    for engine, truth in TRUTH.items():
        plain = TOKENS * (truth.forward(1) + truth.plain_overhead)
        about = {"engine": engine, "context_rule": "sliding"}
        for drafter in ("draft", "ngram"):
            for gamma in GAMMAS:
                ratio = plain / seconds_of_a_text(engine, drafter, gamma) * np.exp(rng.normal(0, noise))
                ends = {"speedup": ratio, "speedup_lo": 0.9 * ratio, "speedup_hi": 1.1 * ratio}
                rows.append({**about, "drafter": drafter, "gamma": gamma, **ends})
        rows.append({**about, "drafter": "none", "gamma": 0, "speedup": 1.0})
    return pd.DataFrame(rows)


def forwards(seeds: tuple[int, ...] = (1, 2, 3)) -> pd.DataFrame:
    """Timings of seeds whose machine ran at different speeds."""
    return pd.DataFrame([row for seed in seeds for row in forward_rows(seed, 0.8 + 0.2 * seed)])


@pytest.fixture(scope="module")
def model() -> pd.DataFrame:
    kept = pd.concat([texts([np.full(TOKENS, ALPHA)] * 2, name) for name in ("draft", "ngram")])
    return cost_model_table(ledger(), costs.costs_of(forwards()), kept, NO_ROUNDS)


def test_the_model_is_the_clock_where_the_clock_is_the_model(model):
    assert len(model) == 36 and model["miss"].abs().max() < 1e-6
    for engine, found in cost_model_summary(model).items():
        assert found["r2"] == pytest.approx(1, abs=1e-9), engine
        assert abs(found["worst_miss"]) < 1e-6 and found["within"] == found["n"]
    # Overhead and the wider verification are what the theorem leaves out.
    fit = cost_model_summary(model)["compiled"]
    assert fit["theorem38_worst_miss"] > 0.1 and fit["theorem38_r2"] < 1


def test_cells_are_the_known_costs(model):
    row = model[(model["engine"] == "cached") & (model["drafter"] == "draft") & (model["gamma"] == 4)].iloc[0]
    truth, scale = TRUTH["cached"], 1.2  # the median seed's speed
    assert row["t_ar"] == pytest.approx(scale * truth.one) and row["t_draft"] == pytest.approx(scale * 0.29 * truth.one)
    assert row["c"] == pytest.approx(0.29) and row["plain_overhead"] == pytest.approx(scale * truth.plain_overhead)
    assert row["overhead"] == pytest.approx(scale * truth.overhead, rel=0.02)  # the last round is a plain one
    assert row["t_round"] == pytest.approx(row["t_propose"] + row["t_verify"] + row["overhead"])
    assert row["theorem38"] == pytest.approx(walltime_speedup(ALPHA, 4, 0.29))
    plain = row["t_ar"] + row["plain_overhead"]
    assert row["cost_model"] == pytest.approx(row["tokens_per_round"] * plain / row["t_round"])


def test_a_row_that_is_off_is_the_worst_and_lowers_r2(model):
    table = model.copy()
    table.loc[7, "cost_model"] *= 1.3
    table["miss"] = table["cost_model"] / table["measured"] - 1
    found = cost_model_summary(table)["all"]
    assert found["worst_miss"] == pytest.approx(0.3, abs=1e-6) and found["within"] == 35 and found["r2"] < 0.99
    assert found["worst_row"] == {name: table.loc[7, name] for name in ("engine", "drafter", "gamma")}
    assert r_squared(pd.Series([1.0]), pd.Series([1.0])) is None
    assert r_squared(pd.Series([2.0, 2.0]), pd.Series([1.0, 3.0])) == 0  # the mean alone explains nothing


def test_a_chooser_costs_what_its_rounds_propose():
    """Half its rounds propose 2 and keep both, half nothing: the costs are the draft model's, weighted."""
    frame = pd.DataFrame(
        [(1, 1, "sliding", "draft_dynamic", 4, at, k, k, k) for at, k in enumerate((2, 0) * 10)],
        columns=list(NO_ROUNDS),
    )
    rows = pd.DataFrame(
        [{"engine": "cached", "context_rule": "sliding", "drafter": "draft_dynamic", "gamma": 4, "speedup": 1.5}]
    )
    rows = rows.assign(speedup_lo=np.nan, speedup_hi=np.nan)
    row = cost_model_table(rows, costs.costs_of(forwards((1,))), texts([np.ones(9)]), frame).iloc[0]
    truth = TRUTH["cached"]
    mean = (sum(truth.parts("draft", 2).values()) + sum(truth.parts("none", 0).values())) / 2
    assert row["t_round"] == pytest.approx(mean) and row["proposals"] == 1 and row["tokens_per_round"] == 2
    assert row["cost_model"] == pytest.approx(2 * sum(truth.parts("none", 0).values()) / mean)
    assert np.isnan(row["theorem38"])  # it speaks of gamma proposals a round
    assert np.isnan(row["c"]) and np.isnan(row["t_draft"])  # and nobody knows how many tokens one proposal had


def test_a_chooser_is_priced_only_as_far_as_its_lender_was_timed():
    timed = forwards((1,))
    short = costs.costs_of(timed[~((timed["drafter"] == "draft") & (timed["gamma"] > 4))])
    assert [short["cached"].measured("draft_dynamic", gamma) for gamma in (4, 8)] == [True, False]
    assert not short["compiled"].measured("draft_dynamic", 8)
    assert costs.costs_of(timed)["cached"].measured("draft_dynamic", 8)


def test_rows_without_costs_or_yield_are_left_out():
    kept = texts([np.full(TOKENS, ALPHA)])
    table = cost_model_table(ledger(), costs.costs_of(forwards()), kept, NO_ROUNDS)
    assert set(table["drafter"]) == {"draft"}
    bare = forwards()
    bare = bare[~((bare["part"] == "propose") & (bare["drafter"] == "draft") & (bare["gamma"] == 2))]
    table = cost_model_table(ledger(), costs.costs_of(bare), kept, NO_ROUNDS)
    assert set(table["gamma"]) == set(GAMMAS) - {2}


def test_timings_too_noisy_for_a_price_leave_the_row_out():
    bad = forwards()
    bad.loc[(bad["part"] == "round") & (bad["drafter"] == "draft"), "seconds"] = 1e-9
    table = cost_model_table(ledger(), costs.costs_of(bad), texts([np.full(TOKENS, ALPHA)]), NO_ROUNDS)
    assert table.empty or (table["t_round"] > 0).all()
    assert cost_model_summary(table) == {} or np.isfinite(cost_model_summary(table)["all"]["worst_miss"])


def test_best_gamma_is_found_and_its_neighbours_are_named(model):
    table = best_gamma_table(model).set_index(["engine", "drafter"])
    for (engine, drafter), row in table.iterrows():
        clock = {gamma: 1 / seconds_of_a_text(engine, drafter, gamma) for gamma in GAMMAS}
        assert row["gamma_found"] == row["gamma_predicted"] == max(clock, key=clock.get) and row["agrees"]
        assert row["loss_if_predicted"] == 0
    row = table.loc["recompute", "ngram"]
    assert row["gamma_found"] == 8 and row["one_less"] == 6 and pd.isna(row["one_more"])
    clock = {gamma: 1 / seconds_of_a_text("recompute", "ngram", gamma) for gamma in GAMMAS}
    assert row["loss_if_one_less"] == pytest.approx(1 - clock[6] / clock[8])
    assert best_gamma_table(model[model["gamma"] == 1]).empty  # one gamma leaves nothing to choose


def test_a_wrong_prediction_is_priced(model):
    table = model[(model["engine"] == "cached") & (model["drafter"] == "draft")].copy()
    table["cost_model"] = table["gamma"].astype(float)
    row = best_gamma_table(table).iloc[0]
    assert row["gamma_predicted"] == 8 and not row["agrees"]
    measured = table.set_index("gamma")["measured"]
    assert row["loss_if_predicted"] == pytest.approx(1 - measured[8] / measured.max())


def test_best_of():
    assert best_of({3: 1.5, 2: 1.5, 1: 1.0}) == 2
    for wrong, words in (({}, "must not be empty"), ({1: float("nan")}, "must be numbers")):
        with pytest.raises(ValueError, match=words):
            best_of(wrong)
