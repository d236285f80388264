"""The published systems and trees in the report: with heads and trees, without them, and in both languages."""

import csv
import re
from pathlib import Path

import pytest
import yaml
from specledger.analysis.frames import ENGINES, ORDER
from specledger.foundation.drafters import HEADS, branched, methods
from specledger.reporting import page, paper, report, views_systems
from specledger.reporting.figures import draw_all
from specledger.reporting.wording import languages, read_texts, read_wording
from test_reporting import Made, Reader, cells, make
from test_reporting_languages import english_left, in_chinese
from test_reporting_proof import changed, said

ROOT = Path(__file__).resolve().parent.parent
SECTIONS = ("systems", "trees")


@pytest.fixture(scope="module")
def study(tmp_path_factory) -> Made:
    return make(tmp_path_factory.mktemp("results") / "study", (1, 2, 3), heads=True)


@pytest.fixture(scope="module")
def text(study, tmp_path_factory) -> str:
    return study.page(tmp_path_factory.mktemp("page"))


def rows_of(study: Made, name: str) -> list[dict[str, str]]:
    with (study.results / "tables" / f"{name}.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_a_study_without_heads_has_no_such_sections(tmp_path, study):
    made = make(tmp_path / "study", (1, 2), study.figures)
    found = made.page(tmp_path)
    assert not [name for name in SECTIONS if f'<section id="{name}"' in found]
    assert 'id="figure-ranks"' not in found and "None" not in Reader(found).said


def test_every_system_stands_in_its_band_with_ours_below(study, text):
    rows = rows_of(study, "systems")
    part = text[text.index('id="systems-systems"') : text.index('id="systems-heads"')]
    bodies = re.findall(r"<tbody>(.*?)</tbody>", part, flags=re.DOTALL)
    assert len(bodies) == len({row["system"] for row in rows}) == 6
    shown = [re.findall(r"<td.*?</td>", row, flags=re.DOTALL) for row in re.findall(r"<tr>(.*?)</tr>", part, re.DOTALL)]
    shown = [[re.sub(r"<small>.*?</small>|<[^>]+>", "", cell) for cell in row] for row in shown if row]
    assert [row[2] for row in shown] == [f"{float(row['speedup']):.2f}×" for row in rows]
    for body, system in zip(bodies, dict.fromkeys(row["system"] for row in rows), strict=True):
        published = next(row["published"] for row in rows if row["system"] == system)
        assert published in body and 'scope="rowgroup"' in body


def test_lossy_is_called_lossy_with_its_price_everywhere(study, text):
    lossy = [row for row in rows_of(study, "ledger") if row["drafter"] == "medusa1_typical"]
    cost = f"{float(rows_of(study, 'typical')[0]['tv']):.4f}"
    assert [row["lossless"] for row in lossy] == ["false"]
    ledger = text[text.index('id="ledger-ledger"') : text.index('id="explore-ledger"')]
    systems = text[text.index('<section id="systems"') : text.index('<section id="trees"')]
    assert f"lossy: TV {cost}" in ledger and f"no: TV {cost}" in systems
    carried = text[text.index('id="data-ledger"') :]
    assert f'"{cost} [' in carried[: carried.index("</script>")]


def test_trees_have_their_verdict_in_words(study, text):
    shown, rows = cells(text, "trees-trees"), rows_of(study, "trees")
    words = read_wording("en", {})
    assert [row[-1] for row in shown] == [words.name("tree_verdict", row["verdict"]) for row in rows]
    assert [row[3] for row in shown] == [f"{float(row['ratio']):.2f}×" for row in rows]


def test_heads_of_their_own_for_each_place_are_no_wonder(study, tmp_path):
    def refute(row: dict) -> None:
        row.update(homogeneity_p="1e-12")

    def mend(row: dict) -> None:
        row.update(homogeneity_p="0.5", geometric_p="0.5", lag1_p="0.5")

    calm = changed(study, tmp_path / "calm", "independence", mend)
    heads = changed(calm, tmp_path / "heads", "independence", refute, lambda row: row["drafter"] == "medusa1")
    found = said(heads, tmp_path)
    assert "So α is not one number for these" in found and "For the others this many rounds do not decide." in found
    both = changed(heads, tmp_path / "both", "independence", refute, lambda row: row["drafter"] == "draft")
    assert "So α is not one number here." in said(both, tmp_path)
    alone = changed(calm, tmp_path / "alone", "independence", lambda row: row.update(homogeneity_p="0.0005"), once())
    assert "cannot tell one position's acceptance" in said(alone, tmp_path), "one of many below .001 is chance"


def once():
    """True for the first row that it is asked of."""
    asked = iter([True])
    return lambda row: next(asked, False)


def test_figures_of_few_drafters_stay_figures_of_few(study, text):
    names = read_texts("en")["names"]["drafter"]
    tokens = cells(text, "gamma-tokens")
    assert {row[1] for row in tokens} == {names[name] for name in ("draft", "draft_dynamic", "mtp", "ngram", "lookup")}
    assert {row[1] for row in cells(text, "ledger-ledger")} > {names[name] for name in HEADS}
    assert re.search(r"\d+ more rows of heads and trees: see the CSV", Reader(text).said)


def test_the_page_stays_small_and_carries_every_table(text):
    assert len(text.encode("utf-8")) < 3_000_000
    assert "data-whole" in text, "each table is in the page, so that one file can hold them all"


def test_tables_are_in_the_page_as_long_as_there_is_room(study):
    document, found = report.build(study.results, study.figures, study.about)
    for room in (10_000_000, 30_000, 0):
        links = page.links(document.downloads, found.results, room)
        assert [link.name for link in links] == [item.name for item in document.downloads]
        assert sum(len(link.url) for link in links) <= room
        assert all(link.url for link in links) == (room == 10_000_000)


def test_it_is_all_there_in_chinese_and_on_paper(study, tmp_path):
    found = Made(study.results, study.figures, in_chinese(study)).page(tmp_path)
    assert english_left(found) == []
    document, _ = report.build(study.results, study.figures, study.about)
    sheet = paper.sheet(document, None)
    folds = {section["id"]: section["folds"] for section in sheet["document"]["sections"]}
    kinds = {topic: [block["kind"] for fold in found for block in fold["blocks"]] for topic, found in folds.items()}
    assert kinds["trees"].count("figure") == 2 and kinds["systems"].count("table") == 2
    paper.render(study.results, study.figures, study.about, tmp_path / "report.pdf")
    assert (tmp_path / "report.pdf").read_bytes().startswith(b"%PDF")


def test_one_seed_and_no_shape_that_was_timed(tmp_path):
    made = make(tmp_path / "study", (4,), heads=True)
    said = Reader(made.page(tmp_path)).said
    assert "NaN" not in said and "None" not in said
    for name in ("trees", "ranks", "typical"):
        path = made.results / "tables" / f"{name}.csv"
        path.write_text(path.read_text(encoding="utf-8").splitlines()[0] + "\n", encoding="utf-8")
    draw_all(made.results, made.figures)
    found = made.page(tmp_path)
    assert '<section id="trees"' in found and 'id="trees-trees"' not in found


def test_every_drafter_that_a_study_may_name_has_its_place_and_its_words():
    names = [name for name in ORDER if name not in ENGINES]
    asked = set(methods(yaml.safe_load((ROOT / "config" / "config.yaml").read_text(encoding="utf-8"))))
    assert asked <= set(names)
    for language in languages():
        assert set(names) <= set(read_texts(language)["names"]["drafter"]), language


def test_every_system_of_the_claims_file_is_translated(study):
    systems = {row["system"]: row for row in rows_of(study, "systems")}
    for language in set(languages()) - {"en"}:
        words = read_wording(language, {})
        assert set(words.raw("claims.systems")) == set(systems)
        for row in systems.values():
            said = [views_systems.told(words, row, part) for part in ("title", "published", "setting", "comparable")]
            assert all(said) and said[2] != row["setting"], row["system"]
            numbers = re.findall(r"\d+\.\d+", row["published"])
            assert all(one in said[1] for one in numbers), row["system"]


def test_sizes_are_nodes_of_trees_and_gammas_of_chains():
    words = read_wording("en", {})
    assert words.size("eagle_tree", 8) == "8 nodes" and words.size("eagle", 2) == "γ = 2"
    assert branched("medusa1_typical") and words.told("largest of 9 rows (cached, eagle_tree, gamma 8)").endswith(
        "(EAGLE tree, 8 nodes, cached)"
    )
