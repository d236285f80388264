"""Figures of the ledger: tokens per round, speed-up, and where the time goes, one panel per engine."""

import math
from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import PathPatch
from matplotlib.path import Path
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator

from specledger.reporting.labels import PARTS, main_rows, place_of
from specledger.reporting.style import GRID, INK, MARKER, PART, drafter_colour
from specledger.reporting.tables import Row, Table
from specledger.reporting.views_bounds import ends_of
from specledger.reporting.wording import Wording

WIDTH = 7.6
ONE_LINE = 5  # entries of a legend that fit beside each other
DASH = (0, (3.5, 2))
ACROSS = 5  # panels of a line


def methods(ledger: Table, engine: str) -> dict[str, list[Row]]:
    """The speculative rows of an engine by drafter, in order of gamma."""
    rows = [row for row in main_rows(ledger.where(engine=engine)) if row["drafter"] != "none"]
    found: dict[str, list[Row]] = {}
    for row in sorted(rows, key=lambda row: row["gamma"]):
        found.setdefault(row["drafter"], []).append(row)
    return {name: found[name] for name in sorted(found, key=place_of)}


def _panels(count: int, height: float) -> tuple[Figure, list[Axes]]:
    figure = Figure(figsize=(WIDTH, height), layout="constrained")
    axes = figure.subplots(1, count, sharey=True, squeeze=False)[0]
    figure.get_layout_engine().set(wspace=0.06)
    return figure, list(axes)


def grid(count: int, height: float) -> tuple[Figure, list[Axes]]:
    """As many panels as there are drafters, five to a line, all on one scale."""
    lines = -(-count // ACROSS)
    figure = Figure(figsize=(WIDTH, 0.75 + height * lines), layout="constrained")
    axes = figure.subplots(lines, min(count, ACROSS), sharex=True, sharey=True, squeeze=False).ravel()
    for axis in axes[count:]:
        axis.set_visible(False)
    for axis in axes[max(0, count - ACROSS) : count]:
        axis.tick_params(labelbottom=True)
    return figure, list(axes[:count])


def _line(axis: Axes, rows: Sequence[Row], column: str, **style) -> None:
    known = [(row["gamma"], row[column]) for row in rows if row[column] is not None]
    if len(known) == 1:  # one gamma makes no line: a short bar through it
        (gamma, value) = known[0]
        known = [(gamma - 0.28, value), (gamma + 0.28, value)]
    if known:
        axis.plot(*zip(*known, strict=True), **style)


def _points(axis: Axes, rows: Sequence[Row], column: str, drafter: str, shift: float) -> None:
    colour, known = drafter_colour(drafter), [row for row in rows if row[column] is not None]
    draw_intervals(axis, known, column, color=colour, linewidth=1.5, shift=shift)
    axis.plot(
        [row["gamma"] + shift for row in known], [row[column] for row in known], MARKER.get(drafter, "o"),
        color=colour, markersize=5.6, markeredgewidth=0, zorder=4,
    )  # fmt: skip


def draw_intervals(axis: Axes, rows: Sequence[Row], column: str, *, shift: float = 0.0, **style: object) -> None:
    """The intervals of a column over gamma, as one line with gaps."""
    places, ends = [], []
    for row in rows:
        lo, hi, _ = ends_of(row, column)
        if lo is not None and hi is not None:
            places += [row["gamma"] + shift] * 2 + [math.nan]
            ends += [lo, hi, math.nan]
    if places:
        axis.plot(places, ends, solid_capstyle="butt", zorder=3, **style)


def _gamma_axis(axis: Axes, rows: Sequence[Row], words: Wording) -> None:
    gammas = sorted({row["gamma"] for row in rows})
    axis.xaxis.set_major_locator(FixedLocator(gammas))
    axis.set_xlabel(words.say("plot.gamma"))
    axis.set_xlim(min(gammas) - 0.6, max(gammas) + 0.6)
    axis.grid(False, axis="x")


def _legend(figure: Figure, drafters: Sequence[str], lines: dict[str, str | tuple], words: Wording) -> None:
    handles = [
        Line2D(
            [],
            [],
            linestyle="",
            marker=MARKER.get(name, "o"),
            color=drafter_colour(name),
            label=words.name("drafter", name),
        )
        for name in drafters
    ]
    handles += [
        Line2D([], [], color=INK, linewidth=1.4, linestyle=style, label=label) for label, style in lines.items()
    ]
    columns = len(handles) if len(handles) <= ONE_LINE else (len(handles) + 1) // 2
    figure.legend(handles=handles, loc="outside upper left", ncols=columns, handletextpad=0.5, columnspacing=1.5)


def _by_engine(ledger: Table, column: str, lines: dict[str, tuple[str, str | tuple]], words: Wording) -> Figure:
    engines = ledger.values("engine")
    figure, axes = _panels(len(engines), 3.7)
    seen: dict[str, None] = {}
    for axis, engine in zip(axes, engines, strict=True):
        found = methods(ledger, engine)
        for index, (drafter, rows) in enumerate(found.items()):
            seen[drafter] = None
            for theory, style in lines.values():
                _line(axis, rows, theory, color=drafter_colour(drafter), linestyle=style, linewidth=1.4, alpha=0.85)
            _points(axis, rows, column, drafter, 0.09 * (index - (len(found) - 1) / 2))
        if found:
            _gamma_axis(axis, [row for rows in found.values() for row in rows], words)
        axis.set_title(words.name("engine_rule", engine))
    _legend(figure, list(seen), {label: style for label, (_, style) in lines.items()}, words)
    return figure


def _top(ledger: Table, columns: Sequence[str], end: str) -> float:
    """The axis' upper end: all means and lines, and intervals as far as they do not squeeze those."""
    rows = [row for engine in ledger.values("engine") for row in main_rows(ledger.where(engine=engine))]
    values = [row[name] for row in rows for name in columns if row[name] is not None]
    ends = [row[end] for row in rows if row[end] is not None]
    highest = max(values, default=1.0)
    return 1.06 * max(highest, min(max(ends, default=highest), 1.3 * highest))


def draw_tokens_per_round(ledger: Table, words: Wording) -> Figure:
    """Measured tokens per round with intervals over eq. (1) at each row's own alpha."""
    figure = _by_engine(ledger, "tokens_per_round", {words.say("plot.eq1"): ("eq1", "-")}, words)
    figure.axes[0].set_ylabel(words.say("plot.tokens"))
    figure.axes[0].set_ylim(1, _top(ledger, ("tokens_per_round", "eq1"), "tokens_per_round_hi"))
    return figure


def draw_wall_clock(ledger: Table, words: Wording) -> Figure:
    """Measured speed-up with intervals beside Theorem 3.8 and the measured-cost model."""
    lines = {words.say("plot.theorem38"): ("theorem38", "-"), words.say("plot.cost_model"): ("cost_model", DASH)}
    figure = _by_engine(ledger, "speedup", lines, words)
    for axis in figure.axes:
        axis.axhline(1, color=INK, linewidth=1.1, zorder=1)
        axis.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}×"))
        axis.set_ylim(0, _top(ledger, ("speedup", "theorem38", "cost_model"), "speedup_hi"))
    figure.axes[0].set_ylabel(words.say("plot.speedup"))
    return figure


def _label(row: Row, words: Wording) -> str:
    name = words.name("drafter", row["drafter"])
    return name if row["drafter"] == "none" else words.apart(name, words.size(row["drafter"], row["gamma"]))


def _bar(left: float, right: float, low: float, high: float) -> Path:
    return Path([(left, low), (right, low), (right, high), (left, high), (left, low)], closed=True)


def _engine_bars(axis: Axes, rows: Sequence[Row], words: Wording) -> None:
    ends = [0.0] * len(rows)
    for part in PARTS:
        bars = []
        for place, row in enumerate(rows):
            value = row[part] or 0.0
            if value > 0:
                bars.append(_bar(ends[place], ends[place] + value, place - 0.36, place + 0.36))
            ends[place] += value
        if bars:  # one shape a part: a shape a bar would make the page heavy
            axis.add_patch(PathPatch(Path.make_compound_path(*bars), facecolor=PART[part], linewidth=0))
    axis.set_xlim(0, 1.05 * max(ends, default=1.0) or 1.0)
    axis.set_yticks(range(len(rows)), [_label(row, words) for row in rows])
    axis.set_ylim(len(rows) - 0.4, -0.6)
    axis.grid(False, axis="y")
    axis.xaxis.set_major_locator(MaxNLocator(5, prune="upper"))
    axis.set_xlabel(words.say("plot.seconds"))
    axis.xaxis.set_major_locator(MaxNLocator(3))
    plain = [row["wall_s"] for row in rows if row["drafter"] == "none" and row["wall_s"] is not None]
    if plain:
        axis.axvline(plain[0], color=INK, linewidth=1.0, linestyle=DASH)


def draw_time_parts(time: Table, words: Wording) -> Figure:
    """Stacked seconds of a text by part, a bar a method."""
    engines = time.values("engine")
    groups = [main_rows(time.where(engine=engine)) for engine in engines]
    figure = Figure(figsize=(WIDTH, 1.3 + 0.235 * max(map(len, groups))), layout="constrained")
    shared = len({tuple(_label(row, words) for row in rows) for rows in groups}) == 1
    axes = figure.subplots(1, len(engines), sharey=shared, squeeze=False)[0]
    for axis, engine, rows in zip(axes, engines, groups, strict=True):
        _engine_bars(axis, rows, words)
        axis.set_title(words.name("engine_rule", engine))
    used = [part for part in PARTS if any((row[part] or 0) > 0 for rows in groups for row in rows)]
    handles = [
        Line2D([], [], linestyle="", marker="s", markersize=8, color=PART[part], label=words.name("part", part))
        for part in used
    ]
    handles.append(Line2D([], [], color=INK, linewidth=1.0, linestyle=DASH, label=words.say("plot.plain_total")))
    figure.legend(handles=handles, loc="outside upper left", ncols=4, handletextpad=0.4, columnspacing=1.4)
    for axis in axes:
        axis.spines["left"].set_color(GRID)
    return figure
