"""The report on paper: the same document as the page, set by Typst with the fonts that it carries."""

import dataclasses
import json
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import typst
from matplotlib import ft2font, get_data_path

from specledger.foundation.records import written_whole
from specledger.reporting.document import Document
from specledger.reporting.formulas import FORMULAS, formula_svg
from specledger.reporting.report import build
from specledger.reporting.wording import TEMPLATES

MISSING_GLYPH = "\ufffd"
MOST_ROWS = 40  # of a table on paper; the CSV has them all
SIZE = re.compile(r'<svg[^>]*?\swidth="([\d.]+)pt"')


@cache
def printable() -> frozenset[int]:
    """Code points that Typst's embedded fonts have: at least those of DejaVu Sans Mono, which it carries."""
    path = Path(get_data_path()) / "fonts" / "ttf" / "DejaVuSansMono.ttf"
    return frozenset(ft2font.FT2Font(str(path)).get_charmap())


def _printed(text: str) -> str:
    """Text without characters that no embedded font has; newlines stay."""
    return "".join(one if one == "\n" or ord(one) in printable() else MISSING_GLYPH for one in text)


def _jsonable(value: object) -> object:
    """Dataclasses as objects, in printable characters; bytes are left out."""
    if isinstance(value, str):
        return _printed(value)
    if isinstance(value, bytes):
        return None
    if dataclasses.is_dataclass(value):
        fields = [field.name for field in dataclasses.fields(value) if field.metadata.get("paper", True)]
        return {name: _jsonable(getattr(value, name)) for name in fields}
    if isinstance(value, Mapping):
        return {key: _jsonable(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_jsonable(inner) for inner in value]
    return value


def _sheet(document: Document) -> dict:
    """data.json of the template; long tables are cut, and say so in the page's words."""
    found = _jsonable(document)
    views = [block for section in found["sections"] for block in section["blocks"] if block["kind"] == "table"]
    for view in views:
        if len(view["rows"]) > MOST_ROWS:
            view["rows"] = view["rows"][:MOST_ROWS]
            view["cut_note"] = document.words["cut"].format(shown=MOST_ROWS, total=view["total"])
    widths = {name: float(SIZE.search(formula_svg(name)).group(1)) for name in FORMULAS}
    contents = {key: value for key, value in found.items() if key != "words"}
    replaced = MISSING_GLYPH in json.dumps(contents, ensure_ascii=False)
    return {"document": found, "formula-widths": widths, "replaced": replaced}


def render(results: Path, figures: Path, provenance: Mapping, output: Path) -> None:
    """Write report.pdf from results/<study>, its figures and its provenance.

    UserError names a result file, figure or key that is missing. The bytes depend on the arguments alone.
    """
    document, study = build(results, figures, provenance)
    data = json.dumps(_sheet(document), sort_keys=True, allow_nan=False, ensure_ascii=False)
    sources = {"main.typ": (TEMPLATES / "report.typ").read_bytes(), "data.json": data.encode("utf-8")}
    sources |= {f"{name}.svg": svg.encode("utf-8") for name, svg in study.figures.items()}
    sources |= {f"formula-{name}.svg": formula_svg(name).encode("utf-8") for name in FORMULAS}
    # Only the fonts inside the wheel: those of the system differ from machine to machine.
    fonts = typst.Fonts(include_system_fonts=False, include_embedded_fonts=True)
    content = typst.compile(sources, format="pdf", font_paths=fonts)
    with written_whole(Path(output)) as temporary:
        temporary.write_bytes(content)
