"""The report as one HTML file: no request to anywhere, complete without JavaScript, the same bytes each time."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from specledger.foundation.records import write_text
from specledger.reporting.document import Download
from specledger.reporting.explorables import FILTERS, SCRIPTS, STYLES, packed
from specledger.reporting.formulas import FORMULAS, formula_svg
from specledger.reporting.report import build
from specledger.reporting.study import Study
from specledger.reporting.style import INK
from specledger.reporting.svg import SHADES, inlined, with_shared_glyphs
from specledger.reporting.wording import TEMPLATES

SAFE = ",;:/.-_()[]|!*=@+"  # what an address in a page may hold as it is
MAX_EMBEDDED = 170_000  # bytes of CSV that the page carries; what is beyond is named by its path


def data_url(content: bytes) -> str:
    """CSV bytes as an address that a link can download without any script."""
    return "data:text/csv;charset=utf-8," + quote(content, safe=SAFE)


@dataclass(frozen=True, kw_only=True)
class Link:
    """A download of the page: its address, or only the path where the page would grow too large."""

    name: str
    note: str
    url: str
    path: str


def links(downloads: tuple[Download, ...], results: Path) -> tuple[Link, ...]:
    """The smallest tables first, as long as they fit; in the order of `downloads`."""
    room, fitting = MAX_EMBEDDED, set()
    for item in sorted(downloads, key=lambda item: (len(item.content), item.name)):
        room -= len(item.content)
        if room >= 0:
            fitting.add(item.name)
    return tuple(
        Link(
            name=item.name,
            note=item.note,
            url=data_url(item.content) if item.name in fitting else "",
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
    environment.filters |= {**FILTERS, "packed": packed, "sortable": _sortable}
    return environment


def _sortable(value: float | str) -> float | str:
    """What a cell is sorted by, to seven digits: a page has thousands of them."""
    return f"{value:.7g}" if isinstance(value, float) else value


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
    downloads = links(document.downloads, study.results)
    text = (
        _environment()
        .get_template("index.html.j2")
        .render(
            document=document,
            downloads=downloads,
            whole=all(link.url for link in downloads),
            glyphs=Markup(glyphs),
            pictures={name: Markup(svg) for name, svg in drawings.items()},
            english_figures=not document.lang.startswith(study.figures_language),
            colours={"currentColor": INK, **{shade: colour for colour, shade in SHADES.items()}},
            meanings={f"#word-{word.id}": word.plain for word in document.glossary},
            style=Markup("\n").join(_files(("page.css", *STYLES))),
            scripts=_files((*SCRIPTS, "takeaway.js")),
        )
    )
    write_text(Path(output), text)
