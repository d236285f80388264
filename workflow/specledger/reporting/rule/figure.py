"""The acceptance rule at a real position: p and q, and the two ways in which each symbol comes out."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from specledger.reporting.formats import symbol
from specledger.reporting.ledger.figure import WIDTH
from specledger.reporting.style import INK, drafter_colour, drawable
from specledger.reporting.wording import Wording

SHOWN = 12


@dataclass(frozen=True, kw_only=True)
class Bar:
    """One symbol, or several pooled: p, q, the mass min(p, q) that is kept, and the frequency among the draws."""

    symbol: str | None
    p: float
    q: float
    kept: float
    drawn: float


@dataclass(frozen=True, kw_only=True)
class Chosen:
    """The position of the figure, its likeliest symbols, and the others pooled (None where there are none)."""

    context: str
    drafter: str
    bars: tuple[Bar, ...]
    others: Bar | None
    beta: float
    draws: int
    symbols: int
    positions: int


def _beta(found: Mapping) -> float:
    return sum(min(p, q) for p, q in zip(found["p"], found["q"], strict=True))


def _bar(found: Mapping, indices: Sequence[int], name: str | None) -> Bar:
    p, q, counts = ([found[key][index] for index in indices] for key in ("p", "q", "counts"))
    kept = sum(min(pair) for pair in zip(p, q, strict=True))
    return Bar(symbol=name, p=sum(p), q=sum(q), kept=kept, drawn=sum(counts) / found["draws"])


def choose(record: Mapping) -> Chosen:
    """Of the stored positions, the one where the draft model (else the first drafter) differs most from the target."""
    positions = record["positions"]
    drafter = "draft" if "draft" in positions[0]["drafters"] else next(iter(positions[0]["drafters"]))
    chosen = min(positions, key=lambda position: _beta(position["drafters"][drafter]))
    found = chosen["drafters"][drafter]
    p, q = found["p"], found["q"]
    order = sorted(range(len(p)), key=lambda index: (-max(p[index], q[index]), index))
    bars = tuple(_bar(found, [index], record["symbols"][index]) for index in order[:SHOWN])
    return Chosen(
        context=chosen.get("context", ""),
        drafter=drafter,
        bars=bars,
        others=_bar(found, order[SHOWN:], None) if order[SHOWN:] else None,
        beta=_beta(found),
        draws=found["draws"],
        symbols=len(p),
        positions=len(positions),
    )


def _axis(axis: Axes, bars: Sequence[Bar], title: str) -> None:
    axis.set_xticks(range(len(bars)), [drawable(symbol(bar.symbol)) for bar in bars], fontsize=9.5)
    axis.set_xlim(-0.7, len(bars) - 0.3)
    axis.grid(False, axis="x")
    axis.set_title(title)


def draw_acceptance_rule(record: Mapping, words: Wording) -> Figure:
    """p beside q, and the same position taken apart into accepted, resampled and rejected mass."""
    chosen = choose(record)
    colour = drafter_colour(chosen.drafter)
    figure = Figure(figsize=(WIDTH, 3.8), layout="constrained")
    left, right = figure.subplots(1, 2, sharey=True)
    for place, bar in enumerate(chosen.bars):
        left.bar(place - 0.2, bar.p, 0.38, color=INK, linewidth=0)
        left.bar(place + 0.2, bar.q, 0.38, color=colour, linewidth=0)
        right.bar(place, bar.kept, 0.74, color=colour, linewidth=0)
        right.bar(
            place, bar.p - bar.kept, 0.74, bottom=bar.kept, facecolor="none", edgecolor=INK, hatch="////", linewidth=0.9
        )
        right.bar(place, bar.q - bar.kept, 0.74, bottom=bar.kept, color=colour, alpha=0.3, linewidth=0)
        right.plot(place, bar.drawn, "o", markerfacecolor="#ffffff", markeredgecolor="#000000", markersize=5, zorder=5)
    _axis(left, chosen.bars, words.say("plot.each_says"))
    _axis(right, chosen.bars, words.say("plot.rule_makes"))
    left.set_ylabel(words.say("plot.probability"))
    name = words.name("drafter", chosen.drafter)
    left.legend(
        handles=[
            Patch(color=INK, label=words.say("plot.p")),
            Patch(color=colour, label=words.say("plot.q", drafter=name)),
        ],
        loc="upper right",
    )
    right.legend(
        handles=[
            Patch(facecolor=colour, label=words.say("plot.kept")),
            Patch(facecolor="none", edgecolor=INK, hatch="////", label=words.say("plot.redrawn")),
            Patch(facecolor=colour, alpha=0.3, label=words.say("plot.rejected")),
            Line2D([], [], linestyle="", marker="o", markerfacecolor="#ffffff", markeredgecolor="#000000", markersize=5,
                   label=words.say("plot.draws", draws=f"{chosen.draws:,}")),
        ],
        loc="upper right",
    )  # fmt: skip
    return figure
