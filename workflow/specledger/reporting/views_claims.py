"""The published readings: a scoreboard by kind, and each reading with its rule and the reason of its verdict."""

import re

from specledger.reporting import formats
from specledger.reporting.document import Cell, ClaimGroup, Claims, Tally, Text, View, cell
from specledger.reporting.study import Study
from specledger.reporting.tables import Row
from specledger.reporting.views import GLYPHS, MARKS, columns, verdict, view
from specledger.reporting.views_bounds import bounded, limits_of_unit
from specledger.reporting.wording import Wording

GROUPS = ("identity", "correctness", "measurement", "quoted")
PUBLISHED_TOKENS = 600  # characters of each published text, as config/claims.yaml says


def phrase(words: Wording, text: str | None) -> str:
    """A phrase of the claims file in the report's language, by the table of phrases, else by its patterns."""
    text = text or ""
    known = words.raw("claims.phrases")
    if text in known:
        return known[text]
    for pattern, template in words.raw("claims.patterns"):
        match = re.fullmatch(pattern, text)
        if match:
            return template.format(*(known.get(part, part) for part in match.groups()))
    return text


def title(words: Wording, row: Row) -> str:
    """The reading in a sentence; one that has no translation stays as the claims file says it."""
    return words.raw("claims.titles").get(row["claim"], row["title"])


def reason_of(words: Wording, row: Row) -> str:
    """Why a reading or a goal is judged so, in words; empty where the numbers say it."""
    key = f"claims.reasons.{row['reason']}"
    return words.say(key) if words.has(key) else ""


def _reason(words: Wording, row: Row) -> str:
    """Why the verdict is what it is, without the numbers that stand beside it."""
    note = words.raw("claims.notes").get(row["claim"], row["note"] or "")
    reason = reason_of(words, row)
    said = f"{words.raw('claims.joint')}".join(part for part in (reason, note) if part)
    if not said:
        return ""
    formula = re.match(r"\w+\(|[b-z]\b", said)  # min(p, q) and c keep their small letters
    return words.say("claims.reason", reason=said if formula else said[:1].upper() + said[1:])


def _published(words: Wording, row: Row) -> Cell:
    """The published reading as it was typed, with a true minus sign, and its unit."""
    text, unit = row["published"] or formats.MISSING, phrase(words, row["unit"])
    try:
        value = float(text)
    except ValueError:
        return cell(phrase(words, text), sort=text, note=unit)
    if abs(value) >= 10000:
        text = formats.whole(value)
    return cell(text.replace("-", formats.MINUS), sort=value, note=unit)


def measured(row: Row) -> Cell:
    """Our number, with its interval, cut where the quantity ends."""
    lo, hi, mark = bounded(row["lo"], row["hi"], limits_of_unit(row["unit"]))
    spread = formats.interval(lo, hi, formats.reading)
    return cell(formats.reading(row["measured"]), sort=row["measured"], note=spread + mark if spread else "")


def _row(words: Wording, row: Row) -> tuple[Cell, ...]:
    rule = words.say("claims.rule", rule=phrase(words, row["rule"]))
    notes = [rule] if row["verdict"] != "not comparable" else []
    notes += [_reason(words, row)]
    said = title(words, row)
    return (
        verdict(words, row["verdict"]),
        cell(said, sort=said, note="\n".join(filter(None, notes))),
        _published(words, row),
        measured(row),
        cell(row["section"], sort=row["section"]),
    )


def _view(words: Wording, name: str, rows: list[Row], tally: str = "") -> View:
    heads = columns(words, "verdict claim published measured section")
    options = {"source": "claims", "cards": True, "values": {"tally": tally}}
    return view(words, name, heads, [_row(words, row) for row in rows], **options)


def tally_words(words: Wording, rows: list[Row]) -> str:
    """3 reproduced, 1 inconclusive: the verdicts that there are."""
    counts = {name: sum(row["verdict"] == name for row in rows) for name in GLYPHS}
    said = [words.say("claims.tally", count=n, verdict=words.name("verdict", name)) for name, n in counts.items() if n]
    return words.raw("page.list_joint").join(said)


def _group(words: Wording, name: str, rows: list[Row]) -> ClaimGroup:
    about = words.say(f"claims.groups.{name}.about")
    counts = tuple(str(sum(row["verdict"] == one for row in rows)) for one in GLYPHS)
    shown = _view(words, f"claims_{name}", rows, tally_words(words, rows))
    return ClaimGroup(id=name, title=words.say(f"claims.groups.{name}.title"), about=about, counts=counts, view=shown)


def claims(study: Study, words: Wording) -> Claims | None:
    """The scoreboard and its readings; None where nothing may be compared."""
    rows = study.tables["claims"].rows
    if not rows:
        return None
    refuted = [row for row in rows if row["verdict"] == "not reproduced"]
    by_group = {name: [row for row in rows if (row["group"] or "measurement") == name] for name in GROUPS}
    tiles = [
        Tally(
            verdict=MARKS[name],
            glyph=glyph,
            label=words.name("verdict", name),
            count=str(sum(row["verdict"] == name for row in rows)),
        )
        for name, glyph in GLYPHS.items()
    ]
    return Claims(
        source=words.spans("claims.source"),
        verdicts=tuple(tiles),
        groups=tuple(_group(words, name, found) for name, found in by_group.items() if found),
        refuted=_view(words, "claims_refuted", refuted) if refuted else None,
    )


def readings(study: Study, words: Wording, section: str) -> Text | None:
    """How the published readings of one section came out, in a sentence; None where there are none."""
    rows = study.tables["claims"].where(section=section)
    if not rows:
        return None
    told = words.paragraphs("claims.section", count=len(rows), tally=tally_words(words, rows))
    lengths = {row["tokens"] for row in study.tables["ledger"].rows if row["tokens"]}
    if section in ("3", "5") and lengths and lengths != {PUBLISHED_TOKENS}:
        told += words.paragraphs("claims.lengths", published=PUBLISHED_TOKENS)
    return Text(paragraphs=told)
