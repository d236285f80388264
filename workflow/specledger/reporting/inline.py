"""A little markup inside texts: *emphasis*, **strong**, `code`, [label](address), [term](#word-name), [place](#id).

It is parsed before measured values are put in, so that nothing in a corpus or a name can become markup.
"""

import re
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


def parse(source: str, values: Mapping[str, object] | None = None) -> tuple[Span, ...]:
    """The spans of a paragraph, `{name}` replaced by values; KeyError for a name that has no value."""
    spans, end = [], 0

    def add(kind: str, text: str, url: str = "") -> None:
        filled = text.format_map(values) if values is not None else text
        if filled:
            spans.append(Span(kind=kind, text=filled, url=url))

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
