"""What the report says of the clock follows from the tables, and comparisons are shown only where they were run."""

import csv
import json
import shutil
from pathlib import Path

import pytest
from specledger.foundation.errors import UserError
from specledger.reporting import findings_time, report
from specledger.reporting.figures import draw_all
from synthetic import write_synthetic_study
from synthetic_files import write_csv

PEERS = (
    ("specledger", "compiled", "plain", "none", 0, 0.4, None),
    ("specledger", "compiled", "speculative", "ngram", 6, 0.2, None),
    ("transformers", None, "generate", "none", 0, 1.4, 3.5),
    ("transformers", None, "prompt lookup", "lookup", 4, 1.0, 5.0),
)


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> tuple[Path, dict]:
    folder = tmp_path_factory.mktemp("results") / "study"
    about = write_synthetic_study(folder, (1, 2))
    draw_all(folder, folder / "figures")
    return folder, about


def changed(made, tmp_path: Path, change=lambda summary: None) -> tuple:
    """The document's time section of a copy whose summary was changed, its words, and its study."""
    folder = tmp_path / "study"
    shutil.copytree(made[0], folder)
    path = folder / "tables" / "summary.json"
    summary = json.loads(path.read_text())
    change(summary)
    path.write_text(json.dumps(summary))
    return opened(folder, made[1])


def opened(folder: Path, about: dict) -> tuple:
    document, study = report.build(folder, folder / "figures", about)
    section = next(section for section in document.sections if section.id == "time")
    texts = [block for block in section.blocks if block.kind == "text"]
    said = " ".join("".join(span.text for span in paragraph) for block in texts for paragraph in block.paragraphs)
    return section, " ".join(said.split()), study


def test_tables_and_figures_stand_there(made, tmp_path):
    section, said, study = changed(made, tmp_path)
    names = [block.name for block in section.blocks if block.kind in ("table", "figure")]
    wanted = "time_parts time theory cost_model waterfall waterfall best_gamma noise engines agreement"
    assert names == wanted.split()
    fit = study.summary["cost_model"]["all"]
    assert f"R² = {fit['r2']:.3f}" in said and f"{fit['within']} of {fit['n']} rows" in said


def test_a_balanced_account_and_one_that_is_not(made, tmp_path):
    assert "The account balances in all" in changed(made, tmp_path)[1]
    _, said, _ = changed(made, tmp_path / "two", lambda found: found["time"].update(rows_that_add_up=3))
    assert "The account does not balance everywhere" in said and "in 3 of" in said


def clocks(percent, lo, hi):
    return lambda found: found["noise"].update(clock_percent=percent, clock_percent_lo=lo, clock_percent_hi=hi)


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_compiling_shows_what_each_seed_took(made, tmp_path):
    path = made[0] / "sweep" / "2" / "engines.csv"
    copy = tmp_path / "study"
    shutil.copytree(made[0], copy)
    rows = [row | {"compile_s": "90"} if row["engine"] == "compiled" else row for row in rows_of(path)]
    write_csv(copy / "sweep" / "2" / "engines.csv", rows)
    first = next(float(row["compile_s"]) for row in rows_of(made[0] / "sweep/1/engines.csv") if row["compile_s"])
    view = next(block for block in opened(copy, made[1])[0].blocks if getattr(block, "name", "") == "engines")
    cell = next(row[2] for row in view.rows if row[0].sort.startswith("compiled"))
    assert cell.sort == (first + 90) / 2, "the median of two"
    assert cell.note == f"[{first:.1f}, 90.0]\nn = 2", "no t interval: from two seeds it would reach below zero"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda s: s["cost_model"]["all"].update(within=s["cost_model"]["all"]["n"]), "all 57 rows"),
        (lambda s: s.update(cost_model={}), "no row whose costs and acceptance"),
        (lambda s: s["noise"].update(aa_judged=3, aa_inside=3), "It does on 3 of 3 engines"),
        (lambda s: s["noise"].update(aa_judged=3, aa_inside=1), "It does so on only 1 of 3 engines"),
        (lambda s: s["noise"].update(aa_judged=0, aa_inside=0), "Too few pairs"),
        (clocks(3.2, 2.6, 3.8), "Reading the clocks costs 3.2% of a text (95% interval [2.6%, 3.8%]"),
        (clocks(1.2, 0.6, 1.8), "Reading the clocks costs at most 1.8% of a text"),
        (clocks(1.2, -0.6, 3.0), "within the 2% of a text that were allowed is undecided: it costs 1.2%, with a 95%"),
        (clocks(1.2, None, None), "is undecided: it costs 1.2%"),
        (
            lambda s: s.update(engines_missing={"compiled": "no compiler"}),
            "Not every engine ran: compiled (no compiler)",
        ),
        (lambda s: s.update(agreement_identical=s["agreement_texts"]), "the same characters in all"),
        (lambda s: s.update(agreement_margin=3e-7), "1 part where two sums round differently"),
        (lambda s: s.update(agreement_margin=0.02), "An engine writes other text than the one it is held against"),
        (lambda s: s.update(agreement_margins_unknown=1), "Margins unknown: 1."),
        (lambda s: None, "on the recompute engine for all drafters, they are counted in texts of their own"),
    ],
)
def test_sentences_follow_the_numbers(made, tmp_path, change, words):
    assert words in changed(made, tmp_path, change)[1]


def test_rounding_is_not_said_of_other_text(made, tmp_path):
    for at, change in enumerate(({"agreement_margin": 1e-5}, {"agreement_margins_unknown": 1})):
        said = changed(made, tmp_path / str(at), lambda found, change=change: found.update(change))[1]
        assert "round differently" not in said and "An engine writes other text" in said


def test_the_waterfall_names_the_dearest_part(made, tmp_path):
    _, said, study = changed(made, tmp_path)
    rows = study.tables["waterfall"].where(overall=True, case="worst")
    dearest = min(
        (row for row in rows if row["step"] not in ("forwards_saved", "pairs")), key=lambda row: row["factor"]
    )
    values = findings_time.waterfall(study, report.read_wording("en", {}))
    assert values["worst_factor"] == f"{dearest['factor']:.2f}" and f"a factor of {values['worst_factor']}" in said


def test_other_programs_are_shown_only_where_they_were_run(made, tmp_path):
    section, _, _ = changed(made, tmp_path)
    assert not [block for block in section.blocks if getattr(block, "name", "") in ("peers", "training_speed")]
    folder = tmp_path / "study"
    rows = [
        dict(zip(("program", "engine", "method", "drafter", "gamma", "seconds", "ratio_to_ours"), row, strict=True))
        | {"tokens": 600, "repeats": 5, "seconds_lo": 0.9 * row[5], "seconds_hi": 1.1 * row[5], "interval": "bootstrap"}
        | {"tokens_per_s": 600 / row[5], "ratio_to_ours_lo": row[6], "ratio_to_ours_hi": row[6]}
        for row in PEERS
    ]
    write_csv(folder / "peers" / "peers.csv", rows)
    with pytest.raises(UserError, match=r"peers\.svg"):
        opened(folder, made[1])
    draw_all(folder, folder / "figures")
    section, said, _ = opened(folder, made[1])
    view = next(block for block in section.blocks if block.kind == "table" and block.name == "peers")
    assert view.rows[0][0].text == "specledger: compiled, speculative, n-gram, γ = 6" and view.rows[0][1].text == "3000"
    assert "Beside other programs" in said
    with (folder / "peers" / "peers.csv").open() as lines:
        assert len(list(csv.reader(lines))) == len(view.rows) + 1
