"""Tables on acceptance beyond eq. (1): by position, tests of independence, and the split of the gap."""

from specledger.reporting import formats
from specledger.reporting.document import View
from specledger.reporting.formats import known, number
from specledger.reporting.gamma.facts import shown_engine, signed
from specledger.reporting.labels import main_rows
from specledger.reporting.study import Study
from specledger.reporting.tables import Row, Table
from specledger.reporting.views import columns, count, largest, named, num, plainly, view, with_interval
from specledger.reporting.wording import Wording

MOST_ROWS = 60
ENOUGH_TEXTS = 20  # below, a cluster t interval is apt to be too narrow


def clusters(study: Study, words: Wording, table: str = "rates") -> dict[str, str]:
    """n of a table's intervals, which are clustered by text, and a word where some rest on few."""
    texts = [row["texts"] for row in study.tables[table].rows]
    few = min(filter(known, texts), default=0) < ENOUGH_TEXTS
    return {"clusters": formats.whole(largest(texts)), "few": words.raw("clusters.few") if few else ""}


def _shown_first(table: Table) -> list[Row]:
    """The engine of the figures before the others, so that a cut table holds what the figures show."""
    return sorted(main_rows(table.rows), key=lambda row: row["engine"] != shown_engine(table))


def _left_out(table: Table) -> int:
    """Rows of heads and trees, which stand in the CSV alone."""
    return len(table.rows) - len(main_rows(table.rows))


def rates(study: Study, words: Wording) -> View:
    """Acceptance at each position of a round, among rounds that came so far."""
    rows = [
        (
            named(words, "engine", row["engine"]),
            named(words, "drafter", row["drafter"]),
            *(count(row[key]) for key in ("gamma", "position", "examined", "accepted")),
            with_interval(row, "rate"),
            num(row["reached"], 4),
            num(row["reached_rb"], 4),
            count(row["texts"]),
        )
        for row in _shown_first(study.tables["rates"])
    ]
    heads = columns(words, "engine drafter gamma guess examined passed rate_j reached reached_rb texts")
    options = {"source": "rates", "most": MOST_ROWS, "values": clusters(study, words)}
    options["left_out"] = _left_out(study.tables["rates"])
    return view(words, "rates", heads, rows, **options)


def independence(study: Study, words: Wording) -> View:
    """α clustered by text, what the rounds yield counted twice, and three tests of the coin."""
    rows = []
    for row in _shown_first(study.tables["independence"]):
        note = f"p = {formats.p_value(row['lag1_p'])}" if known(row["lag1_p"]) else ""
        rows.append(
            (
                named(words, "engine", row["engine"]),
                named(words, "drafter", row["drafter"]),
                count(row["gamma"]),
                with_interval(row, "alpha"),
                num(row["tokens_per_round"], 3),
                num(row["tokens_per_round_rb"], 3),
                plainly(row["homogeneity_p"], formats.p_value),
                plainly(row["geometric_p"], formats.p_value),
                num(row["lag1"], 3, note=note),
                count(row["texts"]),
            )
        )
    heads = columns(words, "engine drafter gamma alpha counted averaged homogeneity geometric lag1 texts")
    return view(
        words,
        "independence",
        heads,
        rows,
        source="independence",
        values=clusters(study, words, "independence"),
        left_out=_left_out(study.tables["independence"]),
    )


def gap(study: Study, words: Wording) -> View | None:
    """From eq. (1) to the measured yield, step by step; None where no engine's texts allow the split."""
    rows = [
        (
            named(words, "drafter", row["drafter"]),
            count(row["gamma"]),
            num(row["eq1"], 3),
            *(num(row[step], 3, signed) for step in ("drift", "dependence", "ending")),
            num(row["measured"], 3, number),
        )
        for row in study.tables["gap"].rows
    ]
    heads = columns(words, "drafter gamma eq1 drift dependence ending measured_tokens")
    return view(words, "gap", heads, rows, source="gap") if rows else None
