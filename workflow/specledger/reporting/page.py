"""The report as one HTML file: no request to anywhere, complete without JavaScript, the same bytes each time."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from specledger.foundation.records import write_text
from specledger.reporting.document import Download
from specledger.reporting.drafter_css import drafter_css
from specledger.reporting.explorables import FILTERS, SCRIPTS, STYLES, carried
from specledger.reporting.formats import visible
from specledger.reporting.formulas import FORMULAS, formula_svg
from specledger.reporting.report import build
from specledger.reporting.study import Study
from specledger.reporting.style import INK
from specledger.reporting.svg import SHADES, inlined, with_shared_glyphs
from specledger.reporting.wording import TEMPLATES

SAFE = ",;:/.-_()[]|!*=@+"  # what an address in a page may hold as it is
MOST_BYTES = 2_990_000  # of the page; tables that would go beyond are named by their paths


def data_url(content: bytes) -> str:
    """CSV bytes as an address that a link can download without any script."""
    return "data:text/csv;charset=utf-8," + quote(content, safe=SAFE)


@dataclass(frozen=True, kw_only=True)
class Link:
    """A download of the page: its address; without one, the path of what was too large."""

    name: str
    note: str
    url: str
    path: str


def links(downloads: tuple[Download, ...], results: Path, room: int) -> tuple[Link, ...]:
    """Every table as an address, the smallest first, as long as `room` bytes last."""
    urls = {item.name: data_url(item.content) for item in downloads}
    held = set()
    for name in sorted(urls, key=lambda name: (len(urls[name]), name)):
        if len(urls[name]) <= room:
            held.add(name)
            room -= len(urls[name])
    return tuple(
        Link(
            name=item.name,
            note=item.note,
            url=urls[item.name] if item.name in held else "",
            path=f"{results.parent.name}/{results.name}/tables/{item.name}.csv",
        )
        for item in downloads
    )


def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES, encoding="utf-8"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
        keep_trailing_newline=True,
    )
    environment.filters |= {**FILTERS, "carried": carried, "sortable": _sortable}
    return environment


def _sortable(value: float | str) -> float | str:
    """What a cell is sorted by, to six digits: a page has thousands of them. HTML can't hold every character."""
    return f"{value:.6g}" if isinstance(value, float) else visible(value) if isinstance(value, str) else value


def _drawings(study: Study) -> dict[str, str]:
    """Every figure and formula by the prefix of its ids, made fit for the page."""
    found = {name: inlined(svg, name) for name, svg in study.figures.items()}
    return found | {f"formula-{name}": inlined(formula_svg(name), f"formula-{name}") for name in FORMULAS}


def _files(names: tuple[str, ...]) -> list[Markup]:
    """Our own styles or scripts, which go into the page as they are."""
    return [Markup((TEMPLATES / name).read_text(encoding="utf-8")) for name in names]


def render(results: Path, figures: Path, provenance: Mapping, output: Path) -> None:
    """Write index.html from results/<study>, its figures and its provenance.

    UserError names a result file, figure or key that is missing. The bytes depend on the arguments alone.
    """
    document, study = build(results, figures, provenance)
    glyphs, drawings = with_shared_glyphs(_drawings(study))
    template = _environment().get_template("index.html.j2")
    values = {
        "document": document,
        "glyphs": Markup(glyphs),
        "pictures": {name: Markup(svg) for name, svg in drawings.items()},
        "english_figures": not document.lang.startswith(study.figures_language),
        "colours": {"currentColor": INK, **{shade: colour for colour, shade in SHADES.items()}},
        "meanings": {f"#word-{word.id}": word.plain for word in document.glossary},
        "style": Markup("\n").join((*_files(("page.css", *STYLES)), Markup(drafter_css()))),
        "scripts": _files((*SCRIPTS, "takeaway.js")),
    }

    def with_tables(room: int) -> str:
        downloads = links(document.downloads, study.results, room)
        return template.render(downloads=downloads, whole=all(link.url for link in downloads), **values)

    text = with_tables(MOST_BYTES - len(with_tables(0).encode("utf-8")))
    write_text(Path(output), text)
