"""The comparison as one page: plain HTML that asks for nothing, in light and dark."""

import time
from pathlib import Path

from specledger.audit.page import number, p_text
from specledger.compare.judging import VERDICTS, Pair
from specledger.compare.side import Side
from specledger.compare.studies import counts, whole
from specledger.foundation import pages

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
    pages.write_page(
        path,
        "compare.html.j2",
        {"signed": signed, "p": p_text},
        verdict=verdict,
        headline=HEADLINES[verdict],
        verdicts=VERDICTS,
        topics=topics,
        facts=facts,
        said=said,
        settings=settings,
        date=time.strftime("%Y-%m-%d %H:%M"),
    )
