"""Pages apart from a study's report: plain HTML that asks for nothing, from a template and the report's style."""

from collections.abc import Callable, Mapping
from importlib import metadata
from pathlib import Path

from specledger.foundation.errors import UserError
from specledger.foundation.records import write_text
from specledger.foundation.version import VERSION


def template_file(name: str) -> Path:
    """A file of workflow/report/: beside the package in a checkout, among the wheel's data where it is installed."""
    beside = Path(__file__).resolve().parents[2] / "report" / name
    if beside.is_file():
        return beside
    for file in metadata.files("specledger") or []:
        if file.name == name and file.parent.name == "specledger":
            return Path(file.locate())
    raise UserError(f"{name}: missing from the installation; install specledger again")


def write_page(path: Path, template: str, filters: Mapping[str, Callable], **values: object) -> None:
    """Write the page that a template makes of `values`, and of the style and the version."""
    from jinja2 import Environment, FileSystemLoader, select_autoescape

    folder = str(template_file(template).parent)
    environment = Environment(
        loader=FileSystemLoader(folder), autoescape=select_autoescape(["html", "j2"]), trim_blocks=True
    )
    environment.filters |= filters
    style = template_file("page.css").read_text(encoding="utf-8")
    write_text(path, environment.get_template(template).render(style=style, version=VERSION, **values))
