"""The acceptance rule at real positions: the two ways to each symbol, and draws by the reader's own hand."""

from collections.abc import Mapping

from specledger.reporting import explorables
from specledger.reporting.document import Explorable
from specledger.reporting.formats import number, small, symbol, visible
from specledger.reporting.rule.figure import Chosen
from specledger.reporting.study import Study
from specledger.reporting.wording import Wording

SHOWN = 12  # rows of the table; the others are pooled into one
MOST_SYMBOLS = 256  # that the page carries; of a larger alphabet the least likely are one symbol
TAIL = 24  # characters of the context by which a position is known


def _checkpointer(positions: list[Mapping], most: int) -> tuple[list[int], list[int]]:
    """Symbols that are carried one by one, and those that are taken together, by their largest p or q anywhere."""
    rows = [row for one in positions for found in one["drafters"].values() for row in (found["p"], found["q"])]
    size = len(rows[0])
    if size <= most:
        return list(range(size)), []
    largest = [max(row[at] for row in rows) for at in range(size)]
    order = sorted(range(size), key=lambda at: (-largest[at], at))
    return sorted(order[: most - 1]), order[most - 1 :]


def _gathered(values: list[float], kept: list[int], lumped: list[int]) -> list[float]:
    return [values[at] for at in kept] + ([sum(values[at] for at in lumped)] if lumped else [])


def _position(one: Mapping, kept: list[int], lumped: list[int]) -> dict:
    drafters = {}
    for name, found in one["drafters"].items():
        drafters[name] = {
            "q": [explorables.rounded(value, 12) for value in _gathered(found["q"], kept, lumped)],
            "counts": _gathered(found["counts"], kept, lumped),
            "draws": found["draws"],
            "accepted": found["accepted"],
        }
    p = next(iter(one["drafters"].values()))["p"]
    return {
        "context": visible(one["context"][-TAIL:]),
        "p": [explorables.rounded(value, 12) for value in _gathered(p, kept, lumped)],
        "drafters": drafters,
    }


def table_rows(p: list[float], found: Mapping, symbols: list[str]) -> list[dict]:
    """The likeliest symbols by p or q, then the others as one: p, q, both ways, and the run's frequency."""
    q, counts = found["q"], found["counts"]
    order = sorted(range(len(p)), key=lambda at: (-max(p[at], q[at]), at))
    groups = [(symbols[at], [at]) for at in order[:SHOWN]]
    if order[SHOWN:]:
        groups.append((None, order[SHOWN:]))
    rows = []
    for name, members in groups:
        kept = sum(min(p[at], q[at]) for at in members)
        whole = sum(p[at] for at in members)
        drawn = sum(counts[at] for at in members) / found["draws"]
        rows.append(
            {"symbol": name, "count": len(members), "p": whole, "q": sum(q[at] for at in members)}
            | {"kept": kept, "residual": sum(max(p[at] - q[at], 0.0) for at in members), "run": drawn}
        )
    return rows


def total_variation(p: list[float], q: list[float]) -> float:
    return sum(abs(a - b) for a, b in zip(p, q, strict=True)) / 2


def rule(study: Study, words: Wording, chosen: Chosen) -> Explorable:
    """Set to the position and the drafter of the figure of the rule."""
    record = study.positions
    kept, lumped = _checkpointer(record["positions"], MOST_SYMBOLS)
    symbols = [symbol(record["symbols"][at]) for at in kept] + (["…"] if lumped else [])
    positions = [_position(one, kept, lumped) for one in record["positions"]]
    at = next((at for at, one in enumerate(record["positions"]) if one["context"] == chosen.context), 0)
    p, found = positions[at]["p"], positions[at]["drafters"][chosen.drafter]
    rows = table_rows(p, found, symbols)
    frequencies = [count / found["draws"] for count in found["counts"]]
    drafters = list(dict.fromkeys(name for one in positions for name in one["drafters"]))
    return explorables.block(
        "rule",
        words,
        {"symbols": symbols, "positions": positions, "position": at, "drafter": chosen.drafter, "rows": rows}
        | {"drafters": drafters, "lumped": len(lumped), "largest": max(max(row["p"], row["q"]) for row in rows)}
        | {"shown": SHOWN},
        names={"drafter": drafters},
        outcomes={
            "beta": number(sum(min(pair) for pair in zip(p, found["q"], strict=True)), 4),
            "acceptance": number(found["accepted"] / found["draws"], 4),
            "tv_run": small(total_variation(frequencies, p), 4),
            "tv_draft": small(total_variation(found["q"], p), 4),
        },
    )
