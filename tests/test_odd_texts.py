"""Any text that a corpus may hold comes back equal through every table and download, and can be shown on every page."""

import csv
import io
import json
import re
import urllib.parse
from xml.etree import ElementTree

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from specledger.analysis.columns import read_table as observed
from specledger.analysis.tables import write_csv
from specledger.corpus.text import Vocabulary
from specledger.foundation.records import read_json, read_rows, write_json, write_rows
from specledger.reporting import page, paper, report
from specledger.reporting.figures import draw_all
from specledger.reporting.tables import read_table
from specledger.reporting.takeaway import tidy
from synthetic import write_synthetic_study

NASTY = [
    "\r", "a\rb", "a\r", "\r\n", "\n", "\n\r", "\x00", "\x1a", "\x1b[31m", "\x85", "\u2028", "\u2029", "\ufeff",
    "\u202e", '"', '""', ",", ";", "'", "\\", "NA", "nan", "null", "None", "true", "001", "1e5", "inf", "-0", " ",
    " x ", "\t",
    "#let x = 1", "$x$", "*b*", "@a", "</script>", "<!--", "]]>", "&amp;", "{{ x }}", "=1+1", "\U0001f600", "e\u0301",
    "\ufffe", "\U0010ffff", "\x0b\x0c\x1c\x1d\x1e",
]  # fmt: skip
# All that UTF-8 can hold; most often what means something to a reader of CSV, HTML, JSON or Typst.
TEXTS = st.lists(st.sampled_from(NASTY) | st.text(st.characters(exclude_categories=["Cs"]))).map("".join).filter(bool)


def through_csv(texts: list[str], folder) -> dict[str, list]:
    """The texts as each of our readers finds them in a table."""
    path, other = folder / "raw.csv", folder / "acceptance.csv"
    rows = [{"seed": 1, "context": text, "beta": 0.5} for text in texts]
    write_rows(path, rows)
    write_csv(pd.DataFrame(rows), other)
    assert path.read_bytes() == other.read_bytes()
    assert [name for name in ("seed", "context") if name in observed(path, ["beta"])] == ["seed", "context"]
    table = read_table(other, "context beta")
    whole = list(csv.DictReader(io.StringIO(tidy([("acceptance", table.content)]).decode("utf-8"), newline="")))
    url = page.data_url(table.content).partition(",")[2]
    link = csv.DictReader(io.StringIO(urllib.parse.unquote_to_bytes(url).decode("utf-8"), newline=""))
    return {
        "raw": observed(path, ["context"])["context"].tolist(),
        "rows": [row["context"] for row in read_rows(path)],
        "table": [row["context"] for row in table.rows],
        "everything.csv": [row["value"] for row in whole if row["column"] == "context"],
        "link": [row["context"] for row in link],
    }


@settings(max_examples=60)
@given(texts=st.lists(TEXTS, min_size=1, max_size=4))
def test_any_text_comes_back_equal_from_every_table(texts, tmp_path_factory):
    folder = tmp_path_factory.mktemp("tables")
    for reader, found in through_csv(texts, folder).items():
        assert found == texts, reader


@pytest.mark.parametrize("text", NASTY, ids=[f"{text!r:.12}" for text in NASTY])
def test_each_of_these_comes_back_alone(text, tmp_path):
    for reader, found in through_csv([text, text], tmp_path).items():
        assert found == [text, text], reader


@settings(max_examples=60)
@given(text=TEXTS)
def test_any_text_comes_back_equal_from_json_and_from_a_script_of_the_page(text, tmp_path_factory):
    path = tmp_path_factory.mktemp("json") / "sample.json"
    write_json(path, {"text": text})
    assert read_json(path)["text"] == text
    symbols = Vocabulary.of(text)
    assert symbols.decode(symbols.encode(text)) == text


def test_a_report_of_odd_texts_is_whole_and_holds_no_character_that_html_lacks(tmp_path):
    """Contexts, symbols, prompt and sample are made of them, and the study is drawn, shown, printed and downloaded."""
    results, text = tmp_path / "study", "".join(NASTY)
    about = write_synthetic_study(results, (1,))
    signs = sorted(set(text))
    for name in ("acceptance/1/position.json", "acceptance/1/round.json"):
        record = read_json(results / name)
        record["symbols"] = [*signs, *record["symbols"]][: len(record["symbols"])]
        for place in record.get("positions", ()):
            place["context"] = text
        write_json(results / name, record)
    sample = read_json(results / "sweep" / "1" / "sample.json")
    sample["prompt"] = text
    for place, token in enumerate(sample["tokens"]):
        token["text"] = signs[place % len(signs)]
    write_json(results / "sweep" / "1" / "sample.json", sample)
    path = results / "tables" / "acceptance.csv"
    write_csv(observed(path, ["context"]).assign(context=text), path)
    about["config"].setdefault("corpus", {})["prompt"] = text

    draw_all(results, results / "figures")
    for figure in (results / "figures").glob("*.svg"):
        ElementTree.parse(figure)
    page.render(results, results / "figures", about, tmp_path / "index.html")
    paper.render(results, results / "figures", about, tmp_path / "report.pdf")
    with (tmp_path / "index.html").open(encoding="utf-8", newline="") as file:
        html = file.read()
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e\ufffe]", html)
    for script in re.findall(r'<script type="application/json"[^>]*>(.*?)</script>', html, re.DOTALL):
        json.loads(script)
    document, _ = report.build(results, results / "figures", about)
    content = next(item.content for item in document.downloads if item.name == "acceptance")
    rows = list(csv.DictReader(io.StringIO(content.decode("utf-8"), newline="")))
    assert rows and all(row["context"] == text for row in rows)
