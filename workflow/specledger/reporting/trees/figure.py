"""Figures of trees beside chains: tokens per round and v(N), speed-up, and how often siblings are accepted."""

from collections.abc import Callable, Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, MaxNLocator, NullFormatter

from specledger.foundation.drafters import HEADS, TREE, base_of, branched, fastest
from specledger.reporting.gamma.figure import empty
from specledger.reporting.labels import place_of
from specledger.reporting.ledger.figure import DASH, draw_intervals, grid
from specledger.reporting.style import GRID, INK, MARKER, drafter_colour
from specledger.reporting.tables import Row, Table
from specledger.reporting.wording import Wording

DEEPEST = 4  # depths that are drawn
Panel = Callable[[Axes, str, list[Row], list[Row]], None]


def _grown(ledger: Table) -> dict[str, tuple[list[Row], list[Row]]]:
    """Chains and lossless trees of each head and of what else has trees, by size, on the engine of the trees."""
    engines = {row["engine"] for row in ledger.rows if branched(row["drafter"])}
    engine = fastest(engines) if engines else ""
    rows = sorted(ledger.where(engine=engine), key=lambda row: row["gamma"])
    names = {row["drafter"] for row in rows}
    bases = sorted({base_of(name) for name in names if name.endswith(TREE) or name in HEADS}, key=place_of)

    def of(name: str) -> list[Row]:
        return [row for row in rows if row["drafter"] == name]

    return {name: (of(name), of(name + TREE)) for name in bases}


def _marked(axis: Axes, rows: Sequence[Row], column: str, drafter: str, *, hollow: bool) -> None:
    """A line of markers with their intervals; trees are hollow and dashed."""
    colour, known = drafter_colour(drafter), [row for row in rows if row[column] is not None]
    draw_intervals(axis, known, column, color=colour, linewidth=1.2)
    axis.plot(
        [row["gamma"] for row in known], [row[column] for row in known], MARKER.get(drafter, "o"),
        linestyle=DASH if hollow else "-", linewidth=1.1, color=colour, markersize=5,
        markerfacecolor="none" if hollow else colour, zorder=4,
    )  # fmt: skip


def _sizes(axis: Axes, rows: Sequence[Row]) -> None:
    sizes = [row["gamma"] for row in rows]
    axis.set_xscale("log", base=2)
    axis.set_xlim(0.8 * min(sizes), 1.25 * max(sizes))
    axis.set_xticks([tick for tick in (1, 2, 4, 8, 16, 32, 64) if 0.8 * min(sizes) <= tick <= 1.25 * max(sizes)])
    axis.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.xaxis.set_minor_formatter(NullFormatter())
    axis.tick_params(which="minor", length=0)


def _top(rows: Sequence[Row], columns: Sequence[str], end: str) -> float:
    values = [row[name] for row in rows for name in columns if row[name] is not None]
    ends = [row[end] for row in rows if row[end] is not None]
    highest = max(values, default=1.0)
    return 1.06 * max(highest, min(max(ends, default=highest), 1.3 * highest))


def _draw(ledger: Table, words: Wording, panel: Panel, labels: Sequence[Line2D]) -> tuple[Figure, list[Row]]:
    """One panel a drafter with trees or head, and all of their rows."""
    found = _grown(ledger)
    if not found:
        return empty(words.say("plot.no_trees")), []
    rows = [row for pair in found.values() for kind in pair for row in kind]
    figure, axes = grid(len(found), 1.6)
    for axis, (drafter, (chains, trees)) in zip(axes, found.items(), strict=True):
        panel(axis, drafter, chains, trees)
        _sizes(axis, rows)
        axis.set_title(words.name("drafter", drafter), fontsize=9.5)
        axis.grid(False, axis="x")
    figure.supxlabel(words.say("plot.nodes"), fontsize=9)
    figure.legend(
        handles=list(labels), loc="outside upper left", ncols=len(labels), handletextpad=0.5, columnspacing=1.5
    )
    return figure, rows


def _kinds(words: Wording) -> list[Line2D]:
    style = {"color": INK, "marker": "o", "markersize": 5, "linewidth": 1.1}
    chain = Line2D([], [], label=words.say("plot.chain"), **style)
    return [chain, Line2D([], [], label=words.say("plot.tree"), linestyle=DASH, markerfacecolor="none", **style)]


def draw_yield(ledger: Table, words: Wording) -> Figure:
    """Tokens per round of chains and trees above the cost of verifying so many nodes, v(N)."""

    def panel(axis: Axes, drafter: str, chains: list[Row], trees: list[Row]) -> None:
        costs = {row["gamma"]: row["v"] for row in (*chains, *trees) if row["v"] is not None}
        if costs:
            places = sorted(costs)
            axis.fill_between(places, 0, [costs[at] for at in places], color=GRID, alpha=0.28, linewidth=0, zorder=1)
            axis.plot(places, [costs[at] for at in places], color=INK, linewidth=1.2, zorder=2)
        for rows, hollow in ((chains, False), (trees, True)):
            _marked(axis, rows, "tokens_per_round", drafter, hollow=hollow)

    line = Line2D([], [], color=INK, linewidth=1.2, label=words.say("plot.price"))
    figure, rows = _draw(ledger, words, panel, [*_kinds(words), line])
    if rows:
        figure.axes[0].set_ylim(0, _top(rows, ("tokens_per_round", "v"), "tokens_per_round_hi"))
        figure.supylabel(words.say("plot.tokens"), fontsize=9)
    return figure


def draw_speed(ledger: Table, words: Wording) -> Figure:
    """Speed-up of chains and trees over plain decoding."""

    def panel(axis: Axes, drafter: str, chains: list[Row], trees: list[Row]) -> None:
        axis.axhline(1, color=INK, linewidth=1.1, zorder=1)
        axis.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}×"))
        for rows, hollow in ((chains, False), (trees, True)):
            _marked(axis, rows, "speedup", drafter, hollow=hollow)

    figure, rows = _draw(ledger, words, panel, _kinds(words))
    if rows:
        figure.axes[0].set_ylim(0, _top(rows, ("speedup",), "speedup_hi"))
        figure.supylabel(words.say("plot.speedup"), fontsize=9)
    return figure


def draw_ranks(ranks: Table, words: Wording) -> Figure:
    """Acceptance of the first, second, … sibling, a line a depth, deeper ones fainter."""
    drafters = sorted(ranks.values("drafter"), key=place_of) if ranks.rows else []
    if not drafters:
        return empty(words.say("plot.no_trees"))
    figure, axes = grid(len(drafters), 1.8)
    for axis, drafter in zip(axes, drafters, strict=True):
        depths = sorted({row["depth"] for row in ranks.where(drafter=drafter)})[:DEEPEST]
        for depth in reversed(depths):
            rows = sorted(ranks.where(drafter=drafter, depth=depth), key=lambda row: row["rank"])
            rows = [row for row in rows if row["acceptance"] is not None]
            axis.plot(
                [row["rank"] + 1 for row in rows], [row["acceptance"] for row in rows], MARKER.get(drafter, "o"),
                linestyle="-", linewidth=1.1, markersize=4, markeredgewidth=0, color=drafter_colour(drafter),
                alpha=1 - 0.75 * (depth - 1) / DEEPEST,
            )  # fmt: skip
        axis.set_title(words.name("drafter", drafter), fontsize=9.5)
        axis.grid(False, axis="x")
        axis.xaxis.set_major_locator(MaxNLocator(6, integer=True))
    axes[0].set_ylim(0, 1)
    figure.supxlabel(words.say("plot.rank"), fontsize=9)
    figure.supylabel(words.say("plot.rank_accepted"), fontsize=9)
    return figure
