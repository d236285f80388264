"""The result of an audit as one page: plain HTML that asks for nothing, in light and dark."""

import json
import math
import time
from collections.abc import Sequence
from pathlib import Path

from specledger.audit.settings import SamplingSettings
from specledger.audit.verdicts import Judged, again_of, trusted, whole
from specledger.foundation import pages
from specledger.foundation.version import VERSION

SURE_Z = 2.5  # tokens that part less surely are not shown
HEADLINES = {
    "kept": "The distribution is kept",
    "departs": "The distribution departs",
    "undecided": "Undecided",
}


def number(value: float | None, digits: int = 2) -> str:
    """A number as the page shows it: "–" where there is none, small ones as powers of ten."""
    if value is None or math.isnan(value):
        return "–"
    if math.isinf(value):
        return "∞"
    if value == 0:
        return "0"
    if abs(value) < 1e-3:
        head, _, power = f"{value:.1e}".partition("e")
        return f"{head}·10<sup>{int(power)}</sup>".replace("-", "−")
    return f"{value:.{digits}g}" if abs(value) < 1000 else f"{value:,.0f}"


def p_text(value: float | None) -> str:
    """A p-value; what is too small to be told apart from 0 is said to be below."""
    if value is not None and value < 1e-12:
        return "&lt; 10<sup>−12</sup>"
    return number(value)


def visible(text: str) -> str:
    """A token as a reader can see it: a space as ␣, a line break as ↵."""
    return text.replace(" ", "␣").replace("\n", "↵").replace("\t", "⇥") or "∅"


def sentence(judged: Judged) -> str:
    """One line that says the verdict of a row and what it rests on, without markup."""
    row, near = judged.row, judged.near()
    if row.greedy is not None:
        return f"{judged.verdict}: {judged.why}"
    words = f"{judged.verdict}: {judged.why}; {row.n:,} texts"
    if row.n_again:
        words += f" and {row.n_again:,} from a fresh seed"
    if judged.verdict == "departs" and near is not None and near.tv is not None:
        words += f"; TV {near.tv:.2g} in the first two tokens, where chance gives {near.tv_noise:.2g}"
    return words


def write_page(
    path: Path,
    rows: Sequence[Judged],
    *,
    title: str,
    level: float,
    facts: Sequence[tuple[str, str]] = (),
    notes: Sequence[str] = (),
) -> None:
    """Write the page of a run; facts: (name, value) of what was audited; notes: what a reader must know of it."""
    verdict, several = whole(rows), len({one.row.system for one in rows}) > 1
    pages.write_page(
        path,
        "audit.html.j2",
        {"number": number, "p": p_text, "visible": visible},
        title=title,
        verdict=verdict,
        headline=headline(verdict, rows),
        counts=counts(rows),
        level=level,
        facts=[*facts, ("Level", f"{level:g} after Holm over {sum(len(one.row.first) for one in rows)} tests")],
        notes=notes,
        distrust=trusted(rows),
        rows=[_view(one, place, several) for place, one in enumerate(rows)],
        date=time.strftime("%Y-%m-%d %H:%M"),
    )


def headline(verdict: str, rows: Sequence[Judged]) -> str:
    """The verdict of the run, and of how many rows where they are several."""
    audited = [one.verdict for one in rows if not one.row.control]
    several = verdict == "departs" and len(audited) > 1
    return HEADLINES[verdict] + (f" in {audited.count(verdict)} of {len(audited)} rows" if several else "")


def counts(rows: Sequence[Judged]) -> str:
    """How many rows came out how, and whether the controls came out as they must; one line."""
    audited = [one.verdict for one in rows if not one.row.control]
    found = ", ".join(f"{audited.count(verdict)} {verdict}" for verdict in HEADLINES if verdict in audited)
    controls = [one for one in rows if one.row.control]
    right = sum(one.as_expected for one in controls)
    words = f"{len(audited)} audited {'row' if len(audited) == 1 else 'rows'}{': ' if found else ''}{found}"
    return f"{words}; {right} of {len(controls)} controls as they must be" if controls else words


def _view(judged: Judged, place: int, several: bool) -> dict:
    """What the template shows of a row."""
    row = judged.row
    tests = [
        {
            "evidence": one,
            "p": p,
            "p_holm": p_holm,
            "p_again": again_of(row, one.test),
        }
        for one, p, p_holm in zip(row.first, judged.p_values, judged.p_holm, strict=True)
    ]
    faster = None
    if row.plain_seconds_per_text and row.seconds_per_text:
        faster = row.plain_seconds_per_text / row.seconds_per_text
    return {
        "id": f"row-{place}",
        "several": several,
        "label": f"{row.system}, {row.mode}" if several else row.mode,
        "row": row,
        "judged": judged,
        "sentence": sentence(judged),
        "settings": row.settings.in_words(),
        "near": judged.near(),
        "tests": tests,
        "departing": [one for one in row.shown if judged.verdict != "kept" and abs(one.z) >= SURE_Z],
        "faster": faster,
        "greedy": row.greedy,
        "greedy_rate": row.greedy.interval() if row.greedy else None,
        "prompt": row.prompt or "(none)",
    }


def record(rows: Sequence[Judged], *, level: float) -> dict:
    """The run as JSON: the rows as they were measured, with their verdicts."""
    return {
        "version": VERSION,
        "level": level,
        "verdict": whole(rows),
        "distrust": trusted(rows),
        "rows": [json.loads(json.dumps(one.row.to_json())) | {"verdict": one.verdict, "why": one.why} for one in rows],
    }


def settings_fact(settings: SamplingSettings) -> tuple[str, str]:
    return ("Sampling", f"{settings.in_words()}; {settings.tokens} tokens; seed {settings.seed}")
