"""Sentences of the report that judge: each is chosen by the numbers, failures included."""

import json
from collections.abc import Callable

import pytest
from specledger.reporting.figures import draw_all
from synthetic import write_csv
from test_reporting import Made, make
from test_reporting_proof import changed, said, table


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Made:
    return make(tmp_path_factory.mktemp("results") / "study", (1, 2, 3))


def fault_in(key: str, value: object) -> Callable[[dict], None]:
    return lambda found: found.update({key: value})


@pytest.mark.parametrize(
    ("name", "change", "where", "phrases"),
    [
        (
            "summary", fault_in("oracle_max", 0.0031), bool,
            ["the exact enumeration (by 3.1 × 10⁻³)", "more than float64's rounding explains"],
        ),
        (
            "summary", fault_in("acceptance_rejected", 2), bool,
            ["departs from the target in 2 of 36 tests at single positions"],
        ),
        (
            "summary", fault_in("contexts_holm_rejected", 4), bool,
            ["are rejected after Holm's correction", "4 of"],
        ),
        (
            "contexts", fault_in("sum_p", 1e-7), lambda row: row["drafter"] == "all",
            ["All positions together are rejected : p = 1.0 × 10⁻⁷", "taken together (p = 1.0 × 10⁻⁷)"],
        ),
        (
            "summary", fault_in("sequences_rejected", 5), bool,
            ["5 of 144 tests on texts of the complete decoder", "5 are rejected at the level .001 after Holm"],
        ),
    ],
    ids=["oracle", "positions", "contexts", "pooled", "sequences"],
)  # fmt: skip
def test_a_departure_is_said_first(made, tmp_path, name, change, where, phrases):
    found = said(changed(made, tmp_path, name, change, where), tmp_path)
    assert "The distribution was not kept everywhere" in found and "The distribution was kept" not in found
    for phrase in phrases:
        assert phrase in found, phrase


def test_fisher_decides_nothing(made, tmp_path):
    copy = changed(made, tmp_path, "contexts", fault_in("fisher_p", 1e-7), lambda row: row["drafter"] == "all")
    assert "The distribution was kept" in said(copy, tmp_path)


def test_nothing_tested_is_no_pass(made, tmp_path):
    nothing = {f"{name}_tested": 0 for name in ("acceptance", "contexts", "sequences")}
    nothing |= {f"{name}_rejected": None for name in ("acceptance", "contexts_holm", "sequences")}
    copy = changed(made, tmp_path, "summary", lambda found: found.update(nothing))
    named = {"drafter", "contexts", "draws", "seeds"}
    empty = dict.fromkeys(set(table(copy, "contexts")[0]) - named, "") | {"tested": "0"}
    changed(copy, tmp_path, "contexts", lambda row: row.update(empty))
    changed(copy, tmp_path, "p_values", lambda row: row.update(count="0", expected="0"))
    draw_all(copy.results, copy.figures)
    found = said(copy, tmp_path)
    assert "No draw could test whether the distribution was kept" in found
    assert "was kept, as far as" not in found and found.count("Nothing could be tested here") == 2


def test_only_tests_that_were_made_are_counted(made, tmp_path):
    copy = changed(made, tmp_path, "summary", lambda found: found.update(acceptance_tested=0, contexts_tested=7))
    assert "7 tests at single positions with 5000 draws each and 144 tests on texts" in said(copy, tmp_path)


def test_triples_are_claimed_only_where_they_were_tested(made, tmp_path):
    assert "opening pairs and triples are compared" in said(made, tmp_path / "a")
    copy = made.copy(tmp_path / "study")
    write_csv(copy.results / "tables/sequences.csv", [r for r in table(copy, "sequences") if r["test"] != "3-gram"])
    assert "opening pairs are compared" in said(copy, tmp_path / "b")


def test_few_texts_are_said(made, tmp_path):
    assert "some of fewer than 20 texts" in said(made, tmp_path / "a")
    copy = made.copy(tmp_path / "study")
    for name in ("rates", "independence"):
        changed(copy, tmp_path, name, lambda row: row.update(texts="40"))
    assert "fewer than 20 texts" not in said(copy, tmp_path / "b")


def test_several_departures_are_listed(made, tmp_path):
    copy = changed(made, tmp_path, "summary", lambda found: found.update(sequences_rejected=5, oracle_max=1e-4))
    assert "(by 1.0 × 10⁻⁴) and 5 of 144 tests on texts" in said(copy, tmp_path)


def test_the_answer_when_all_is_well(made, tmp_path):
    found = said(made, tmp_path)
    summary = json.loads((made.results / "tables" / "summary.json").read_text(encoding="utf-8"))
    expected, unseen = summary["controls_expected"], len(summary["controls_unseen"])
    assert "The distribution was kept" in found
    assert (
        f"they caught {expected} of {expected} rules that were broken on purpose; {unseen} more, named below, are"
        in found
    )
    assert f"All {expected} that should be caught were caught." in found
    assert "every level is inside" in found


def test_greedy_texts_that_differ_are_said_beside_what_was_kept(made, tmp_path):
    copy = changed(made, tmp_path, "summary", lambda found: found.update(greedy_identical=found["greedy_total"] - 2))
    assert "but 2 of 171 greedy texts differ from plain greedy decoding" in said(copy, tmp_path)


def test_a_broken_rule_that_passes_weakens_all_the_rest(made, tmp_path):
    def missed(row: dict) -> None:
        row.update(caught="false", caught_by="", p_value="0.4")

    def first(row: dict) -> bool:
        return row["expected_caught"] == "true" and row["caught"] == "true" and row["rule"] == rule

    rule = next(row["rule"] for row in table(made, "controls") if row["expected_caught"] == "true")
    copy = changed(made, tmp_path, "controls", missed, first)
    changed(copy, tmp_path, "summary", lambda found: found.update(controls_caught_of_expected=12))
    found = said(copy, tmp_path)
    assert "But the tests are weaker than they claim" in found and "they caught only 12" in found
    assert "✗ undetected" in found and f"Missed by every test that should catch it, 1 of 13: {rule}" in found
    assert "that should be caught were caught" not in found


def test_a_fault_that_was_not_counted_upon_may_be_caught(made, tmp_path):
    def where(row: dict) -> bool:
        return row["rule"] != "correct" and row["expected_caught"] == "false"

    copy = changed(made, tmp_path, "controls", lambda row: row.update(caught="true", caught_by="1-gram"), where)
    found = said(copy, tmp_path)
    assert "Caught although this was not expected" in found and "Too small to detect with" not in found


def test_the_right_rule_rejected_is_no_pass(made, tmp_path):
    def rejected(row: dict) -> None:
        row.update(caught="true", caught_by="3-gram", p_value="0.0002")

    def decoder(row: dict) -> bool:
        return row["rule"] == "correct" and row["kind"] == "decoder"

    found = said(changed(made, tmp_path, "controls", rejected, decoder), tmp_path)
    assert "But the tests also rejected the correct rule" in found and "✗ rejected" in found
    assert "(triples; least p = 2.0 × 10⁻⁴)" in found and "met the same battery and passed" not in found


def test_false_alarms_outside_their_interval(made, tmp_path):
    copy = changed(made, tmp_path, "false_alarms", fault_in("inside", "false"), lambda row: row["test"] == "1-gram")
    changed(copy, tmp_path, "summary", fault_in("false_alarms_inside", False))
    found = said(copy, tmp_path)
    assert (
        "It does not hold for single characters" in found
        and "reject the correct rule at a rate that is not their level" in found
    )


def test_without_a_broken_rule_nothing_is_claimed(made, tmp_path):
    nothing = {"controls_total": 0, "controls_expected": 0, "controls_caught_of_expected": 0, "controls_unseen": []}
    copy = changed(made, tmp_path, "summary", lambda found: found.update(nothing))
    assert "nothing shows that these tests can fail" in said(copy, tmp_path)


@pytest.mark.parametrize(
    ("cells_of", "phrase"),
    [
        ({"verdict": "equivalent", "tost_p": 0.01, "lo": -0.004, "hi": 0.002}, "the two targets are equivalent"),
        ({"verdict": "equivalent", "tost_p": 0.01, "lo": -0.006, "hi": -0.002}, "smaller than what was said to matter"),
        ({"verdict": "different", "tost_p": 0.4, "lo": -0.03, "hi": -0.01}, "so the two targets differ"),
        ({"verdict": "undecided", "tost_p": 0.4, "lo": -0.03, "hi": 0.01}, "neither a difference nor equivalence"),
        ({"detectable": 0.02}, "one as large as the margin could well have been missed"),
        ({"detectable": 0.002}, "would be noticed more surely still"),
    ],
)
def test_equivalence_is_said_as_it_came_out(made, tmp_path, cells_of, phrase):
    copy = changed(made, tmp_path, "differences", lambda row: row.update(cells_of))
    assert phrase in said(copy, tmp_path)


def test_the_published_distance_is_judged_only_where_it_may_be(made, tmp_path):
    copy = changed(made, tmp_path, "contexts", fault_in("plausible_share", 0.0))
    assert "At none of our" in said(copy, tmp_path)
    other = make(tmp_path / "other", (1, 2), made.figures, tiny_shakespeare=False)
    assert "reported total variation" not in said(other, tmp_path)


def test_acceptance_that_depends_on_the_position(made, tmp_path):
    refuted = changed(made, tmp_path / "a", "independence", fault_in("homogeneity_p", 1e-9))
    assert "So α is not one number here." in said(refuted, tmp_path)
    level = changed(made, tmp_path / "b", "independence", fault_in("homogeneity_p", 0.3))
    assert "cannot tell one position's acceptance from another's" in said(level, tmp_path)
    unknown = changed(made, tmp_path / "c", "independence", fault_in("homogeneity_p", ""))
    assert "so the question stays open here" in said(unknown, tmp_path)


def test_leaks_that_no_draw_would_show(made, tmp_path):
    def blind(row: dict) -> None:
        row.update(detectable_leak="", detectable_tv="")

    copy = changed(made, tmp_path / "a", "acceptance", blind, lambda row: row["seed"] == "1")
    assert "At 12 of 36 positions q is so near p" in said(copy, tmp_path)
    copy = changed(made, tmp_path / "b", "acceptance", blind)
    assert "At no position would even drawing" in said(copy, tmp_path)
