"""The report from made-up results: complete, bounded, the same bytes, and never more than the files say."""

import csv
import html
import io
import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote_to_bytes

import pytest
from specledger.foundation.drafters import IN_ORDER
from specledger.foundation.errors import UserError
from specledger.reporting import formats, inline, labels, page, paper, report, takeaway
from specledger.reporting.figures import draw_all
from specledger.reporting.wording import read_wording
from synthetic import write_synthetic_study

ROOT = Path(__file__).resolve().parent.parent
VOID = {"meta", "link", "br", "img", "input", "hr"}


@dataclass(frozen=True)
class Made:
    results: Path
    figures: Path
    about: dict

    def page(self, folder: Path, **changes: object) -> str:
        output = folder / "index.html"
        page.render(self.results, self.figures, {**self.about, **changes}, output)
        return output.read_text(encoding="utf-8")

    def copy(self, folder: Path) -> "Made":
        shutil.copytree(self.results, folder)
        return Made(folder, folder / "figures", self.about)


def make(folder: Path, seeds: tuple[int, ...], figures: Path | None = None, **options: object) -> Made:
    """A made-up study; with `figures` those of another one stand in, where they are not what is tested."""
    about = write_synthetic_study(folder, seeds, **options)
    if figures is None:
        draw_all(folder, folder / "figures")
    return Made(folder, figures or folder / "figures", about)


@pytest.fixture(scope="module")
def study(tmp_path_factory) -> Made:
    return make(tmp_path_factory.mktemp("results") / "study", (1, 2, 3))


@pytest.fixture(scope="module")
def text(study, tmp_path_factory) -> str:
    return study.page(tmp_path_factory.mktemp("page"))


class Reader(HTMLParser):
    """Ids, addresses with the tags that hold them, open tags, and the visible text."""

    def __init__(self, content: str):
        super().__init__()
        self.ids, self.addresses, self.open, self.words = [], [], [], []
        self.scripts = 0
        self.feed(content)
        self.close()

    def handle_starttag(self, tag, attributes):
        found = dict(attributes)
        self.scripts += tag == "script"
        self.ids += [found["id"]] if "id" in found else []
        for name in ("href", "src", "xlink:href", "srcset", "action", "poster", "data"):
            if found.get(name):
                self.addresses.append((tag, found[name]))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.handle_starttag(tag, attributes)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        assert self.open and self.open.pop() == tag, f"</{tag}> closes another element"

    def handle_data(self, data):
        if self.open and self.open[-1] not in ("script", "style"):
            self.words.append(data)

    @property
    def said(self) -> str:
        return " ".join(" ".join(self.words).split())


def test_the_same_results_give_the_same_bytes(study, tmp_path):
    draw_all(study.results, tmp_path / "figures")
    for path in sorted(study.figures.glob("*.svg")):
        assert path.read_bytes() == (tmp_path / "figures" / path.name).read_bytes(), path.name
    for name, renderer in (("index.html", page), ("report.pdf", paper)):
        outputs = [tmp_path / "one" / name, tmp_path / "two" / name]
        for output in outputs:
            renderer.render(study.results, study.figures, study.about, output)
        assert outputs[0].read_bytes() == outputs[1].read_bytes(), name


def test_the_page_is_well_formed_and_fetches_nothing(text):
    found = Reader(text)
    assert found.open == []
    assert len(found.ids) == len(set(found.ids)), "an id comes twice"
    for tag, address in found.addresses:
        inside = address.startswith(("#", "data:"))
        assert inside or (tag == "a" and address.startswith("https://arxiv.org/")), (tag, address)
    for address in (address for _, address in found.addresses if address.startswith("#")):
        assert address[1:] in found.ids, f"{address} leads nowhere"
    style = text[text.index("<style>") : text.index("</style>")]
    assert "url(" not in style and "@import" not in style
    assert '<meta charset="utf-8">' in text and '<html lang="en">' in text


def test_no_missing_value_is_printed_as_a_word_of_a_programming_language(text):
    said = Reader(text).said
    for word in ("NaN", "None", "null", "undefined", "Undefined"):
        assert not re.search(rf"(?<![\w.-]){word}(?![\w.-])", said), word
    assert not re.search(r"\{\w+\}", said)


def test_every_section_is_there_with_its_questions_and_references(text):
    said = Reader(text).said
    for name in ("verify", "accept", "gamma", "mtp", "ledger", "time"):
        assert f'<section id="{name}"' in text, name
    for name in ("glossary", "intervals", "provenance", "downloads", "cite", "references"):
        assert f'<details class="fold" id="{name}"' in text, name
    for number in ("2211.17192", "2302.01318", "2412.19437", "2404.19737", "2401.10774", "2401.15077"):
        assert f"arxiv.org/abs/{number}" in text, number
    for word in ("Medusa", "EAGLE", "Gloeckle", "window", "sliding", "greedy", "KV cache"):
        assert word in said, word


def cells(text: str, view: str) -> list[list[str]]:
    """The rows of a table by its id, as the words of their cells."""
    part = text[text.index(f'id="{view}"') :]
    body = part[part.index("<tbody>") : part.index("</tbody>")]
    rows = re.findall(r"<tr>(.*?)</tr>", body, flags=re.DOTALL)
    inner = [re.findall(r"<td.*?</td>", row, flags=re.DOTALL) for row in rows]
    return [[re.sub(r"<small>.*?</small>|<[^>]+>", "", cell) for cell in row] for row in inner]


def test_numbers_of_the_ledger_equal_the_table(study, text):
    shown = cells(text, "ledger-ledger")
    with (study.results / "tables" / "ledger.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(shown) == len(rows) == 60
    for cell, row in zip(shown, rows, strict=True):
        assert cell[2] == row["gamma"]
        assert cell[3] == (f"{float(row['alpha']):.3f}" if row["alpha"] else "–")
        assert cell[8] == f"{float(row['speedup']):.2f}×"
        assert cell[9] == (f"{float(row['theorem38']):.2f}×" if row["theorem38"] else "–")


def test_both_renderings_hold_the_same_cells(study, text, tmp_path):
    document, _ = report.build(study.results, study.figures, study.about)
    sheet = json.dumps(paper.sheet(document, None), ensure_ascii=False)
    for row in cells(text, "gamma-tokens")[:8] + cells(text, "claims-claims_measurement"):
        for cell in row:
            assert json.dumps(cell.replace("&#39;", "'"), ensure_ascii=False) in sheet, cell


def test_downloads_are_the_files_to_the_byte(study, text):
    links = re.findall(r'<a download="(\w+)\.csv" href="data:text/csv;charset=utf-8,([^"]*)"', text)
    assert [name for name, _ in links] == [*takeaway.DOWNLOADS, takeaway.DICTIONARY]
    for name, content in links:
        there = (study.results / "tables" / f"{name}.csv").read_bytes() if name in takeaway.DOWNLOADS else None
        assert unquote_to_bytes(html.unescape(content)) == (there or takeaway.dictionary())


def test_each_warning_has_its_banner(study, text, tmp_path):
    assert 'id="banner-' not in text
    found = study.page(
        tmp_path, quick=True, stale=["sweep of seed 2: other code"], missing=["seed 9"], mixed=["two devices: A, B"],
        devices=["AMD EPYC 7B12"],
    )  # fmt: skip
    for name in ("stale", "missing", "mixed", "quick", "cpu"):
        assert f'id="banner-{name}"' in found, name
    for line in ("sweep of seed 2: other code", "seed 9", "two devices: A, B", "AMD EPYC 7B12"):
        assert line in found


def test_a_fallback_corpus_is_loud_and_nothing_is_compared(study, tmp_path):
    made = make(tmp_path / "study", (1, 2), study.figures, tiny_shakespeare=False)
    found = made.page(tmp_path)
    assert 'class="banner alarm" id="banner-fallback"' in found
    assert "What was not reproduced" not in found and 'class="scoreboard"' not in found
    said = Reader(found).said
    assert "The corpus could not be downloaded" in said and "no verdicts on reported values" in said
    paper.render(made.results, made.figures, made.about, tmp_path / "report.pdf")


def test_one_seed_says_so_and_its_interval_is_of_its_blocks(tmp_path):
    made = make(tmp_path / "study", (5,))
    found = made.page(tmp_path)
    said = Reader(found).said
    assert 'id="banner-seed"' in found and "bootstrap over the 3 blocks of one seed" in said
    assert "NaN" not in said and "None" not in said
    paper.render(made.results, made.figures, made.about, tmp_path / "report.pdf")
    assert (tmp_path / "report.pdf").read_bytes().startswith(b"%PDF")


def test_hostile_text_stays_text(tmp_path):
    made = make(tmp_path / "study", (1,), corpus_tail='</script><script>alert("1")</script>\'&<b>*x*{y}汉 ')
    about = {**made.about, "study": "</title><script>", "stale": ["<img src=x onerror=alert(1)>"]}
    page.render(made.results, made.figures, about, tmp_path / "index.html")
    text = (tmp_path / "index.html").read_text(encoding="utf-8")
    found = Reader(text)
    carried = len(re.findall(r'<form class="explorable"', text))
    assert found.scripts == 3 + len(page.SCRIPTS) + carried, "only the page's own scripts"
    assert found.open == []
    assert "<img src=x onerror=alert(1)>" in found.said
    paper.render(made.results, made.figures, about, tmp_path / "report.pdf")


def test_empty_cells_are_dashes(study, tmp_path):
    made = study.copy(tmp_path / "study")
    path = made.results / "tables" / "ledger.csv"
    rows = list(csv.reader(io.StringIO(path.read_text(encoding="utf-8"))))
    emptied = "alpha alpha_lo alpha_hi wall_s speedup_lo speedup_hi theorem38 cost_model c v eq1".split()
    for name in emptied:
        for row in rows[1:]:
            row[rows[0].index(name)] = "nan" if name == "c" else ""
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows(rows)
    draw_all(made.results, made.figures)
    shown = cells(made.page(tmp_path), "ledger-ledger")
    assert {row[3] for row in shown} == {row[11] for row in shown} == {"–"}
    paper.render(made.results, made.figures, made.about, tmp_path / "report.pdf")


def test_five_times_the_seeds_keep_the_page_small(tmp_path):
    made = make(tmp_path / "study", tuple(range(1, 41)))
    found = made.page(tmp_path)
    assert len(found.encode("utf-8")) < 3_000_000
    assert "acceptance.csv" in found


def test_a_missing_file_is_named(study, tmp_path):
    made = study.copy(tmp_path / "study")
    for part in ("figures/wall_clock.svg", "tables/time.csv", "acceptance/1/position.json", "sweep/1/sample.json"):
        (made.results / part).rename(made.results / "away")
        for renderer in (page, paper):
            with pytest.raises(UserError, match=re.escape(part)):
                renderer.render(made.results, made.figures, made.about, tmp_path / "output")
        (made.results / "away").rename(made.results / part)
    (made.results / "models/draft/2/history.csv").unlink()
    with pytest.raises(UserError, match=r"history\.csv"):
        draw_all(made.results, made.figures)
    (made.results / "tables/claims.csv").write_text("claim,title\n", encoding="utf-8")
    with pytest.raises(UserError, match=r"claims\.csv: column \w+ is missing"):
        made.page(tmp_path)


def test_the_pdf_has_its_fonts_and_letters(study, tmp_path):
    output = tmp_path / "report.pdf"
    paper.render(study.results, study.figures, study.about, output)
    content = output.read_bytes()
    assert content.startswith(b"%PDF") and len(content) < 3_000_000
    if not shutil.which("pdffonts") or not shutil.which("pdftotext"):
        pytest.skip("pdffonts and pdftotext (poppler-utils) are not installed")
    run = {"capture_output": True, "text": True, "encoding": "utf-8", "check": True}
    fonts = subprocess.run(["pdffonts", str(output)], **run).stdout.splitlines()[2:]
    assert fonts and all(line.split()[-5] == "yes" for line in fonts), "a font is not embedded"
    said = subprocess.run(["pdftotext", str(output), "-"], **run).stdout
    for letter in ("α", "γ", "χ²", "β", "✓", "✗", "≠", "−", "×", "Σ"):
        assert letter in said, letter
    assert "\ufffd" not in said and "\u25a1" not in said


def test_it_works_in_the_c_locale(study, tmp_path):
    code = (
        "import json, sys; from pathlib import Path; from specledger.reporting import figures, page, paper;"
        "r, a, o = Path(sys.argv[1]), json.loads(sys.argv[2]), Path(sys.argv[3]);"
        "figures.draw_all(r, o / 'figures'); page.render(r, o / 'figures', a, o / 'index.html');"
        "paper.render(r, o / 'figures', a, o / 'report.pdf')"
    )
    environment = {**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    environment["PYTHONPATH"] = str(ROOT / "workflow")
    arguments = [str(study.results), json.dumps(study.about), str(tmp_path)]
    subprocess.run([sys.executable, "-c", code, *arguments], env=environment, check=True, timeout=60)
    for name, renderer in (("index.html", page), ("report.pdf", paper)):
        renderer.render(study.results, study.figures, study.about, tmp_path / "here")
        assert (tmp_path / name).read_bytes() == (tmp_path / "here").read_bytes(), name


@pytest.mark.parametrize(
    ("shown", "expected"),
    [
        (formats.number(-0.0001, 2), "0.00"),
        (formats.number(-1.5, 1), "−1.5"),
        (formats.number(float("nan")), "–"),
        (formats.number(float("inf")), "∞"),
        (formats.whole(1115394), "1,115,394"),
        (formats.small(2.4e-6, 4), "2.4\u00a0×\u00a010⁻⁶"),
        (formats.small(0.0, 1), "0.0"),
        (formats.reading(0.741), "0.7410"),
        (formats.reading(742784.0), "742,784"),
        (formats.times(None), "–"),
        (formats.p_value(0.0), "< 10⁻³⁰⁰"),
        (formats.milliseconds(0.000836), "0.836"),
        (read_wording("en", {}).duration(3599.9), "1 h"),
        (read_wording("en", {}).duration(4860), "1 h 21 min"),
        (read_wording("zh", {}).duration(4860), "1 小时 21 分钟"),
        (read_wording("zh", {}).duration(59.7), "1 分钟"),
        (read_wording("en", {}).duration(None), "–"),
        (formats.runs([3, 1, 2, 7]), "1–3, 7"),
        (formats.symbol("\n"), "↵"),
    ],
)
def test_numbers_in_words(shown, expected):
    assert shown == expected


def test_values_never_become_markup():
    spans = inline.parse("see *{name}* and [it](https://x.org/a)", {"name": "**bold** <b>"})
    assert [(span.kind, span.text) for span in spans] == [
        ("text", "see "), ("em", "**bold** <b>"), ("text", " and "), ("link", "it"),
    ]  # fmt: skip


def test_names_in_figures_are_those_of_the_texts():
    words = read_wording("en", {})
    assert set(IN_ORDER) < set(words.raw("names.drafter")) and set(labels.PARTS) == set(words.raw("names.part"))


def test_an_unknown_language_lists_those_that_there_are(study, tmp_path):
    about = {**study.about, "config": {"report": {"language": "xx"}}}
    with pytest.raises(UserError, match="allowed: en"):
        page.render(study.results, study.figures, about, tmp_path / "index.html")
