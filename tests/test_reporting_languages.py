"""Every language says everything: the same keys, the same values quoted, nothing left empty; the page and the paper."""

import re
import shutil
import string
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest
import yaml
from specledger.analysis import rules
from specledger.reporting import fonts, inline, page, paper, views_claims
from specledger.reporting.figures import draw_all
from specledger.reporting.wording import TEXTS, languages, read_texts, read_wording
from specledger.statistics import intervals
from specledger.statistics.paired import paired_log_interval
from test_reporting import Made, Reader, make

from benchmarks import common

ROOT = Path(__file__).resolve().parent.parent
OTHERS = [language for language in languages() if language != "en"]
# Of config/claims.yaml, and of what result files say.
TRANSLATIONS = {"claims.titles", "claims.notes", "claims.phrases", "claims.patterns", "claims.systems", "said.patterns"}
ENGLISH = re.compile(r"[A-Za-z]{3,} [a-z]{3,}")  # two words in a row
KEPT = ("tiny shakespeare", "AMD EPYC", "Intel Xeon", "apt install")  # names
FIXTURE = (
    "judged by its rule",
    "one rejection in 100 accepted",
    "draft logits in bf16",
    "noble lord, and",
)  # said by made-up tables


def leaves(texts: object, path: str = "") -> dict[str, object]:
    """Every text by its dotted key; translations of the claims file apart."""
    if path in TRANSLATIONS:
        return {}
    if isinstance(texts, Mapping):
        found: dict[str, object] = {}
        for key, value in texts.items():
            found |= leaves(value, f"{path}.{key}".lstrip("."))
        return found
    if isinstance(texts, list) and texts and isinstance(texts[0], Mapping):
        return leaves(dict(enumerate(texts)), path)
    return {path: texts}


def quoted(text: object) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(str(text)) if name is not None}


def terms(text: object) -> set[str]:
    """Words that a text leads to."""
    return set(re.findall(r"\]\((#[\w-]+)\)", str(text)))


@pytest.mark.parametrize("language", OTHERS)
def test_a_language_has_every_text_and_nothing_empty(language):
    english, other = leaves(read_texts("en")), leaves(read_texts(language))
    assert sorted(english) == sorted(other)
    for key, text in other.items():
        assert text not in ("", []) or (language, key) == ("zh", "page.sentence_joint"), f"{language}: {key} is empty"


@pytest.mark.parametrize("language", OTHERS)
def test_a_language_quotes_the_same_values(language):
    english, other = leaves(read_texts("en")), leaves(read_texts(language))
    for key, text in english.items():
        assert quoted(other[key]) == quoted(text), f"{language}: {key}"
        if isinstance(text, list):
            assert other[key] == text, f"{language}: {key} is a list of keys"


@pytest.mark.parametrize("language", languages())
def test_terms_lead_to_words_that_are_explained(language):
    texts = read_texts(language)
    for key, text in leaves(texts).items():
        for address in terms(text):
            if address.startswith("#word-"):
                assert address.removeprefix("#word-") in texts["words"], f"{language}: {key} leads to {address}"


def test_files_of_a_language_are_those_of_english():
    names = {path.name for path in (TEXTS / "en").iterdir()}
    for language in OTHERS:
        assert {path.name for path in (TEXTS / language).iterdir()} == names, language


@pytest.mark.parametrize("language", OTHERS)
def test_every_published_reading_is_translated(language):
    file = yaml.safe_load((ROOT / "config" / "claims.yaml").read_text(encoding="utf-8"))
    readings, claims = file["claims"], read_texts(language)["claims"]
    assert {entry["id"] for entry in readings} == set(claims["titles"])
    noted = {reading["id"] for reading in readings if "note" in reading or reading["comparable"] is not True}
    assert noted == set(claims["notes"])
    for reading in readings:
        numbers = re.findall(r"\d+(?:\.\d+)?", reading["title"])
        missing = [one for one in numbers if one not in claims["titles"][reading["id"]].replace("万", "")]
        assert not missing or reading["id"].startswith("parameters"), (reading["id"], missing)


@pytest.mark.parametrize("language", OTHERS)
def test_every_rule_of_a_reading_is_translated(language):
    file = yaml.safe_load((ROOT / "config" / "claims.yaml").read_text(encoding="utf-8"))
    words = read_wording(language, {})
    for entry in file["claims"]:
        shown = [rules.describe(entry["rule"], entry.get("published"))] + [entry["unit"]] * ("published" in entry)
        for text in shown:
            assert not ENGLISH.search(views_claims.phrase(words, text)), (entry["id"], text)


def told_in_results() -> list[str]:
    """What the analysis, the benchmarks and the engines say in words of their own."""
    row = " (compiled, draft_dynamic, gamma 4)"
    pairs = [paired_log_interval(logs).method for logs in ([[0.1, 0.2]], [[0.1], [0.3]], [[0.1, 0.2], [0.3]])]
    means = [intervals.t_interval([1, 2]), intervals.paired_t_interval([1, 2], [3, 5])]
    methods = [*pairs, *(found.method for found in means), intervals.exp_t_interval([0.1, 0.2]).method]
    return [
        *methods,
        f"{pairs[1]}, of the fastest row{row}, 95%, n = 2",
        f"largest of 57 rows{row}",
        f"{pairs[1]}, 95%, dearest of 6{row}",
        f"{pairs[1]}, of the drafter that gains most (parallel, 8 nodes; v(N) rules it out for 3 of 7 drafters)",
        "parts overlap: the least is -0.1 of 57 rows",
        "exact, 2 of 3 engines",
        "none, n = 1",
        f"{common.METHOD}, n = 12 blocks",
        "no C++ compiler found; install one (Debian: apt install g++), or set CXX",
        "PyTorch lies in a folder whose name has a space (/a b); install it in another",
        "sweep/2: made with other settings and code and text and n-gram and model mtp than the study's",
        "sweep/2: runs.csv, engines.csv changed after the run that wrote it",
        "peers/peers.csv: its certificate doesn't say which mtp, text it was made with",
        "peers/training_speed.csv: made with other training settings of mtp than the study's",
        "threads: 1, 2",
    ]


@pytest.mark.parametrize("language", OTHERS)
def test_what_results_say_is_told_in_the_language(language):
    words = read_wording(language, {})
    for text in told_in_results():
        assert not ENGLISH.search(re.sub("|".join(KEPT), "", words.told(text))), (text, words.told(text))
    assert "γ = 4" in words.told(told_in_results()[7]) and "draft_dynamic" not in words.told(told_in_results()[7])


def test_in_english_results_are_told_as_they_are():
    words = read_wording("en", {})
    assert words.told("t over seeds, 95%, n = 3") == "t over seeds, 95%, n = 3"
    assert words.told("largest of 57 rows (cached, ngram, gamma 6)") == "largest of 57 rows (n-gram, γ = 6, cached)"


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Made:
    return make(tmp_path_factory.mktemp("results") / "study", (1, 2))


def in_chinese(made: Made) -> dict:
    return {**made.about, "config": {**made.about["config"], "report": {"language": "zh"}}}


def pdf_text(path: Path) -> str:
    if not shutil.which("pdftotext"):
        pytest.skip("pdftotext (poppler-utils) is not installed")
    run = {"capture_output": True, "text": True, "encoding": "utf-8", "check": True}
    return subprocess.run(["pdftotext", str(path), "-"], **run).stdout


def english_left(page: str) -> list[str]:
    """Lines of a page in which two English words follow each other, but for what isn't the report's to say."""
    body = re.sub(r"<(script|style|svg|pre)\b.*?</\1>", "", page, flags=re.DOTALL)
    for part in (
        r'<ul class="references">.*?</ul>',
        r'<div class="text">.*?</div>',
        r'<table class="dots">.*?</table>',
    ):
        body = re.sub(part, "", body, flags=re.DOTALL)  # titles of papers, the generated text, the fixture's own faults
    lines = [re.sub("|".join(KEPT + FIXTURE), "", re.sub(r"<[^>]+>", " ", line)) for line in body.splitlines()]
    return [line.strip() for line in lines if ENGLISH.search(line)]


def test_the_page_in_chinese_is_chinese_and_its_english_figures_are_named(made, tmp_path):
    page.render(made.results, made.figures, in_chinese(made), tmp_path / "index.html")
    text = (tmp_path / "index.html").read_text(encoding="utf-8")
    said = Reader(text).said
    assert '<html lang="zh-CN">' in text and "推测解码，以实测定论" in said and "已报告的数值" in said
    assert "插图里的文字是英文" in said, "the fixture's figures were drawn in English"
    left = [word for word in ("reproduced", "whole interval", "Rule:", "Questions", "speed-up") if word in said]
    assert left == [], "English words are left"
    assert english_left(text) == []
    assert not re.search(r"\{\w+\}", said)


def test_figures_and_paper_in_chinese_with_a_font_of_the_machine(made, tmp_path):
    if fonts.for_figures("zh") is None:
        pytest.skip("no font with Chinese letters on this machine (fonts-noto-cjk has one)")
    assert draw_all(made.results, tmp_path / "figures", "zh") == "zh"
    for name in ("index.html", "report.pdf", "again.pdf"):
        (page if name == "index.html" else paper).render(
            made.results, tmp_path / "figures", in_chinese(made), tmp_path / name
        )
    assert "插图里的文字是英文" not in (tmp_path / "index.html").read_text(encoding="utf-8")
    assert (tmp_path / "report.pdf").read_bytes() == (tmp_path / "again.pdf").read_bytes()
    said = pdf_text(tmp_path / "report.pdf")
    for word in ("推测解码", "草稿模型", "接受率", "奖励词元"):
        assert word in said.replace("\n", ""), word
    assert "\ufffd" not in said and "\u25a1" not in said
    lines = subprocess.run(["pdffonts", str(tmp_path / "report.pdf")], capture_output=True, text=True, check=True)
    listed = lines.stdout.splitlines()[2:]
    assert listed and all(line.split()[-5] == "yes" for line in listed), "a font is not embedded"


def test_without_a_font_figures_and_paper_are_english_and_say_so(made, tmp_path, monkeypatch):
    monkeypatch.setattr(fonts, "_of_the_machine", tuple)
    assert draw_all(made.results, tmp_path / "figures", "zh") == "en"
    paper.render(made.results, tmp_path / "figures", in_chinese(made), tmp_path / "report.pdf")
    said = " ".join(pdf_text(tmp_path / "report.pdf").split())
    assert "Speculative decoding, settled by measurement" in said
    assert "This paper is in English: no font with Chinese letters was found" in said and "\ufffd" not in said


def test_a_chinese_corpus_is_printed_in_an_english_paper(tmp_path):
    found = make(tmp_path / "study", (1,), corpus_tail="汉字 ")
    found.page(tmp_path)
    assert "汉字" in (tmp_path / "index.html").read_text(encoding="utf-8")
    paper.render(found.results, found.figures, found.about, tmp_path / "report.pdf")
    said = pdf_text(tmp_path / "report.pdf")
    if fonts.for_paper() is None:
        assert "\ufffd" in said and "Characters that the fonts of this paper lack" in " ".join(said.split())
    else:
        assert "汉字" in said and "\ufffd" not in said


def test_values_are_parted_from_chinese_letters_and_from_nothing_else():
    values = {"drafter": "n-gram", "n": 3, "verdict": "α", "text": "中a"}
    said = inline.filled("是{drafter}，在 {n} 处{verdict}：“{text}”", values)
    assert said == "是 n-gram，在 3 处 α：“中a”"
    assert inline.filled("滑块停在{a}最快", {"a": "草稿模型"}) == "滑块停在草稿模型最快"
    assert inline.filled("the {a}'s", {"a": "draft"}) == "the draft's"
    with pytest.raises(KeyError):
        inline.filled("{lacking}", {})
