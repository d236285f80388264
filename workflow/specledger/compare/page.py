"""The comparison as one page: plain HTML that asks for nothing, in light and dark."""

import time
from pathlib import Path

from specledger.audit.page import number, p_text, template_file
from specledger.compare.judging import VERDICTS, Pair
from specledger.compare.side import Side
from specledger.compare.studies import counts, whole
from specledger.foundation.records import write_text
from specledger.foundation.version import VERSION

TEMPLATE, STYLE = "compare.html.j2", "page.css"
HEADLINES = {
    "agrees": "The study agrees with the reference",
    "differs": "The study differs from the reference",
    "undecided": "Undecided in part",
    "not compared": "Nothing could be compared",
}


def signed(value: float | None, digits: int = 4) -> str:
    return "–" if value is None else number(value, digits).replace("-", "−")


def write_page(path: Path, pairs: list[Pair], *, yours: Side, reference: Side, said: list[str], settings: dict) -> None:
    """Write the page of a comparison; said: what a reader must know before any figure."""
    from jinja2 import Environment, FileSystemLoader, select_autoescape

    template = template_file(TEMPLATE)
    environment = Environment(
        loader=FileSystemLoader(str(template.parent)), autoescape=select_autoescape(["html", "j2"]), trim_blocks=True
    )
    environment.filters |= {"signed": signed, "p": p_text}
    verdict = whole(pairs)
    topics = [
        (topic, "topic-" + topic.replace(" ", "-"), found, [pair for pair in pairs if pair.figure.topic == topic])
        for topic, found in counts(pairs).items()
    ]
    facts = [
        ("Study", str(yours.tables)),
        ("Reference", str(reference.tables)),
        ("Seeds", f"{len(yours.seeds())}, in the reference {len(reference.seeds())}"),
    ]
    text = environment.get_template(template.name).render(
        style=template_file(STYLE).read_text(encoding="utf-8"),
        verdict=verdict,
        headline=HEADLINES[verdict],
        verdicts=VERDICTS,
        topics=topics,
        facts=facts,
        said=said,
        settings=settings,
        version=VERSION,
        date=time.strftime("%Y-%m-%d %H:%M"),
    )
    write_text(path, text)
