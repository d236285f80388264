"""SVG files made fit to lie inside a page."""

import re
from collections.abc import Mapping

from specledger.foundation.drafters import SPECS
from specledger.reporting.style import GRID, INK

# The page has its own shade of each, lighter in the dark; the hue stays.
SHADES = {
    GRID: "var(--figure-grid)",
    **{spec.colour: f"var(--{name})" for name, spec in SPECS.items() if spec.dark != spec.colour},
}
PATHS = re.compile(r'(?<=\s)d="[^"]+"')
PLACES = re.compile(r'translate\([^)]*\)|\s(?:x|y|x1|x2|y1|y2|width|height)="[\d.]+"')
STYLE = re.compile(r'style="[^"]*"')
# A line of the grid ends inside its panel: it needs neither a clip nor caps.
GRIDLINE = re.compile(
    r'(<path d="[^"]*") clip-path="[^"]*" '
    r'style="fill:none;stroke:var\(--figure-grid\);stroke-opacity:0.28;stroke-width:0.7;stroke-linecap:square"/>'
)
LONG_DECIMALS = re.compile(r"\d+\.\d{3,}")


def _shorter(match: re.Match) -> str:
    """Numbers to a twentieth of a point, finer than any screen, and lines of a path without their breaks."""
    text = LONG_DECIMALS.sub(lambda found: f"{float(found[0]):.1f}".rstrip("0").rstrip("."), match[0])
    return re.sub(r"\s*\n\s*", "", text)


GLYPH = re.compile(r'<path id="([^"]+)" (d="[^"]*"(?: transform="[^"]*")?)/>')


def with_shared_glyphs(svgs: Mapping[str, str]) -> tuple[str, dict[str, str]]:
    """One set of letters for all inlined figures, and the figures without theirs.

    Every figure brings the outlines of its letters; on a page with many figures those are most of its bytes.
    """
    outlines: dict[str, str] = {}
    found = {prefix: _without_glyphs(svg, f"{prefix}-", outlines) for prefix, svg in svgs.items()}
    short = {name: f"g{number}" for number, name in enumerate(sorted(outlines))}
    found = {prefix: _with_short_letters(svg, short) for prefix, svg in found.items()}
    paths = "".join(f'<path id="{short[name]}" {rest}/>\n' for name, rest in sorted(outlines.items()))
    return f'<svg aria-hidden="true" class="hidden" width="0" height="0"><defs>\n{paths}</defs></svg>', found


LETTER = re.compile(r'(<use href="#[^"]+") transform="translate\(([-\d.]+) 0\)"/>')


def _with_short_letters(svg: str, short: Mapping[str, str]) -> str:
    """The uses of letters in few bytes: every letter of a figure's texts is one."""
    svg = LETTER.sub(r'\1 x="\2"/>', svg)
    return re.sub(r'href="#([^"]+)"', lambda match: f'href="#{short.get(match[1], match[1])}"', svg)


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

    found = re.sub(r"<defs>\s*</defs>", "", GLYPH.sub(taken, svg))
    return re.sub(r"\n{2,}", "\n", re.sub(rf'href="#{re.escape(prefix)}([^"]+)"', led, found))


def _without_bare_groups(body: str) -> str:
    """The body without <g> elements that say nothing; matplotlib puts each shape into one."""
    kept, bare, end = [], [], 0
    for match in re.finditer(r"<g(\s[^>]*)?(?<!/)>|</g>", body):
        kept.append(body[end : match.start()])
        end = match.end()
        if match[0] == "</g>":
            kept.append("" if bare.pop() else match[0])
        else:
            bare.append(match[1] is None)
            kept.append("" if bare[-1] else match[0])
    return "".join(kept) + body[end:]


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
    led = set(re.findall(r'(?:href="|url\()#([^")]+)', body))
    body = re.sub(r'\sid="([^"]+)"', lambda match: match[0] if match[1] in led else "", body)
    body = PATHS.sub(_shorter, body)
    body = PLACES.sub(_shorter, body)
    body = STYLE.sub(
        lambda match: match[0].replace("; stroke-linejoin: miter", "").replace(": ", ":").replace("; ", ";"), body
    )
    body = GRIDLINE.sub(rf'\1 style="stroke:{SHADES[GRID]};stroke-opacity:0.28;stroke-width:0.7"/>', body)
    # Letters and lines without a colour of their own take the ink from the whole.
    body = body.replace('<g style="fill:currentColor" transform=', "<g transform=")
    body = _without_bare_groups(body)
    body = re.sub(r"<g/>|<defs>\s*</defs>", "", body).replace("xlink:href=", "href=")
    body = re.sub(r"\s*\n\s*", "\n", body)
    return re.sub(r"<svg ", '<svg aria-hidden="true" focusable="false" fill="currentColor" ', body, count=1)
