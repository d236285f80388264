"""The answer in brief: which sentences stand there follows from the ledger, and none says more than its rows."""

from collections.abc import Callable

import pytest
import yaml
from specledger.reporting.time.facts import LEAST_SHARE, shown_share
from specledger.reporting.views_bounds import OF_UNIT
from test_reporting import ROOT, Made, make
from test_reporting_proof import changed, said

BEST = {"engine": "cached", "drafter": "ngram", "gamma": "4"}


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Made:
    """A study whose best lossless ratio is that of the n-gram at gamma 4 on the cached engine."""
    folder = tmp_path_factory.mktemp("results")
    study = make(folder / "study", (1, 2, 3))
    best = BEST | {"gamma": 4, "speedup": 1.9, "lo": 1.7, "hi": 2.1, "method": "bootstrap"}
    return changed(study, folder / "best", "summary", lambda found: found.update(best=best))


def row(**which: str) -> Callable[[dict], bool]:
    return lambda found: all(found[key] == value for key, value in which.items())


def setting(**cells: str) -> Callable[[dict], None]:
    return lambda found: found.update(cells)


@pytest.mark.parametrize(
    ("where", "cells", "phrase"),
    [
        (
            row(engine="compiled", drafter="none"), {"wall_s": "0.0001"},
            "In seconds plain decoding on the compiled engine is faster than all of these: 0.000 s per text",
        ),
        (
            row(engine="compiled", drafter="ngram", gamma="4"), {"wall_s": "0.0001", "lossless": "true"},
            "In seconds the n-gram at γ = 4 on the compiled engine is faster still",
        ),
        (row(**BEST), {"wall_s": "0.0001"}, "No row that keeps the distribution writes a text in fewer seconds."),
        (
            row(engine="recompute", drafter="draft", gamma="4"), {"speedup": "99", "lossless": "false"},
            "Larger ratios, up to 99.00× (draft model at γ = 4, recompute)",
        ),
    ],
    ids=["plain decoding", "another method", "the best row itself", "beyond the context"],
)  # fmt: skip
def test_the_second_answer_names_the_fastest_row_too(made, tmp_path, where, cells, phrase):
    assert phrase in said(changed(made, tmp_path, "ledger", setting(**cells), where), tmp_path)


def test_a_row_that_is_not_lossless_is_never_the_fastest(made, tmp_path):
    where = row(engine="compiled", drafter="ngram", gamma="4")
    copy = changed(made, tmp_path, "ledger", setting(wall_s="0.0001", lossless="false", speedup="1.5"), where)
    text = said(copy, tmp_path)
    assert "In seconds the" in text and "In seconds the n-gram at γ = 4 on the compiled engine" not in text


def test_plain_decoding_is_no_larger_ratio(made, tmp_path):
    def slow(found: dict) -> None:
        found["best"].update(speedup=0.8, lo=0.7, hi=0.9)

    parted = changed(made, tmp_path / "a", "ledger", setting(lossless="false"), row(engine="compiled", drafter="none"))
    methods = changed(
        parted, tmp_path / "b", "ledger", setting(speedup="0.5"), lambda found: found["drafter"] != "none"
    )
    text = said(changed(methods, tmp_path / "c", "summary", slow), tmp_path)
    assert "No method that keeps the distribution is faster than plain decoding" in text and "Larger ratios" not in text


def test_the_price_of_a_wider_check_is_said_as_it_was_measured(made, tmp_path):
    def cheap(found: dict) -> None:
        found["v"] = "0.94" if found["v"] else ""

    assert "Here it takes 0.94 times as long" in said(changed(made, tmp_path / "a", "ledger", cheap), tmp_path)
    unknown = said(changed(made, tmp_path / "b", "ledger", setting(v="")), tmp_path)
    assert "compared with one position." in unknown and "times as long, by engine" not in unknown


@pytest.mark.parametrize(
    ("share", "text"),
    [(0.031, "3.10%"), (-0.031, "−3.10%"), (0.0, "0.00%"), (LEAST_SHARE / 2, "< 0.01%"), (-LEAST_SHARE / 2, "< 0.01%")],
)
def test_a_small_share_is_no_zero_and_a_negative_one_keeps_its_sign(share, text):
    assert shown_share(share) == text


def test_every_unit_of_a_claim_knows_its_limits():
    entries = yaml.safe_load((ROOT / "config" / "claims.yaml").read_text(encoding="utf-8"))
    units = {entry["unit"] for entry in entries["claims"] if entry.get("unit")}
    assert units and units <= set(OF_UNIT)


def test_a_difference_is_not_cut_where_what_it_is_of_ends():
    claims = yaml.safe_load((ROOT / "config" / "claims.yaml").read_text(encoding="utf-8"))["claims"]
    differences = [claim["unit"] for claim in claims if "minus_gamma" in claim.get("measure", {})]
    assert differences and all(OF_UNIT[unit] == (None, None) for unit in differences)
