"""How figures look: one fixed Okabe–Ito colour a drafter, text as paths, the same bytes each time."""

import io
import re
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

from matplotlib import font_manager, ft2font
from matplotlib.figure import Figure

from specledger.foundation.drafters import SPECS, base_of
from specledger.foundation.records import write_text
from specledger.reporting.fonts import Font

CLIP = re.compile(r"url\(#(p[0-9a-f]{10})\)")

# The page replaces these two by its own ink, so that a figure is as readable in the dark as in the light.
INK, GRID = "#1c1d21", "#86888f"

DRAFTER = {"none": INK, "target": INK} | {name: spec.colour for name, spec in SPECS.items()}
MODEL = {"plain": INK, "mtp": INK, "module": DRAFTER["mtp"], "draft": DRAFTER["draft"]}  # targets in ink
MARKER = {"none": "s"} | {name: spec.marker for name, spec in SPECS.items()}
GAIN, LOSS = "#009e73", "#e69f00"
PART = {
    "draft": "#e69f00", "catch_up": "#f0e442", "verify": "#56b4e9", "accept": "#cc79a7",
    "sync": "#999999", "other": "#b8bac0",
}  # fmt: skip
STEP = {"drift": "#56b4e9", "dependence": "#cc79a7", "ending": "#8a8d95"}
SPARE = ("#cc79a7", "#e69f00", "#56b4e9", "#f0e442")

RC = {
    "svg.hashsalt": "specledger", "svg.fonttype": "path", "font.family": "DejaVu Sans", "font.size": 9.5,
    "axes.edgecolor": GRID, "axes.labelcolor": INK, "axes.titlecolor": INK, "axes.titlesize": 10.5,
    "axes.titleweight": "bold", "axes.titlelocation": "left", "axes.linewidth": 0.8,
    "axes.spines.top": False, "axes.spines.right": False,
    "axes.grid": True, "axes.axisbelow": True, "grid.color": GRID, "grid.alpha": 0.28, "grid.linewidth": 0.7,
    "xtick.color": INK, "ytick.color": INK, "xtick.labelsize": 9, "ytick.labelsize": 9, "xtick.bottom": False,
    "ytick.left": False, "text.color": INK, "legend.frameon": False, "legend.fontsize": 9, "hatch.linewidth": 0.9,
    "lines.linewidth": 1.6, "figure.facecolor": "none", "axes.facecolor": "none", "savefig.facecolor": "none",
    "axes.unicode_minus": True, "mathtext.fontset": "stix", "path.simplify": False,
}  # fmt: skip


def drafter_colour(name: str) -> str:
    """The colour of a drafter, also of its trees; one that is not known yet gets a spare colour by its name."""
    name = base_of(name)
    return DRAFTER.get(name) or SPARE[sum(name.encode()) % len(SPARE)]


def drawable(text: str) -> str:
    """The text with characters that the figures' font lacks written as code points."""
    font = ft2font.FT2Font(font_manager.findfont("DejaVu Sans"))
    return "".join(one if font.get_char_index(ord(one)) else f"U+{ord(one):04X}" for one in text)


def with_font(font: Font | None) -> dict:
    """Settings under which letters that the figures' own font lacks are drawn with `font`."""
    if font is None:
        return {}
    known = {entry.name for entry in font_manager.fontManager.ttflist}
    if font.family not in known:
        for path in dict.fromkeys(path for path, _ in font.files):
            font_manager.fontManager.addfont(path)
    return {"font.family": ["DejaVu Sans", font.family]}


def save(figure: Figure, path: Path, language: str) -> None:
    """Write an SVG whose bytes depend on the figure alone; its metadata name the language of its words."""
    drawn = io.StringIO()
    figure.savefig(drawn, format="svg", metadata={"Date": None, "Creator": None, "Language": language})
    write_text(path, _with_steady_names(drawn.getvalue()))


def _with_steady_names(svg: str) -> str:
    """Clipping paths numbered as they come: their names are hashes of places, which a layout finds to rounding."""
    names = {name: f"clip{number}" for number, name in enumerate(dict.fromkeys(CLIP.findall(svg)), start=1)}
    return re.sub("|".join(names), lambda found: names[found[0]], svg) if names else svg
