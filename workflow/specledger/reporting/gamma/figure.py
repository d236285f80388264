"""Acceptance along a round, and the steps from eq. (1) to the measured yield; a panel a drafter."""

import textwrap
from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import FixedLocator, FuncFormatter

from specledger.reporting.formats import MINUS
from specledger.reporting.gamma.facts import STEPS, shown_engine
from specledger.reporting.labels import main_rows, place_of
from specledger.reporting.ledger.figure import DASH, WIDTH
from specledger.reporting.style import GRID, INK, MARKER, STEP, drafter_colour
from specledger.reporting.tables import Row, Table
from specledger.reporting.views_bounds import ends_of
from specledger.reporting.wording import Wording

LONG_NAME = 9  # letters that the narrowest panel has room for


def _ordered(table: Table, engine: str) -> dict[str, list[Row]]:
    """The engine's rows by drafter, in the order of the other figures."""
    rows = main_rows(table.where(engine=engine))
    there = list(dict.fromkeys(row["drafter"] for row in rows))
    there.sort(key=place_of)
    return {name: [row for row in rows if row["drafter"] == name] for name in there}


def _panels(found: dict[str, list[Row]], height: float) -> tuple[Figure, Sequence[Axes]]:
    """Panels as wide as their drafter has gammas, none of them a sliver."""
    widths = [2.6 + len({row["gamma"] for row in rows}) for rows in found.values()]
    figure = Figure(figsize=(WIDTH, height), layout="constrained")
    axes = figure.subplots(1, len(found), sharey=True, squeeze=False, gridspec_kw={"width_ratios": widths})[0]
    return figure, axes


def empty(message: str) -> Figure:
    """A figure that says why there is nothing to draw."""
    figure = Figure(figsize=(WIDTH, 1.0))
    figure.text(0.5, 0.5, message, ha="center", va="center")
    return figure


def _curve(axis: Axes, drafter: str, rows: list[Row], shift: float, strength: float) -> None:
    """One γ: a marker a position with its interval, joined, its γ at the end."""
    colour = drafter_colour(drafter)
    known = [row for row in rows if row["rate"] is not None]
    if not known:
        return
    places = [row["position"] + shift for row in known]
    axis.plot(places, [row["rate"] for row in known], color=colour, linewidth=0.9, alpha=strength)
    for place, row in zip(places, known, strict=True):
        lo, hi, _ = ends_of(row, "rate")
        if lo is not None and hi is not None:
            ends = [lo, hi]
            axis.plot([place, place], ends, color=colour, linewidth=1.3, alpha=strength, solid_capstyle="butt")
        style = {"color": colour, "markersize": 4.6, "markeredgewidth": 0, "alpha": strength}
        axis.plot(place, row["rate"], MARKER.get(drafter, "o"), **style)
    axis.annotate(
        str(known[-1]["gamma"]), (places[-1], ends_of(known[-1], "rate")[1] or known[-1]["rate"]), (0, 3),
        textcoords="offset points", fontsize=7.5, ha="center",
    )  # fmt: skip


def _title(name: str, panels: int) -> str:
    """A name above its panel, on several lines where the panels are many and narrow."""
    return textwrap.fill(name, LONG_NAME, break_long_words=False) if panels > 3 else name


def draw_acceptance_by_position(rates: Table, independence: Table, words: Wording) -> Figure:
    """Pr(draft token j is accepted | those before it were) by j, with the pooled α of the largest γ as a level line."""
    engine = shown_engine(rates)
    found = _ordered(rates, engine)
    figure, axes = _panels(found, 3.9)
    for axis, (drafter, rows) in zip(axes, found.items(), strict=True):
        gammas = sorted({row["gamma"] for row in rows})
        for index, gamma in enumerate(gammas):
            part = sorted((row for row in rows if row["gamma"] == gamma), key=lambda row: row["position"])
            share = (index + 1) / len(gammas)
            _curve(axis, drafter, part, 0.66 * (share - 0.5 - 0.5 / len(gammas)), 0.35 + 0.65 * share)
        pooled = independence.where(engine=engine, drafter=drafter, gamma=gammas[-1])
        if pooled and pooled[0]["alpha"] is not None:
            axis.axhline(pooled[0]["alpha"], color=INK, linewidth=1.2, linestyle=DASH)
        axis.xaxis.set_major_locator(FixedLocator(range(1, gammas[-1] + 1, 1 + gammas[-1] // 13)))
        axis.set_xlim(0.4, gammas[-1] + 0.6)
        axis.set_xlabel(words.say("plot.guess" if len(gammas) > 1 else "plot.guess_short"))
        axis.set_title(_title(words.name("drafter", drafter), len(found)))
        axis.grid(False, axis="x")
    axes[0].set_ylabel(words.say("plot.accepted"))
    line = Line2D([], [], color=INK, linewidth=1.2, linestyle=DASH, label=words.say("plot.pooled"))
    figure.legend(handles=[line], loc="outside upper left")
    return figure


def _waterfall(axis: Axes, rows: list[Row], words: Wording) -> None:
    """Steps of each γ one after another, as shares of its eq. (1), and the measured end."""
    places = range(len(rows))
    for place, row in zip(places, rows, strict=True):
        base = 0.0
        for index, step in enumerate(STEPS):
            value = (row[step] or 0.0) / row["eq1"]
            axis.bar(place + 0.26 * (index - 1), value, 0.24, bottom=base, color=STEP[step], linewidth=0, zorder=2)
            base += value
            if index < len(STEPS) - 1:
                ends = [place + 0.26 * (index - 1) - 0.12, place + 0.26 * index + 0.12]
                axis.plot(ends, [base, base], color=INK, linewidth=0.7, zorder=3)
        axis.plot(place + 0.26, base, "o", color=INK, markersize=4.4, markeredgewidth=0, zorder=4)
    axis.set_xticks(list(places), [str(row["gamma"]) for row in rows])
    axis.set_xlim(-0.7, len(rows) - 0.3)
    axis.axhline(0, color=INK, linewidth=1.1, zorder=1)
    axis.set_xlabel(words.say("plot.gamma_short"))
    axis.grid(False, axis="x")


def draw_gap(gap: Table, words: Wording) -> Figure:
    """From eq. (1), the level line, down or up to what was measured."""
    found = _ordered(gap, shown_engine(gap))
    found = {name: [row for row in rows if row["eq1"] and row["measured"] is not None] for name, rows in found.items()}
    found = {name: sorted(rows, key=lambda row: row["gamma"]) for name, rows in found.items() if rows}
    if not found:
        return empty(words.say("plot.no_gap"))
    figure, axes = _panels(found, 3.3)
    for axis, (drafter, rows) in zip(axes, found.items(), strict=True):
        _waterfall(axis, rows, words)
        axis.set_title(_title(words.name("drafter", drafter), len(found)))
    axes[0].yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{100 * value:g}%".replace("-", MINUS)))
    axes[0].set_ylabel(words.say("plot.off"))
    low, high = axes[0].get_ylim()
    axes[0].set_ylim(low - 0.05 * (high - low), high + 0.05 * (high - low))
    handles = [Patch(color=STEP[step], linewidth=0, label=words.name("step", step)) for step in STEPS]
    handles.append(
        Line2D([], [], linestyle="", marker="o", markersize=4.4, color=INK, label=words.say("plot.measured"))
    )
    figure.legend(handles=handles, loc="outside upper left", ncols=len(handles), handletextpad=0.5, columnspacing=1.5)
    for axis in axes:
        axis.spines["left"].set_color(GRID)
    return figure
