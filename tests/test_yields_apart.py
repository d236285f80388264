"""Tokens a round are the same, whether drafters are followed along the target's texts or counted in their own."""

import numpy as np
import pandas as pd
import pytest
from small import drafters_of, sizes, tiny_llama
from specledger.analysis.raw import read_csv
from specledger.analysis.yields import counted, followed
from specledger.decoding.engines import engine
from specledger.experiments.bundle import ModelBundle
from specledger.experiments.texts import chosen_rounds, text_rows
from specledger.foundation.records import write_rows
from specledger.sampling.distributions import Sampling
from specledger.tables.raw import RAW

CONFIG = sizes(7, context=24)
TARGET = tiny_llama(CONFIG, seed=100)
BUNDLE = ModelBundle(target=TARGET, drafters=drafters_of(TARGET))
TEXTS, TOKENS = 120, 24
SHARED = {"texts": TEXTS, "tokens": TOKENS, "sampling": Sampling(), "seed": 4, "after_each": lambda: None}


@pytest.fixture(scope="module")
def along() -> pd.DataFrame:
    return pd.DataFrame(text_rows(BUNDLE, ["draft", "ngram", "mtp"], [1, 2, 3], engine("cached"), **SHARED))


@pytest.mark.parametrize(("drafter", "gamma"), [("draft", 3), ("ngram", 4), ("mtp", 1)])
def test_following_and_counting_agree(along, drafter, gamma):
    """Rounds of texts that speculation wrote against those expected along plain ones: 4.5 standard errors of both."""
    rows = pd.DataFrame(chosen_rounds(BUNDLE, {drafter: [gamma]}, [1, 2, 3], engine("cached"), **SHARED))
    assert list(rows.columns) == RAW["apart"].names and (rows["drafted"] <= gamma).all()
    tokens = (rows["accept_len"] + 1).groupby(rows["text"]).sum()
    assert (tokens == TOKENS).all() and len(tokens) == TEXTS
    per_text = rows.groupby("text").size()
    one, other = counted(rows, "sliding", drafter, gamma), followed(along, drafter, gamma)
    error = per_text.std() / np.sqrt(TEXTS) / per_text.mean() * one.tokens_per_round
    assert abs(one.tokens_per_round - other.tokens_per_round) < 4.5 * np.sqrt(2) * error
    assert other.share_K @ np.arange(gamma + 1) == pytest.approx(one.share_K @ np.arange(gamma + 1), abs=0.15)
    assert other.alpha == pytest.approx(one.alpha, abs=0.06)


def test_the_rounds_repeat_and_each_gamma_has_its_own():
    few = SHARED | {"texts": 2}
    first, again = (list(chosen_rounds(BUNDLE, {"draft": [2, 3]}, [1, 2], engine("cached"), **few)) for _ in range(2))
    assert first == again and {row["gamma"] for row in first} == {2, 3}


def test_a_study_without_such_texts_writes_files_that_are_read(tmp_path):
    for name in ("apart", "agreement"):
        write_rows(tmp_path / "none.csv", [], RAW[name].names)
        found = read_csv(tmp_path / "none.csv", RAW[name].names, 1, may_be_empty=True)
        assert found.empty and list(found.columns) == RAW[name].names
