"""The section on other people's decoders: there where an audit was made, with its verdicts and its controls."""

import csv
from types import SimpleNamespace

import pytest
from specledger.audit.verdicts import COLUMNS
from specledger.reporting.audit.section import audit
from specledger.reporting.builder import Builder
from specledger.reporting.inline import plain
from specledger.reporting.wording import read_wording

ROWS = [
    {"mode": "plain", "control": "null", "expected": "kept", "verdict": "kept", "p_holm": 1.0},
    {"mode": "draft", "verdict": "kept", "p_holm": 0.4, "tokens_per_forward": 1.52},
    {"mode": "cut", "verdict": "departs", "p_holm": 4.9e-9, "top_k": 8},
    {"mode": "synthetic", "control": "lossy", "expected": "departs", "verdict": "departs", "p_holm": 0.0},
]
SAME = {"system": "llama.cpp", "version": "xllamacpp 2026.10", "prompt": "start", "temperature": 1.0, "n": 3000}


def section(folder, rows, language="en"):
    """The section, and its paragraphs as text; every row has two tests."""
    (folder / "audit").mkdir(exist_ok=True)
    with (folder / "audit" / "audit.csv").open("w", newline="") as file:
        table = csv.DictWriter(file, COLUMNS)
        table.writeheader()
        for row in rows:
            table.writerow(SAME | {"test": "tokens 1-2", "detectable_tv_any": 0.09, "detectable_tv_draft": 0.07} | row)
            table.writerow(SAME | {"test": "score", "detectable_tv_draft": 0.05} | row | {"p_holm": 1.0})
    words = read_wording(language, {})
    made = audit(Builder(study=SimpleNamespace(results=folder), words=words))
    said = " ".join(plain(spans) for block in made.blocks if block.kind == "text" for spans in block.paragraphs)
    return made, said


def test_a_study_without_an_audit_has_no_section(tmp_path):
    make = Builder(study=SimpleNamespace(results=tmp_path), words=read_wording("en", {}))
    assert audit(make) is None


def test_a_row_shows_its_verdict_and_what_it_would_have_seen(tmp_path):
    made, said = section(tmp_path, ROWS)
    (table,) = [block for block in made.blocks if block.kind == "table"]
    assert "Verdicts of 2 audited rows: kept 1, departs 1, undecided 0" in said and "All came out so" in said
    cells = {row[2].text: row for row in table.rows}
    assert cells["draft"][0].text == "✓ kept" and cells["cut"][0].text == "✗ departs"
    assert cells["plain"][0].note == "control: plain, must be kept"
    assert cells["cut"][3].text == "temperature 1, top_k 8" and cells["cut"][5].text == "4.9\u00a0×\u00a010⁻⁹"
    assert [cell.text for cell in cells["draft"][6:9]] == ["0.050", "0.090", "1.52"]


def test_a_control_that_fails_is_said_first(tmp_path):
    rows = [row | {"verdict": "kept"} if row["mode"] == "synthetic" else row for row in ROWS]
    _, said = section(tmp_path, rows)
    assert "This audit can't be trusted" in said and "All came out so" not in said


@pytest.mark.parametrize("language", ["en", "zh"])
def test_every_word_is_there_in_each_language(tmp_path, language):
    made, said = section(tmp_path, [*ROWS, {"mode": "n", "verdict": "undecided", "p_holm": 0.02}], language)
    assert made.title and "{" not in said and len(made.blocks) == 4
