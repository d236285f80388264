"""The kept reference: what is taken of a study, what is refused, and README, which must say what the files say."""

import json
import sys
from pathlib import Path

import pytest
from specledger.foundation.errors import UserError
from specledger.foundation.records import sum_of
from synthetic import write_synthetic_study
from synthetic_files import write_json

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "benchmarks"))
import keep_reference as keeping

REFERENCE, REPORT = ROOT / "results" / "reference", ROOT / "report" / "reference"


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    folder = tmp_path_factory.mktemp("study") / "results"
    write_synthetic_study(folder, (1, 2))
    for seed in (1, 2):
        record = {"device": "a CPU", "commit": "0123456789abcdef"}
        write_json(folder / "sweep" / str(seed) / "certificate.json", record)
        write_json(folder / "models" / "mtp" / str(seed) / "certificate.json", record)
    (folder / "corpus" / "text.txt").write_text("words")
    (folder / "logs").mkdir()
    (folder / "logs" / "a.csv").write_text("no")
    return folder


def kept(study, tmp_path) -> tuple[Path, Path]:
    page = tmp_path / "index.html"
    page.write_text("<p>")
    keeping.keep(study, [page], tmp_path / "r" / "reference", tmp_path / "p" / "reference")
    return tmp_path / "r" / "reference", tmp_path / "p" / "reference"


def test_tables_certificates_and_small_files_are_kept_and_weights_are_not(study, tmp_path, monkeypatch):
    monkeypatch.setattr(keeping, "LARGEST", 30_000)
    reference, report = kept(study, tmp_path)
    assert {p.name for p in (study / "tables").glob("*")} == {p.name for p in (reference / "tables").glob("*")}
    assert (reference / "models/mtp/1/certificate.json").is_file() and (reference / "corpus/corpus.json").is_file()
    assert {path.suffix for path in reference.rglob("*") if path.is_file()} == {".csv", ".json"}
    assert not (reference / "logs").exists() and (report / "index.html").is_file()
    left = json.loads((reference / "left_out.json").read_text())
    assert left and all((study / name).stat().st_size > 30_000 and not (reference / name).exists() for name in left)


def test_what_was_kept_before_goes(study, tmp_path):
    reference, _ = kept(study, tmp_path)
    (reference / "tables" / "old.csv").write_text("a")
    kept(study, tmp_path)
    assert not (reference / "tables" / "old.csv").exists()


def test_too_much_is_refused_and_nothing_is_touched(study, tmp_path, monkeypatch):
    monkeypatch.setattr(keeping, "MOST", 1000)
    with pytest.raises(UserError, match=r"MB to keep, allowed are 0.001 \(largest: "):
        kept(study, tmp_path)
    assert not (tmp_path / "r").exists()


def test_an_unfinished_study_is_refused(tmp_path):
    with pytest.raises(UserError, match="no finished study"):
        keeping.check(tmp_path)


def test_readme_says_what_the_kept_files_say(study, tmp_path):
    reference, report = kept(study, tmp_path)
    (report / keeping.PICTURE).write_bytes(b"png")
    parts = keeping.blocks(reference, report, tmp_path)
    readme = keeping.fill((ROOT / "README.md").read_text(encoding="utf-8"), parts)
    assert "kept study of 2 seeds (commit 0123456789), measured on a CPU" in readme
    rows = {(r["engine"], r["drafter"], r["gamma"]): r for r in keeping.read_rows(study / "tables" / "ledger.csv")}
    row = rows["compiled", "ngram", "8"]
    assert (
        f"| compiled | ngram | 8 | yes | {float(row['alpha']):.3f} | {float(row['tokens_per_round']):.2f} |" in readme
    )
    assert "(p/reference/first-screen.png)" in readme
    assert keeping.fill(readme, parts) == readme


def test_a_missing_marker_is_said():
    with pytest.raises(UserError, match="the markers reference:table must stand there once"):
        keeping.fill("no markers", {"table": "a"})


@pytest.mark.skipif(not (REFERENCE / "tables").is_dir(), reason="no reference study is kept yet")
def test_readme_holds_to_the_kept_reference():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert keeping.fill(text, keeping.blocks(REFERENCE, REPORT, ROOT)) == text
    sums = json.loads((REPORT / "sums.json").read_text())
    assert {path.name: sum_of(path) for path in REPORT.iterdir() if path.name != "sums.json"} == sums
    assert {"index.html", "index.zh.html", "report.pdf", "report.zh.pdf"} <= sums.keys()
    files = [path for folder in (REFERENCE, REPORT) for path in folder.rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in files) <= keeping.MOST
