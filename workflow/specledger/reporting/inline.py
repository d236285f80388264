"""A little markup inside texts: *emphasis*, **strong**, `code`, [label](address), [term](#word-name), [place](#id).

It is parsed before measured values are put in, so that nothing in a corpus or a name can become markup.
"""

import re
import string
from collections.abc import Mapping
from dataclasses import dataclass

TOKEN = re.compile(
    r"\*\*(?P<strong>[^*]+)\*\*|\*(?P<em>[^*]+)\*|`(?P<code>[^`]+)`|\[(?P<label>[^\]]+)\]\((?P<url>(?:https://|#)[^)\s]+)\)"
)


@dataclass(frozen=True, kw_only=True)
class Span:
    """A stretch of text of one kind: text, strong, em, code; link, term or jump with its address.

    A term leads to its entry among the words, a jump to another place of the report.
    """

    kind: str
    text: str
    url: str = ""


def _kind(url: str) -> str:
    if not url.startswith("#"):
        return "link"
    return "term" if url.startswith("#word-") else "jump"


HAN, LATIN = re.compile(r"[\u4e00-\u9fff]"), re.compile(r"[A-Za-z0-9Α-ω]")


def _parted(before: str, after: str) -> str:
    """A space where Chinese letters meet others, as the texts themselves have it."""
    ends = before[-1:], after[:1]
    return " " if any(HAN.fullmatch(a) and LATIN.fullmatch(b) for a, b in (ends, ends[::-1])) else ""


def _counted(value: object, form: str) -> str:
    one, parted, many = form.partition("|")
    return f"{value} {one if str(value) == '1' else many}" if parted else format(value, form)


def filled(source: str, values: Mapping[str, object]) -> str:
    """The text with `{name}` replaced by values, parted from Chinese letters; KeyError for a name that has no value.

    Names stand alone: `{name}`, `{name:.2f}`, or `{name:test|tests}` for a count and its noun (or verb) in the
    singular and the plural; without attributes, items or conversions.
    """
    text = ""
    for literal, name, form, _ in string.Formatter().parse(source):
        pieces = [literal] if name is None else [literal, _counted(values[name], form or "")]
        for piece in pieces:
            text += _parted(text, piece) + piece
    return text


def parse(source: str, values: Mapping[str, object] | None = None) -> tuple[Span, ...]:
    """The spans of a paragraph, `{name}` replaced by values; KeyError for a name that has no value."""
    spans, end = [], 0

    def add(kind: str, text: str, url: str = "") -> None:
        said = filled(text, values) if values is not None else text
        if said:
            spans.append(Span(kind=kind, text=said, url=url))

    source = " ".join(source.split())
    for match in TOKEN.finditer(source):
        add("text", source[end : match.start()])
        if match["label"]:
            add(_kind(match["url"]), match["label"], match["url"])
        else:
            add(match.lastgroup, match[match.lastgroup])
        end = match.end()
    add("text", source[end:])
    return tuple(spans)


def paragraphs(source: str, values: Mapping[str, object] | None = None) -> tuple[tuple[Span, ...], ...]:
    """One tuple of spans a paragraph; paragraphs are parted by empty lines."""
    return tuple(parse(part, values) for part in re.split(r"\n\s*\n", source.strip()) if part.strip())


def plain(spans: tuple[Span, ...]) -> str:
    """The text without its markup, for an alt text or a title."""
    return "".join(span.text for span in spans)
