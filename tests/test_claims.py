"""Each rule gives each verdict, and the file of claims is read strictly."""

from pathlib import Path

import pandas as pd
import pytest
import yaml
from specledger.analysis import claims, measures, rules
from specledger.analysis.measures import Evidence, Measured
from specledger.foundation.errors import UserError

FILE = Path(__file__).parents[1] / "config" / "claims.yaml"
ENTRY = {
    "id": "loss",
    "title": "A loss",
    "section": 4,
    "group": "measurement",
    "source": "section 4",
    "published": 1.5,
    "unit": "nats",
    "rule": {"kind": "equal_within", "tolerance": 0.1},
    "measure": {"quantity": "loss", "model": "mtp"},
    "trained": True,
    "comparable": True,
}


def between(lo: float, hi: float) -> Measured:
    return Measured(value=(lo + hi) / 2, lo=lo, hi=hi, interval="t over seeds, 95%, n = 8")


def exact(value: float) -> Measured:
    return Measured(value=value, interval="exact", exact=True)


YES, NO, OPEN = rules.REPRODUCED, rules.NOT_REPRODUCED, rules.INCONCLUSIVE


@pytest.mark.parametrize(
    ("rule", "measured", "verdict"),
    [
        ({"kind": "equal_within", "tolerance": 0.1}, between(1.45, 1.55), YES),
        ({"kind": "equal_within", "tolerance": 0.1}, between(1.65, 1.75), NO),
        ({"kind": "equal_within", "tolerance": 0.1}, between(1.55, 1.65), OPEN),
        ({"kind": "equal_within", "tolerance": 0.1}, between(1.0, 2.0), OPEN),
        ({"kind": "at_most", "limit": 1}, between(0.8, 0.9), YES),
        ({"kind": "at_most", "limit": 1}, between(1.1, 1.2), NO),
        ({"kind": "at_most", "limit": 1}, between(0.9, 1.1), OPEN),
        ({"kind": "at_least", "limit": 1}, between(1.1, 1.2), YES),
        ({"kind": "at_least", "limit": 1}, between(0.8, 0.9), NO),
        ({"kind": "inside_interval", "low": 0.85, "high": 0.9}, between(0.86, 0.89), YES),
        ({"kind": "inside_interval", "low": 0.85, "high": 0.9}, between(0.91, 0.93), NO),
        ({"kind": "inside_interval", "low": 0.85, "high": 0.9}, between(0.84, 0.89), OPEN),
        ({"kind": "ordering", "side": "above", "of": 0}, between(0.1, 0.2), YES),
        ({"kind": "ordering", "side": "below", "of": 0}, between(0.1, 0.2), NO),
        ({"kind": "ordering", "side": "above", "of": 0}, between(-0.1, 0.2), OPEN),
        ({"kind": "ordering", "side": "above", "of": 0}, exact(0.0), NO),
        ({"kind": "interval_contains", "value": 1.5, "max_width": 1}, between(1.4, 1.6), YES),
        ({"kind": "interval_contains", "value": 1.5, "max_width": 1}, between(1.6, 1.7), NO),
        ({"kind": "interval_contains", "value": 1.5, "max_width": 1}, between(0.0, 3.0), OPEN),
        ({"kind": "all_identical"}, exact(1.0), YES),
        ({"kind": "all_identical"}, exact(0.999), NO),
    ],
)
def test_rules(rule, measured, verdict):
    assert rules.judge(rule, 1.5, measured).verdict == verdict


def test_one_seed_is_inconclusive():
    alone = Measured(value=1.5, interval="none, n = 1")
    for kind in ({"kind": "equal_within", "tolerance": 0.1}, {"kind": "interval_contains", "value": 1, "max_width": 1}):
        assert rules.judge(kind, 1.5, alone).verdict == OPEN


def nothing_but(**tables: pd.DataFrame) -> Evidence:
    return Evidence(**{name: tables.get(name, pd.DataFrame()) for name in Evidence.__dataclass_fields__})


def training(losses: dict[str, list[float]]) -> Evidence:
    rows = [
        {"model": model, "seed": seed, "validation_loss": loss, "parameters": 10}
        for model, values in losses.items()
        for seed, loss in enumerate(values, start=1)
    ]
    return nothing_but(training=pd.DataFrame(rows))


def judged(changes: dict, evidence: Evidence, *, quick: bool = False) -> pd.Series:
    return claims.judge_all([claims.parse_claim(ENTRY | changes, "here")], evidence, quick=quick).iloc[0]


def test_the_sentence_names_number_interval_method_level_and_n():
    row = judged({"note": "one more word"}, training({"mtp": [1.49, 1.50, 1.51]}))
    assert row["verdict"] == "reproduced"
    for part in ("1.5", "t over seeds", "95%", "n = 3", "1.475 to 1.525", "one more word."):
        assert part in row["why"]
    assert (row["measured"], row["published"], row["rule"]) == (pytest.approx(1.5), "1.5", "equal to 1.5 within 0.1")


def test_a_paired_difference_is_judged_by_its_pairs():
    evidence = training({"mtp": [1.5, 1.6, 1.7], "plain": [1.51, 1.61, 1.711]})
    change = {
        "rule": {"kind": "ordering", "side": "below", "of": 0},
        "measure": {"quantity": "loss", "model": "mtp", "minus_model": "plain"},
    }
    row = judged(change, evidence)
    assert row["verdict"] == "reproduced" and "paired t over seeds" in row["interval"]


def test_quick_and_not_comparable():
    evidence = training({"mtp": [1.5, 1.5, 1.5]})
    assert judged({}, evidence, quick=True)["verdict"] == "inconclusive"
    assert judged({"trained": False}, evidence, quick=True)["verdict"] == "reproduced"
    other = {"rule": {"kind": "not_comparable"}, "comparable": "another machine"}
    row = judged(other, evidence, quick=True)
    assert row["verdict"] == "not comparable" and "another machine" in row["why"]
    del_measure = claims.parse_claim({k: v for k, v in (ENTRY | other).items() if k != "measure"}, "here")
    assert claims.judge_all([del_measure], evidence, quick=False)["why"][0] == "Another machine."


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"colour": "red"}, "unknown key colour"),
        ({"section": 6}, "section: must be 1, 2, 3, 4 or 5, got 6"),
        ({"group": "other"}, "group: must be one of identity, correctness, measurement, quoted, got 'other'"),
        ({"trained": "yes"}, "trained: must be true or false"),
        ({"published": "1.5"}, "published: must be a number for equal_within"),
        ({"rule": {"kind": "about"}}, "rule.kind: must be one of"),
        ({"rule": {"kind": "equal_within"}}, "key tolerance is missing"),
        ({"rule": {"kind": "equal_within", "tolerance": "small"}}, "tolerance: must be a number, got 'small'"),
        ({"rule": {"kind": "at_most", "limit": 1, "level": 2}}, "unknown key level"),
        ({"rule": {"kind": "ordering", "side": "left", "of": 0}}, "side: must be one of above, below"),
        ({"rule": {"kind": "not_comparable"}}, "comparable: must be a reason"),
        ({"comparable": "another machine"}, "comparable: must be a reason"),
        ({"comparable": False}, "comparable: must be true or the reason"),
        ({"measure": {"quantity": "luck"}}, "quantity: must be one of"),
        ({"measure": {"quantity": "loss"}}, "key model is missing"),
        ({"measure": {"quantity": "loss", "model": "mtp", "modle": 1}}, "unknown key modle"),
        ({"measure": None}, "measure: is missing"),
    ],
)
def test_a_wrong_entry_is_refused_in_one_line(tmp_path, change, message):
    path = tmp_path / "claims.yaml"
    path.write_text(yaml.safe_dump({"claims": [ENTRY | change]}))
    with pytest.raises(UserError, match=message) as caught:
        claims.read_claims(path)
    assert "\n" not in str(caught.value) and str(path) in str(caught.value)


def test_a_missing_key_a_twin_and_a_broken_file(tmp_path):
    path = tmp_path / "claims.yaml"
    for content, message in (
        (yaml.safe_dump({"claims": [{k: v for k, v in ENTRY.items() if k != "unit"}]}), "key unit is missing"),
        (yaml.safe_dump({"claims": [ENTRY, ENTRY]}), "id loss appears twice"),
        (yaml.safe_dump({"claims": [], "more": 1}), "unknown key more"),
        ("claims: [", "not YAML"),
    ):
        path.write_text(content)
        with pytest.raises(UserError, match=message):
            claims.read_claims(path)
    with pytest.raises(UserError, match="file is missing"):
        claims.read_claims(tmp_path / "none.yaml")


def test_the_published_file():
    found = claims.read_claims(FILE)
    assert len(found) >= 20 and {claim.section for claim in found} == {1, 2, 3, 4, 5}
    assert {claim.measure["quantity"] for claim in found if claim.measure} <= set(measures.MEASURES)
    assert claims.parameter(found, "plausible_share", "distance") == 0.0005


READINGS = """
743000 55000 0.07 0 0.0005 0.053 3.192 2.993 3.093 2.956 0.717 0.676 0.08 -0.137 0.27 0.225 0.836 1.5276 1.5332
1.5357 1.8862 0.0056 -0.008 1.8 0.333 1.27 0.53 0.88
"""
RANGES = [[0.67, 0.75], [0.85, 0.90], [1.0, 1.3], [0.02, 0.03]]


def test_every_reading_of_the_chapter_is_there():
    published = [claim.published for claim in claims.read_claims(FILE)]
    numbers = {one for one in published if isinstance(one, int | float)}
    assert {float(reading) for reading in READINGS.split()} <= numbers
    assert all(pair in published for pair in RANGES)
    assert "q = 0.0489, p = 0.0062" in published and "all identical" in published


@pytest.mark.parametrize(
    ("change", "values", "quick", "key"),
    [
        ({}, [1.5, 1.5, 1.5], False, "whole_inside"),
        ({}, [1.9, 1.9, 1.9], False, "whole_outside"),
        ({}, [1.4, 1.6, 1.5], False, "part"),
        ({}, [1.5], False, "single"),
        ({}, [1.5, 1.5, 1.5], True, "quick"),
        ({"rule": {"kind": "not_comparable"}, "comparable": "another machine"}, [1.5], False, "not_comparable"),
        ({"rule": {"kind": "interval_contains", "value": 1.5, "max_width": 0.01}}, [1.4, 1.6], False, "too_wide"),
        ({"rule": {"kind": "interval_contains", "value": 1.5, "max_width": 9}}, [1.4, 1.6], False, "contains"),
        ({"rule": {"kind": "interval_contains", "value": 2.5, "max_width": 9}}, [1.5, 1.5001], False, "lacks"),
    ],
)
def test_each_verdict_names_its_reason(change, values, quick, key):
    row = judged(change, training({"mtp": values}), quick=quick)
    assert row["reason"] == key and row["group"] == "measurement"


def test_a_gamma_that_is_not_swept_is_named():
    measure = {"quantity": "speedup", "engine": "cached", "drafter": "draft", "gamma": 6}
    found = claims.decide(claims.parse_claim(ENTRY | {"measure": measure}, "here"), None, quick=True)
    assert found.key == "no_gamma" and found.reason == "gamma 6 is not in this study's sweep"
