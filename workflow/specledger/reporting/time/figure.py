"""Figures of theory against clock, of the waterfall from forwards to time, and of other programs on our weights."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter, MaxNLocator, NullFormatter

from specledger.reporting import formats
from specledger.reporting.labels import main_rows, place_of
from specledger.reporting.ledger.figure import DASH, WIDTH
from specledger.reporting.style import GAIN, GRID, INK, LOSS, MARKER, drafter_colour
from specledger.reporting.tables import Row, Table
from specledger.reporting.wording import Wording

NEAR = 0.05  # the band around the diagonal within which the model is meant to fall
TIMES = FuncFormatter(lambda value, _: f"{value:g}×")


def _span(rows: Sequence[Row]) -> tuple[float, float]:
    """From below the least to above the largest of all that is drawn."""
    values = [row[name] for row in rows for name in ("measured", "cost_model", "theorem38") if row[name] is not None]
    return 0.9 * min([*values, 1.0]), 1.06 * max([*values, 1.0])


def _against(axis: Axes, rows: Sequence[Row], span: tuple[float, float]) -> None:
    """Predicted over measured: open markers are Theorem 3.8, full ones the measured costs."""
    ends = np.array(span)
    axis.fill_between(ends, (1 - NEAR) * ends, (1 + NEAR) * ends, color=GRID, alpha=0.25, linewidth=0, zorder=1)
    axis.plot(ends, ends, color=INK, linewidth=1.0, linestyle=DASH, zorder=2)
    for row in rows:
        colour, marker = drafter_colour(row["drafter"]), MARKER.get(row["drafter"], "o")
        shared = {"marker": marker, "color": colour, "linestyle": ""}
        if row["theorem38"] is not None:
            axis.plot(row["measured"], row["theorem38"], **shared, fillstyle="none", markersize=5.4, zorder=3)
        axis.plot(row["measured"], row["cost_model"], **shared, markersize=5.6, markeredgewidth=0, zorder=4)
    axis.set_xlim(span)
    axis.set_ylim(span)
    axis.set_aspect("equal")
    for one in (axis.xaxis, axis.yaxis):
        one.set_major_locator(MaxNLocator(5))
        one.set_major_formatter(TIMES)


def draw_theory(table: Table, words: Wording) -> Figure:
    """Predicted against measured speed-up, a panel an engine, with the diagonal on which both agree."""
    engines = table.values("engine")
    figure = Figure(figsize=(WIDTH, 1.15 + 7.2 / max(len(engines), 2)), layout="constrained")
    axes = figure.subplots(1, max(len(engines), 1), squeeze=False)[0]
    for axis, engine in zip(axes, engines, strict=False):
        rows = main_rows(table.where(engine=engine))
        _against(axis, rows, _span(rows))
        axis.set_title(words.name("engine_rule", engine))
        axis.set_xlabel(words.say("plot.measured_speedup"))
    axes[0].set_ylabel(words.say("plot.predicted_speedup"))
    drafters = sorted({row["drafter"] for row in main_rows(table.rows)}, key=place_of)
    handles = [
        Line2D([], [], linestyle="", marker=MARKER.get(name, "o"), color=drafter_colour(name), label=label)
        for name, label in ((name, words.name("drafter", name)) for name in drafters)
    ]
    for style, key in (("full", "cost_model"), ("none", "theorem38")):
        label = words.say(f"plot.{key}")
        handles.append(Line2D([], [], linestyle="", marker="o", color=INK, fillstyle=style, label=label))
    handles.append(Patch(facecolor=GRID, alpha=0.4, label=words.say("plot.near", share=formats.percent(NEAR))))
    figure.legend(handles=handles, loc="outside upper left", ncols=4, handletextpad=0.4, columnspacing=1.4)
    return figure


def _steps(axis: Axes, rows: Sequence[Row], words: Wording) -> None:
    """Bars from ratio to ratio on a log axis, so that equal factors are equally long."""
    for place, row in enumerate(rows):
        before, after = row["ratio_before"], row["ratio_after"]
        colour = GAIN if after >= before else LOSS
        axis.barh(place, after - before, left=before, height=0.62, color=colour, linewidth=0, zorder=2)
        axis.plot([after, after], [place - 0.31, place + 1.31], color=INK, linewidth=0.8, zorder=3)
        axis.text(
            1.02, place, f"× {formats.number(row['factor'], 3)}", transform=axis.get_yaxis_transform(),
            va="center", ha="left", fontsize=8.5,
        )  # fmt: skip
    last = rows[-1]["ratio_after"]
    axis.barh(len(rows), last - 1, left=1, height=0.62, color=INK, linewidth=0, zorder=2)
    axis.text(
        1.02, len(rows), formats.times(last), transform=axis.get_yaxis_transform(), va="center", ha="left", fontsize=8.5
    )
    axis.axvline(1, color=INK, linewidth=1.0, zorder=1)
    axis.set_xscale("log")
    ends = [row[name] for row in rows for name in ("ratio_before", "ratio_after")]
    axis.set_xlim(0.92 * min(*ends, 1), 1.06 * max(*ends, 1))
    low, high = axis.get_xlim()
    ticks = [tick for tick in (0.25, 0.5, 0.75, 1, 1.5, 2, 3, 4, 5, 6, 8) if low <= tick <= high]
    axis.set_xticks(ticks, [f"{tick:g}×" for tick in ticks])
    axis.xaxis.set_minor_formatter(NullFormatter())
    axis.tick_params(which="minor", length=0)
    names = [words.name("step", row["step"]) for row in rows]
    axis.set_yticks(range(len(rows) + 1), [*names, words.say("plot.speedup_short")])
    axis.set_ylim(len(rows) + 0.5, -0.6)
    axis.grid(False, axis="y")


def draw_waterfall(table: Table, words: Wording) -> Figure:
    """From forwards saved to time saved, for the best and the worst row of the study."""
    groups = [table.where(overall=True, case=case) for case in ("best", "worst")]
    groups = [rows for rows in groups if rows]
    figure = Figure(figsize=(WIDTH, 3.3), layout="constrained")
    axes = figure.subplots(1, max(len(groups), 1), sharey=True, squeeze=False)[0]
    figure.get_layout_engine().set(wspace=0.04)
    for axis, rows in zip(axes, groups, strict=False):
        _steps(axis, rows, words)
        row = rows[0]
        names = {"drafter": words.name("drafter", row["drafter"]), "size": words.size(row["drafter"], row["gamma"])}
        title = words.say(f"plot.{row['case']}_row", engine=words.name("engine", row["engine"]), **names)
        axis.set_title(title, fontsize=9.5)
    return figure


def draw_peers(peers: Table, words: Wording) -> Figure:
    """Tokens per second of ours and of other programs on the same weights, with intervals."""
    rows = sorted(peers.rows, key=lambda row: row["tokens_per_s"])
    figure = Figure(figsize=(WIDTH, 1.1 + 0.3 * len(rows)), layout="constrained")
    axis = figure.subplots()
    for place, row in enumerate(rows):
        colour = GAIN if row["program"] == "specledger" else GRID
        axis.barh(place, row["tokens_per_s"], height=0.66, color=colour, linewidth=0, zorder=2)
        if row["seconds_lo"] and row["seconds_hi"]:
            ends = [row["tokens"] / row[name] for name in ("seconds_hi", "seconds_lo")]
            axis.plot(ends, [place, place], color=INK, linewidth=1.3, zorder=3)
    axis.set_yticks(range(len(rows)), [peer_name(row, words) for row in rows])
    axis.set_xlabel(words.say("plot.tokens_per_second"))
    axis.grid(False, axis="y")
    return figure


def peer_name(row: Row, words: Wording) -> str:
    """A program and what it did, as in "transformers: assisted generation, draft model, γ = 4"."""
    parts = [words.name("engine", row["engine"])] if row["engine"] else []
    parts.append(words.name("peer_method", row["method"]))
    if row["drafter"] not in (None, "none"):
        parts.append(words.name("drafter", row["drafter"]))
    if row["gamma"]:
        parts.append(words.size(row["drafter"], row["gamma"]))
    return f"{row['program']}: {', '.join(dict.fromkeys(parts))}"
