"""Tables of section 1, and the position of section 2's figure."""

from specledger.reporting import formats
from specledger.reporting.document import Column, View, cell
from specledger.reporting.rule.figure import Bar, Chosen
from specledger.reporting.study import Study
from specledger.reporting.tables import Row
from specledger.reporting.views import (
    columns,
    count,
    grouped,
    largest,
    least,
    named,
    num,
    plainly,
    view,
)
from specledger.reporting.wording import Wording


def prefix(study: Study, words: Wording) -> View:
    """Largest difference by model and engine, a column a precision."""
    precisions = sorted(study.tables["prefix"].values("precision"))

    def most(found: list[Row], precision: str) -> float | None:
        return largest(row["max_abs_difference"] for row in found if row["precision"] == precision)

    rows = [
        (
            named(words, "model", model),
            named(words, "engine", engine),
            cell(f"{formats.whole(found[0]['fed_short'])} → {formats.whole(found[0]['fed_long'])}"),
            count(sum(row["rows"] or 0 for row in found if row["precision"] == precisions[0])),
            *(num(most(found, precision), 1, formats.small) for precision in precisions),
        )
        for (model, engine), found in grouped(study.tables["prefix"].rows, "model", "engine").items()
    ]
    heads = columns(words, "model engine fed rows") + tuple(Column(label=name, numeric=True) for name in precisions)
    return view(words, "prefix", heads, rows, source="prefix")


def greedy(study: Study, words: Wording) -> View:
    """Identical texts by engine and drafter, and where the first others part."""
    rows = []
    for (engine, drafter), found in grouped(study.tables["greedy"].rows, "engine", "drafter").items():
        parted = [row for row in found if not row["identical"]]
        same = len(found) - len(parted)
        rows.append(
            (
                named(words, "engine", engine),
                named(words, "drafter", drafter),
                cell(", ".join(dict.fromkeys(formats.whole(row["gamma"]) for row in found))),
                count(len(found)),
                cell(formats.whole(same), sort=same, mark="no" if parted else ""),
                count(least(row["first_divergence"] for row in parted)),
                plainly(least(row["top2_margin"] for row in parted), formats.scientific),
            )
        )
    heads = columns(words, "engine drafter gamma texts identical first_divergence margin")
    return view(words, "greedy", heads, rows, source="greedy")


def position(words: Wording, chosen: Chosen) -> View:
    """The two ways of each symbol and their sum."""

    def row(bar: Bar, name: str) -> tuple:
        residual = bar.p - bar.kept
        parts = (bar.p, bar.q, bar.kept, residual, bar.kept + residual, bar.drawn)
        return (cell(name, sort=name), *(num(value, 4) for value in parts))

    rows = [row(bar, formats.symbol(bar.symbol)) for bar in chosen.bars]
    if chosen.others is not None:
        rows.append(row(chosen.others, words.say("columns.others")))
    heads = columns(words, "symbol p q kept residual sum frequency")
    return view(words, "position", heads, rows, values={"draws": formats.whole(chosen.draws)})
