"""The report as one HTML file: no request to anywhere, complete without JavaScript, the same bytes each time."""

import base64
from collections.abc import Mapping
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from specledger.foundation.errors import UserError
from specledger.foundation.records import write_text
from specledger.reporting.formulas import formula_svg
from specledger.reporting.report import build
from specledger.reporting.svg import inlined, width_of
from specledger.reporting.wording import TEMPLATES

SCRIPTS = ("tables.js",)
MAX_BYTES = 1_500_000


def data_url(content: bytes) -> str:
    """CSV bytes as an address that a link can download without any script."""
    return "data:text/csv;charset=utf-8;base64," + base64.b64encode(content).decode("ascii")


def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES, encoding="utf-8"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
        keep_trailing_newline=True,
    )
    environment.filters["data_url"] = data_url
    return environment


def _formula(name: str) -> Markup:
    return Markup(inlined(formula_svg(name), f"formula-{name}"))


def render(results: Path, figures: Path, provenance: Mapping, output: Path) -> None:
    """Write index.html from results/<study>, its figures and its provenance.

    UserError names a result file, figure or key that is missing. The bytes depend on the arguments alone.
    """
    document, study = build(results, figures, provenance)
    pictures = {name: Markup(inlined(svg, name)) for name, svg in study.figures.items()}
    widths = {name: width_of(svg) for name, svg in study.figures.items()}
    text = _environment().get_template("index.html.j2").render(
        document=document,
        pictures=pictures,
        widths=widths,
        formula=_formula,
        style=Markup((TEMPLATES / "page.css").read_text(encoding="utf-8")),
        scripts=[Markup((TEMPLATES / name).read_text(encoding="utf-8")) for name in SCRIPTS],
    )
    size = len(text.encode("utf-8"))
    if size > MAX_BYTES:
        raise UserError(f"{output}: the page has {size:,} bytes, more than {MAX_BYTES:,}; ask for fewer seeds or methods")
    write_text(Path(output), text)
