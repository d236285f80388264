"""SVG files made fit to lie inside a page."""

import re
from collections.abc import Mapping

from specledger.reporting.style import DRAFTER, GRID, INK

# The page has its own shade of each, lighter in the dark; the hue stays.
SHADES = {GRID: "var(--figure-grid)", **{DRAFTER[name]: f"var(--{name})" for name in ("draft", "mtp", "ngram")}}
PATHS = re.compile(r'(?<=\s)d="[^"]+"')
LONG_DECIMALS = re.compile(r"\d+\.\d{3,}")


def _shorter(match: re.Match) -> str:
    """The path with its numbers to a hundredth of a point, finer than any screen."""
    return LONG_DECIMALS.sub(lambda found: f"{float(found[0]):.2f}".rstrip("0").rstrip("."), match[0])


GLYPH = re.compile(r'<path id="([^"]+)" (d="[^"]*"(?: transform="[^"]*")?)/>')


def with_shared_glyphs(svgs: Mapping[str, str]) -> tuple[str, dict[str, str]]:
    """One set of letters for all inlined figures, and the figures without theirs.

    Every figure brings the outlines of its letters; on a page with many figures those are most of its bytes.
    """
    outlines: dict[str, str] = {}
    found = {prefix: _without_glyphs(svg, f"{prefix}-", outlines) for prefix, svg in svgs.items()}
    paths = "".join(f'<path id="{name}" {rest}/>\n' for name, rest in sorted(outlines.items()))
    return f'<svg aria-hidden="true" class="hidden" width="0" height="0"><defs>\n{paths}</defs></svg>', found


def _without_glyphs(svg: str, prefix: str, outlines: dict[str, str]) -> str:
    """The figure with its letters moved to `outlines`; one whose name means another shape there stays."""
    moved = set()

    def taken(match: re.Match) -> str:
        name = match[1].removeprefix(prefix)
        if outlines.setdefault(name, match[2]) != match[2]:
            return match[0]
        moved.add(name)
        return ""

    def led(match: re.Match) -> str:
        return f'href="#{match[1]}"' if match[1] in moved else match[0]

    return re.sub(rf'href="#{re.escape(prefix)}([^"]+)"', led, GLYPH.sub(taken, svg))


def inlined(svg: str, prefix: str) -> str:
    """The <svg> element alone: ids made unique, the figures' ink and grid handed over to the page's colours.

    Ids repeat between files; the element is hidden from screen readers, whose text is the figure's own label.
    """
    body = svg[svg.index("<svg") :].strip()
    body = re.sub(r"<metadata>.*?</metadata>|<!--.*?-->", "", body, flags=re.DOTALL)
    body = re.sub(r'\sid="([^"]+)"', rf' id="{prefix}-\1"', body)
    body = re.sub(r'(href="#|url\(#)', rf"\1{prefix}-", body)
    body = re.sub(re.escape(INK), "currentColor", body, flags=re.IGNORECASE)
    for colour, shade in SHADES.items():
        body = re.sub(re.escape(colour), shade, body, flags=re.IGNORECASE)
    body = PATHS.sub(_shorter, body)
    body = re.sub(r"\n\s*", "\n", body)
    return re.sub(r"<svg ", '<svg aria-hidden="true" focusable="false" ', body, count=1)
