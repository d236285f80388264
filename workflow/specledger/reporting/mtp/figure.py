"""Figures of the trained models: learning curves, and plain against MTP by seed."""

import math
from collections.abc import Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from specledger.reporting.ledger.figure import DASH, WIDTH
from specledger.reporting.style import GRID, INK, MODEL
from specledger.reporting.tables import Row, Table
from specledger.reporting.wording import Wording

MAX_POINTS = 120
MOST_POINTS, MIN_POINTS = 640, 8  # of the thin lines of a model: all together, and each
LEAST_RANGE = 0.3  # nats: less would blow the noise of seeds up to a shape


def _curve(rows: Sequence[Row], column: str) -> list[tuple[float, float]]:
    """The steps at which a loss was measured, thinned evenly to at most MAX_POINTS."""
    points = [(row["step"], row[column]) for row in rows if row.get(column) is not None]
    if len(points) <= MAX_POINTS:
        return points
    last = len(points) - 1
    return [points[round(index * last / (MAX_POINTS - 1))] for index in range(MAX_POINTS)]


def _mean(curves: Sequence[list[tuple[float, float]]]) -> list[tuple[float, float]]:
    """The mean over seeds at steps that every seed has."""
    values: dict[float, list[float]] = {}
    for step, value in (point for curve in curves for point in curve):
        values.setdefault(step, []).append(value)
    return [(step, sum(found) / len(found)) for step, found in sorted(values.items()) if len(found) == len(curves)]


def _joined(curves: Sequence[list[tuple[float, float]]]) -> list[tuple[float, float]]:
    """All curves as one line with gaps; many seeds share the points that a few may have."""
    most, points = max(MIN_POINTS, MOST_POINTS // len(curves)), []
    for curve in curves:
        kept = curve if len(curve) <= most else [curve[round(k * (len(curve) - 1) / (most - 1))] for k in range(most)]
        points += [*kept, (math.nan, math.nan)]
    return points


def _spread(ends: list[float], least: float, low: float, high: float) -> list[float]:
    """Heights for labels near `ends`, at least `least` apart and inside [low, high]; `ends` ascend."""
    places = list(ends)
    for index in range(1, len(places)):
        places[index] = max(places[index], places[index - 1] + least)
    over = max(0.0, places[-1] - high)
    return [max(low, place - over) for place in places]


def draw_learning_curves(histories: Mapping[str, Mapping[int, Sequence[Row]]], words: Wording) -> Figure:
    """Validation loss by step: every seed thin, the mean thick, its name at its end."""
    figure = Figure(figsize=(WIDTH, 3.9), layout="constrained")
    axis = figure.subplots()
    wanted = [(model, model, "validation_loss") for model in histories] + [("module", "mtp", "validation_mtp_loss")]
    ends, lowest, at_quarter = [], [], []
    for name, model, column in wanted:
        curves = [curve for rows in histories[model].values() if (curve := _curve(rows, column))]
        mean = _mean(curves) if curves else []
        if not mean:
            continue
        axis.plot(*zip(*_joined(curves), strict=True), color=MODEL[name], linewidth=0.6, alpha=0.45)
        style = DASH if name == "mtp" else "-"
        axis.plot(*zip(*mean, strict=True), color=MODEL[name], linewidth=2.0, linestyle=style)
        ends.append((mean[-1][1], name, mean[-1][0]))
        lowest.append(min(value for curve in curves for _, value in curve))
        # The first steps fall off a cliff that would squeeze everything else: the axis starts below it.
        at_quarter.append(mean[min(len(mean) - 1, max(1, len(mean) // 8))][1])
    low = min(lowest)
    high = max(*at_quarter, low + LEAST_RANGE)
    margin = 0.08 * (high - low) or 0.05
    axis.set_ylim(low - margin, high + margin)
    _name_ends(axis, sorted(ends), (low, high), words)
    axis.set_xlabel(words.say("plot.step"))
    axis.set_ylabel(words.say("plot.loss"))
    return figure


def _name_ends(axis: Axes, ends: list[tuple[float, str, float]], limits: tuple[float, float], words: Wording) -> None:
    least = 0.075 * (axis.get_ylim()[1] - axis.get_ylim()[0])
    places = _spread([value for value, _, _ in ends], least, *limits)
    last = max(step for _, _, step in ends)
    for (value, name, step), place in zip(ends, places, strict=True):
        line = {"arrowstyle": "-", "color": GRID, "linewidth": 0.7, "relpos": (0, 0.5), "shrinkB": 3}
        text = f"{words.name('curve', name)}  {value:.3f}"
        axis.annotate(
            text, (step, value), (last * 1.05, place), va="center", ha="left", fontsize=9,
            color=INK, annotation_clip=False, arrowprops=line,
        )  # fmt: skip
    axis.set_xlim(-0.01 * last, last * 1.36)
    axis.spines["bottom"].set_bounds(0, last)
    axis.set_xticks([tick for tick in axis.get_xticks() if 0 <= tick <= last])


def draw_seeds(seeds: Table, difference: Mapping, words: Wording) -> Figure:
    """Plain against MTP, joined by seed; beside it the differences with their mean and interval."""
    losses = {(row["model"], row["seed"]): row["validation_loss"] for row in seeds.rows}
    numbers = [seed for seed in seeds.values("seed") if {("plain", seed), ("mtp", seed)} <= losses.keys()]
    figure = Figure(figsize=(WIDTH, 3.5), layout="constrained")
    left, right = figure.subplots(1, 2, gridspec_kw={"width_ratios": [1, 1.35]})
    pairs = [(losses["plain", seed], losses["mtp", seed]) for seed in numbers]
    # One line with gaps and one row of markers a model: a path each would make the page grow with the seeds.
    joined = [point for before, after in pairs for point in ((0, before), (1, after), (math.nan, math.nan))]
    left.plot(*zip(*joined, strict=True), color=GRID, linewidth=1, zorder=1)
    for place, (model, marker) in enumerate((("plain", "s"), ("mtp", "D"))):
        values = [pair[place] for pair in pairs]
        left.plot([place] * len(pairs), values, marker, color=MODEL[model], markersize=5.5, markeredgewidth=0)
    left.set_xticks([0, 1], [words.say("plot.without_mtp"), words.say("plot.with_mtp")])
    left.set_xlim(-0.35, 1.35)
    left.set_ylabel(words.say("plot.loss_short"))
    left.set_title(words.say("plot.pairs"))
    left.grid(False, axis="x")
    _differences(right, numbers, [losses["mtp", seed] - losses["plain", seed] for seed in numbers], difference, words)
    return figure


def _differences(
    axis: Axes, seeds: Sequence[int], values: Sequence[float], difference: Mapping, words: Wording
) -> None:
    axis.axhline(0, color=INK, linewidth=1.1, zorder=1)
    places = range(len(seeds))
    axis.vlines(places, 0, values, color=MODEL["mtp"], linewidth=1.4)
    axis.plot(places, values, "D", color=MODEL["mtp"], markersize=5.5, markeredgewidth=0)
    after = len(seeds) + 0.4
    mean, lo, hi = difference["mean"], difference.get("lo"), difference.get("hi")
    if lo is not None and hi is not None:
        axis.plot([after, after], [lo, hi], color=INK, linewidth=2.2, solid_capstyle="butt")
    if mean is not None:
        axis.plot(after, mean, "o", color=INK, markersize=7.5, markeredgewidth=0)
    step = max(1, len(seeds) // 12)
    shown = list(places)[::step]
    axis.set_xticks([*shown, after], [*(str(seeds[place]) for place in shown), words.say("plot.mean")])
    axis.set_xlim(-0.7, after + 0.7)
    axis.set_xlabel(words.say("plot.seed"))
    axis.set_title(words.say("plot.difference"))
    axis.grid(False, axis="x")
