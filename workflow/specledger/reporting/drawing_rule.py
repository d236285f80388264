"""The acceptance rule at a real position: p and q, and the two ways in which each symbol comes out."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from specledger.reporting.formats import symbol
from specledger.reporting.labels import DRAFTERS
from specledger.reporting.drawing_ledger import WIDTH
from specledger.reporting.style import INK, drafter_colour, drawable

SHOWN = 12


@dataclass(frozen=True, kw_only=True)
class Bar:
    """One symbol: the target's and the draft's probability, and how often the rule's draws gave it."""

    symbol: str | None
    p: float
    q: float
    drawn: float

    @property
    def kept(self) -> float:
        return min(self.p, self.q)

    @property
    def residual(self) -> float:
        return max(0.0, self.p - self.q)

    @property
    def trimmed(self) -> float:
        return max(0.0, self.q - self.p)


@dataclass(frozen=True, kw_only=True)
class Chosen:
    """The position of the figure and its bars; the last bar (symbol None) pools the symbols not shown."""

    context: str
    drafter: str
    bars: tuple[Bar, ...]
    beta: float
    draws: int
    symbols: int
    positions: int


def _beta(found: Mapping) -> float:
    return sum(min(p, q) for p, q in zip(found["p"], found["q"], strict=True))


def choose(record: Mapping) -> Chosen:
    """Of the stored positions, the one where the draft model (else the first drafter) differs most from the target."""
    positions = record["positions"]
    drafter = "draft" if "draft" in positions[0]["drafters"] else next(iter(positions[0]["drafters"]))
    chosen = min(positions, key=lambda position: _beta(position["drafters"][drafter]))
    found = chosen["drafters"][drafter]
    p, q, counts, draws = found["p"], found["q"], found["counts"], found["draws"]
    order = sorted(range(len(p)), key=lambda index: (-max(p[index], q[index]), index))
    bars = [Bar(symbol=record["symbols"][i], p=p[i], q=q[i], drawn=counts[i] / draws) for i in order[:SHOWN]]
    if rest := order[SHOWN:]:
        sums = (sum(values[i] for i in rest) for values in (p, q, counts))
        others = dict(zip(("p", "q", "drawn"), sums, strict=True))
        bars.append(Bar(symbol=None, **{**others, "drawn": others["drawn"] / draws}))
    return Chosen(
        context=chosen.get("context", ""),
        drafter=drafter,
        bars=tuple(bars),
        beta=_beta(found),
        draws=draws,
        symbols=len(p),
        positions=len(positions),
    )


def _axis(axis: Axes, bars: Sequence[Bar], title: str) -> None:
    names = [drawable(symbol(bar.symbol)) if bar.symbol is not None else "others" for bar in bars]
    axis.set_xticks(range(len(bars)), names, fontsize=9.5)
    if bars[-1].symbol is None:
        axis.get_xticklabels()[-1].set(rotation=90, fontsize=8)
    axis.set_xlim(-0.7, len(bars) - 0.3)
    axis.grid(False, axis="x")
    axis.set_title(title)


def draw_acceptance_rule(record: Mapping) -> Figure:
    """p beside q, and the same position taken apart into accepted, redrawn and trimmed mass."""
    chosen = choose(record)
    colour = drafter_colour(chosen.drafter)
    figure = Figure(figsize=(WIDTH, 3.8), layout="constrained")
    left, right = figure.subplots(1, 2, sharey=True)
    for place, bar in enumerate(chosen.bars):
        left.bar(place - 0.2, bar.p, 0.38, color=INK, linewidth=0)
        left.bar(place + 0.2, bar.q, 0.38, color=colour, linewidth=0)
        right.bar(place, bar.kept, 0.74, color=colour, linewidth=0)
        right.bar(place, bar.residual, 0.74, bottom=bar.kept, facecolor="none", edgecolor=INK, hatch="////", linewidth=0.9)
        right.bar(place, bar.trimmed, 0.74, bottom=bar.kept, color=colour, alpha=0.3, linewidth=0)
        right.plot(place, bar.drawn, "o", markerfacecolor="#ffffff", markeredgecolor="#000000", markersize=5, zorder=5)
    _axis(left, chosen.bars, "What each says")
    _axis(right, chosen.bars, "What the rule makes of it")
    left.set_ylabel("probability")
    name = DRAFTERS.get(chosen.drafter, chosen.drafter)
    left.legend(handles=[Patch(color=INK, label="p, target"), Patch(color=colour, label=f"q, {name}")], loc="upper right")
    right.legend(
        handles=[
            Patch(facecolor=colour, label="min(p, q), accepted"),
            Patch(facecolor="none", edgecolor=INK, hatch="////", label="p − q, redrawn"),
            Patch(facecolor=colour, alpha=0.3, label="q − p, rejected"),
            Line2D([], [], linestyle="", marker="o", markerfacecolor="#ffffff", markeredgecolor="#000000", markersize=5,
                   label=f"{chosen.draws:,} draws"),
        ],
        loc="upper right",
    )  # fmt: skip
    return figure
