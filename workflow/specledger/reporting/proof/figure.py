"""The p-values of many positions: a histogram a drafter beside what chance alone gives."""

from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from scipy import stats

from specledger.reporting.ledger.figure import ACROSS, DASH, grid
from specledger.reporting.style import GRID, INK, drafter_colour
from specledger.reporting.tables import Row, Table
from specledger.reporting.wording import Wording

BAND = 0.99  # of a bin's count, if the p-values are uniform


def _histogram(axis: Axes, drafter: str, rows: tuple[Row, ...], words: Wording) -> None:
    """Counts by bin over the band that a binomial count keeps to."""
    total = sum(row["count"] for row in rows)
    for row in rows:
        width = row["bin_hi"] - row["bin_lo"]
        style = {"color": drafter_colour(drafter), "linewidth": 0, "zorder": 2}
        axis.bar(row["bin_lo"] + width / 2, row["count"], 0.8 * width, **style)
    low, high = stats.binom.interval(BAND, total, 1 / len(rows))
    axis.axhspan(low, high, color=GRID, alpha=0.3, linewidth=0, zorder=1)
    for end in (low, high):
        axis.axhline(end, color=INK, linewidth=0.7, zorder=3)
    axis.axhline(total / len(rows), color=INK, linewidth=1.3, linestyle=DASH, zorder=3)
    axis.set_xlim(0, 1)
    axis.set_xticks([0, 0.5, 1], ["0", "0.5", "1"])
    axis.set_title(words.name("drafter", drafter))
    axis.grid(False, axis="x")


def draw_p_values(table: Table, words: Wording) -> Figure:
    """A panel a drafter: flat bars are what an exact rule gives."""
    drafters = [name for name in table.values("drafter") if name != "all"]
    figure, axes = grid(len(drafters), 2.25 if len(drafters) <= ACROSS else 1.75)
    for axis, drafter in zip(axes, drafters, strict=True):
        _histogram(axis, drafter, table.where(drafter=drafter), words)
    for axis in axes[-ACROSS:]:
        axis.set_xlabel(words.say("plot.p_value"))
    figure.supylabel(words.say("plot.positions"), fontsize=9)
    handles = [
        Line2D([], [], color=INK, linewidth=1.2, linestyle=DASH, label=words.say("plot.expected")),
        Patch(
            facecolor=(*to_rgb(GRID), 0.3),
            edgecolor=INK,
            linewidth=0.7,
            label=words.say("plot.band", share=f"{100 * BAND:.0f}%"),
        ),
    ]
    figure.legend(handles=handles, loc="outside upper left", ncols=2, columnspacing=1.6)
    return figure
