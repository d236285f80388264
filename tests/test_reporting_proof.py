"""The evidence in the report: each number is the table's, and what is missing is a dash or is named."""

import csv
import json
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from specledger.experiments.controls import decoders, round_rules
from specledger.reporting import formats, page, paper, report
from specledger.reporting.figures import draw_all
from specledger.reporting.wording import read_wording
from synthetic import write_csv, write_json
from test_reporting import Made, Reader, cells, make

NEW_FIGURES = ("p_values", "acceptance_by_position", "gap")
NEW_TABLES = (
    "oracle contexts p_values sequences controls false_alarms rates independence gap differences".split()
)  # fmt: skip


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Made:
    return make(tmp_path_factory.mktemp("results") / "study", (1, 2, 3))


@pytest.fixture(scope="module")
def text(made, tmp_path_factory) -> str:
    return made.page(tmp_path_factory.mktemp("page"))


def table(made: Made, name: str) -> list[dict[str, str]]:
    with (made.results / "tables" / f"{name}.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def changed(made: Made, folder: Path, name: str, change: Callable[[dict], None], where: Callable = bool) -> Made:
    """A copy of the study with `change` made to the rows of a table (or to summary.json) that satisfy `where`."""
    copy = made if folder in made.results.parents else made.copy(folder / "study")
    if name == "summary":
        path = copy.results / "tables" / "summary.json"
        found = json.loads(path.read_text(encoding="utf-8"))
        change(found)
        write_json(path, found)
        return copy
    rows = table(copy, name)
    chosen = [row for row in rows if where(row)]
    assert chosen, f"{name}.csv has no such row"
    for row in chosen:
        change(row)
    write_csv(copy.results / "tables" / f"{name}.csv", rows)
    return copy


def said(made: Made, folder: Path) -> str:
    return Reader(made.page(folder)).said


def rounded(value: str, decimals: int) -> str:
    return formats.number(float(value), decimals) if value else formats.MISSING


def test_oracle_and_false_alarms_show_the_tables(made, text):
    for row, shown in zip(table(made, "oracle"), cells(text, "proof-oracle"), strict=True):
        assert shown[2:5] == [formats.whole(int(row[key])) for key in ("gamma", "vocabulary", "blocks")]
        assert shown[5] == formats.scientific(float(row["max_abs_deviation"]))
    for row, shown in zip(table(made, "false_alarms"), cells(text, "proof-false_alarms"), strict=True):
        assert shown[3] == row["rejected"]
        assert shown[4] == formats.percent(float(row["rate"]), 1)
        assert shown[6] == {"true": "yes", "false": "no"}[row["inside"]]


def test_many_positions_show_both_families(made, text):
    for row, shown in zip(table(made, "contexts"), cells(text, "proof-contexts"), strict=True):
        assert shown[1] == row["tested"]
        assert shown[2:4] == [formats.p_value(float(row[key])) for key in ("fisher_p", "sum_p")]
        assert shown[4:6] == [row["holm_rejected"], row["bh_rejected"]]


def test_sequences_have_a_row_a_decoder_and_a_column_a_test(made, text):
    rows, shown = table(made, "sequences"), cells(text, "proof-sequences")
    tests = list(dict.fromkeys(row["test"] for row in rows))
    assert len(shown) * len(tests) == len(rows)
    wanted = [formats.p_value(float(row["p_value"])) for row in rows if row["test"] == "3-gram"]
    assert [row[6] for row in shown] == wanted
    assert {row[8] for row in shown} == {"0"}, "no broken identity"


def test_the_battery_says_what_caught_each_rule(made):
    document, _ = report.build(made.results, made.figures, made.about)
    blocks = next(section.blocks for section in document.sections if section.id == "proof")
    view = next(block for block in blocks if block.kind == "table" and block.name == "controls")
    words, shown = read_wording("en", {}), [[cell.text for cell in row] for row in view.rows]
    for row, cell in zip(table(made, "controls"), shown, strict=True):
        names = [words.name("test", name) for name in row["caught_by"].split(", ") if name]
        assert cell[2] == (", ".join(names) or formats.MISSING)
        assert cell[4] == rounded(row["power"], 3)
        if row["rule"] != "correct":
            wanted = "✓ caught" if row["caught"] == "true" else "? not detectable at this n"
            assert cell[1] == wanted
    assert [cell[1] for cell in shown[:2]] == ["✓ passed", "✓ passed"]


def test_the_page_shows_the_battery_once_with_its_numbers(made, text):
    assert 'id="proof-controls"' not in text, "on the page the explorable carries the rows"
    part = text[text.index('<table class="dots">') :]
    body = part[part.index("<tbody>") : part.index("</tbody>")]
    cells_of = [re.findall(r'<td class="n">(.*?)</td>', row) for row in body.split("</tr>") if row.strip()]
    found = [[re.sub(r"<[^>]+>", "", cell) for cell in row] for row in cells_of]
    sample = read_wording("en", {}).raw("names.sample_of")
    certain = [{"accounting"}, {"range"}, {"accounting", "range"}]
    wanted = [
        [
            "–" if set(row["caught_by"].split(", ")) in certain else formats.p_value(float(row["p_value"])),
            f"{rounded(row['power'], 3)} {formats.whole(float(row['n']))} {sample[row['kind']]}",
        ]
        for row in table(made, "controls")
    ]
    assert sorted(found) == sorted(wanted)
    assert ["–"] in [row[:1] for row in found], "books that do not agree are no matter of chance"


def test_every_rule_of_the_battery_has_plain_words():
    ids = [rule.name for rule in round_rules(np.eye(2))] + [decoder.name for decoder in decoders(None)]
    for language in ("en", "zh"):
        known = read_wording(language, {}).raw("names.fault")
        assert [name for name in ids if name not in known] == []


def test_acceptance_by_position_and_the_gap_show_the_tables(made, text):
    rates = sorted(table(made, "rates"), key=lambda row: row["engine"] != "cached")
    for row, shown in zip(rates, cells(text, "gamma-rates"), strict=False):
        assert shown[2:6] == [row[key] for key in ("gamma", "position", "examined", "accepted")]
        assert shown[6:9] == [rounded(row["rate"], 3), rounded(row["reached"], 4), rounded(row["reached_rb"], 4)]
    for row, shown in zip(table(made, "gap"), cells(text, "gamma-gap"), strict=True):
        steps = [float(row[key]) for key in ("eq1", "drift", "dependence", "ending")]
        assert sum(steps) == pytest.approx(float(row["measured"]), abs=1e-6)
        assert [shown[2], shown[6]] == [rounded(row["eq1"], 3), rounded(row["measured"], 3)]
        assert [cell.lstrip("+") for cell in shown[3:6]] == [
            rounded(row[key], 3) for key in ("drift", "dependence", "ending")
        ]


def test_independence_shows_both_ways_of_counting(made, text):
    rows = sorted(table(made, "independence"), key=lambda row: row["engine"] != "cached")
    for row, shown in zip(rows, cells(text, "gamma-independence"), strict=True):
        assert shown[3:6] == [rounded(row[key], 3) for key in ("alpha", "tokens_per_round", "tokens_per_round_rb")]
        assert shown[6] == (formats.p_value(float(row["homogeneity_p"])) if row["homogeneity_p"] else "–")


def test_single_positions_show_their_monte_carlo_tests(made, text):
    rows = table(made, "acceptance")
    for row, shown in zip(rows, cells(text, "accept-acceptance_rows"), strict=True):
        assert shown[3] == rounded(row["acceptance"], 4)
        assert shown[7:9] == [formats.p_value(float(row[key])) for key in ("tv_p_value", "chi2_p_value")]
        assert shown[10] == formats.small(float(row["tv_bound"]), 4)
    inside = [float(row["acceptance_lo"]) <= float(row["beta"]) <= float(row["acceptance_hi"]) for row in rows]
    assert sum(int(shown[4]) for shown in cells(text, "accept-acceptance")) == sum(inside)


def test_every_interval_names_method_level_and_n(made, text):
    shown = {row[0]: row[2:] for row in cells(text, "intervals-intervals")}
    texts = max(int(row["texts"]) for row in table(made, "independence"))
    assert shown["Cluster t by text"] == ["95%", f"{texts} texts"]
    assert shown["Student&#39;s t over seeds"] == ["95%", "3 seeds"]
    assert shown["Wilson"] == ["95%", "200,000 draws"]
    assert shown["Paired t, the interval of two one-sided tests at .05"] == ["90%", "3 pairs"]
    assert "Prediction, t over seeds" not in shown, "no claim of this study rests on one"


def test_new_tables_are_downloads_and_new_figures_are_drawn(made, text):
    for name in NEW_TABLES:
        assert f'<a download="{name}.csv"' in text, name
    for name in NEW_FIGURES:
        assert (made.figures / f"{name}.svg").is_file() and f'id="figure-{name}"' in text, name


def test_one_seed_makes_no_test_of_equivalence(tmp_path):
    one = make(tmp_path / "study", (4,))
    text = one.page(tmp_path)
    found = Reader(text).said
    assert "cannot be tested with 1 seed" in found and "needs at least two seeds" in found
    levels = {row[0]: row[2] for row in cells(text, "intervals-intervals")}
    assert levels["Student&#39;s t over seeds"] == levels["Paired t over seeds"] == "–"


def test_without_the_cached_engine_the_gap_is_not_split(made, tmp_path):
    copy = made.copy(tmp_path / "study")
    path = copy.results / "tables" / "gap.csv"
    path.write_text(path.read_text(encoding="utf-8").splitlines()[0] + "\n", encoding="utf-8")
    for name in ("rates", "independence"):
        kept = [row for row in table(copy, name) if row["engine"] == "recompute"]
        write_csv(copy.results / "tables" / f"{name}.csv", kept)
    draw_all(copy.results, copy.figures)
    text = copy.page(tmp_path)
    assert "can be taken apart only on the cached engine" in Reader(text).said
    assert 'id="gamma-gap"' not in text and 'id="figure-gap"' not in text
    paper.render(copy.results, copy.figures, copy.about, tmp_path / "report.pdf")


def test_empty_cells_of_the_evidence_are_dashes(made, tmp_path):
    copy, keys = made.copy(tmp_path / "study"), set("engine drafter gamma position rule kind test model seed".split())
    keys |= {"vocabulary", "temperature", "bin_lo", "bin_hi", "count", "expected", "inside", "caught"}
    keys |= {"expected_caught", "what", "draws", "accepted", "acceptance", "beta", "context", "tv_output", "eq1"}
    for name in (*NEW_TABLES, "acceptance"):
        changed(copy, tmp_path, name, lambda row: row.update({key: "" for key in row if key not in keys}))
    draw_all(copy.results, copy.figures)
    text = copy.page(tmp_path)
    found = Reader(text).said
    for word in ("NaN", "nan", "None", "null"):
        assert not re.search(rf"(?<![\w.-]){word}(?![\w.-])", found), word
    assert {row[2] for row in cells(text, "proof-contexts")} == {"–"}
    paper.render(copy.results, copy.figures, copy.about, tmp_path / "report.pdf")


def test_a_missing_table_of_the_evidence_is_named(made, tmp_path):
    copy = made.copy(tmp_path / "study")
    for name in NEW_TABLES:
        path = copy.results / "tables" / f"{name}.csv"
        path.rename(copy.results / "away")
        with pytest.raises(ValueError, match=rf"{name}\.csv: missing"):
            page.render(copy.results, copy.figures, copy.about, tmp_path / "index.html")
        (copy.results / "away").rename(path)
