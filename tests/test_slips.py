"""Slips of printing, each as a kind: no page, paper, log or last line of a run may make one of them again."""

import html
import os
import re

import pytest
from specledger.foundation import progress
from specledger.foundation.view import written_since
from specledger.reporting import formats, inline
from specledger.reporting.appendix import dotted
from test_reporting import make

PLURAL = re.compile(
    r"(?<![–=×+−-] )(?<![\w.,–=×+−-])1 (?:were|are|have|rows|tests|texts|rules|seeds|tokens|positions|characters)\b"
)


def test_settings_are_printed_as_they_are_typed():
    config = {"sampling": [{"temperature": 1, "top_k": None, "greedy": False}], "name": "quick", "seeds": [1, 2]}
    assert dotted(config) == [
        "sampling = [{temperature: 1, top_k: –, greedy: false}]",
        'name = "quick"',
        "seeds = [1, 2]",
    ]


@pytest.mark.parametrize(("count", "said"), [("1", "1 test was"), ("0", "0 tests were"), ("1,200", "1,200 tests were")])
def test_a_count_of_one_is_singular(count, said):
    assert inline.filled("{n:test was|tests were}", {"n": count}) == said


def test_no_page_counts_one_in_the_plural(tmp_path):
    made = make(tmp_path / "study", (1,), heads=True)
    text = re.sub(r"<(script|style|svg|pre)\b.*?</\1>", "", made.page(tmp_path), flags=re.DOTALL)
    said = " ".join(html.unescape(re.sub(r"<[^>]+>", " | ", text)).split())
    assert PLURAL.findall("x 1 rows, 1 were") == ["1 rows", "1 were"]
    assert PLURAL.findall(said) == []


def test_two_ends_of_a_range_differ_where_their_values_do():
    assert formats.between(0.4899, 0.4923, formats.times) == ("0.490×", "0.492×")
    assert formats.between(0.49, 0.49) == ("0.49", "0.49")
    assert formats.interval(1.8181, 1.8187, decimals=2) == "[1.818, 1.819]"


def test_many_digits_are_a_power_of_ten():
    assert formats.times(1_364_067_458_999_999_959.0) == "1.36\u00a0×\u00a010¹⁸×"
    assert formats.interval(-2.5e7, 3.25e9) == "[−2.50\u00a0×\u00a010⁷, 3.25\u00a0×\u00a010⁹]"
    assert formats.whole(1_115_394) == "1,115,394" and formats.number(999_999.4, 1) == "999,999.4"


def test_a_run_names_only_the_report_that_it_made(tmp_path):
    old, new, none = (tmp_path / name for name in ("old", "new", "none"))
    for path, moment in ((old, 100), (new, 300)):
        path.write_text("x")
        os.utime(path, (moment, moment))
    assert written_since(200, old, new, none) == [new]


def test_progress_never_passes_its_end(monkeypatch):
    monkeypatch.setattr(progress, "VIEW_EVERY_S", 0)

    class Log:
        viewed, lines = True, []

        def write(self, line: str) -> None:
            self.lines.append(line)

    with progress.Progress("sweep", 2, Log()) as steps:
        for _ in range(4):
            steps.advance()
    assert [line.split()[2] for line in Log.lines[:4]] == ["1/2", "2/2", "3/3", "4/4"]
    assert all(" -" not in line and "−" not in line for line in Log.lines)
