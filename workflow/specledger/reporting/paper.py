"""The report on paper: the same document as the page, set by Typst with the fonts that it carries.

Chinese letters need a font of the machine. Without one a Chinese report is set in English, and says so.
"""

import dataclasses
import json
import re
import tempfile
from collections.abc import Container, Mapping
from functools import cache
from pathlib import Path

import typst
from matplotlib import ft2font, get_data_path

from specledger.foundation.records import written_whole
from specledger.reporting import fonts
from specledger.reporting.document import Document
from specledger.reporting.formulas import FORMULAS, formula_svg
from specledger.reporting.report import build, language
from specledger.reporting.study import Study
from specledger.reporting.wording import TEMPLATES

MISSING_GLYPH = "\ufffd"
ANYTHING = range(0x110000)  # every code point
UNPRINTED = frozenset({"words", "downloads"})  # parts of the document that are not on paper
OFF_PAPER = frozenset({"explorable", "questions", "words", "code"})  # kinds of blocks that only the page has room for
MOST_ROWS = 8  # of a table on paper; the page and the CSV have them all
WHOLE = frozenset({"systems"})  # tables that are never cut, as the claims are not
SIZE = re.compile(r'<svg[^>]*?\swidth="([\d.]+)pt"')


@cache
def carried() -> frozenset[int]:
    """Code points that Typst's embedded fonts have: at least those of DejaVu Sans Mono, which it carries."""
    path = Path(get_data_path()) / "fonts" / "ttf" / "DejaVuSansMono.ttf"
    return frozenset(ft2font.FT2Font(str(path)).get_charmap())


def _on_paper(value: object) -> object:
    """What only the page has room for is left out: explorables, questions, the glossary, the configuration."""
    if not isinstance(value, tuple) or not value or not hasattr(value[0], "kind"):
        return value
    return tuple(block for block in value if block.kind not in OFF_PAPER)


def _jsonable(value: object, printable: Container[int]) -> object:
    """Dataclasses as objects, letters that no font has as �; bytes are left out."""
    if isinstance(value, str):
        return "".join(one if one == "\n" or ord(one) in printable else MISSING_GLYPH for one in value)
    if isinstance(value, bytes):
        return None
    if dataclasses.is_dataclass(value):
        return {
            field.name: _jsonable(_on_paper(getattr(value, field.name)), printable)
            for field in dataclasses.fields(value)
        }
    if isinstance(value, Mapping):
        return {key: _jsonable(inner, printable) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_jsonable(inner, printable) for inner in value]
    return value


def _views(found: dict) -> list[dict]:
    """The tables that may be cut."""
    folds = [fold for section in found["sections"] for fold in section["folds"]] + found["appendix"]
    blocks = [block for fold in folds for block in fold["blocks"]]
    return [block for block in blocks if block["kind"] == "table" and block["name"] not in WHOLE]


def sheet(document: Document, font: fonts.Font | None, notice: str = "") -> dict:
    """data.json of the template; long tables are cut, and say so in the page's words."""
    found = _jsonable(document, carried() | (fonts.letters(font) if font else frozenset()))
    for view in _views(found):
        if len(view["rows"]) > MOST_ROWS:
            view["rows"] = view["rows"][:MOST_ROWS]
            view["cut_note"] = document.words["cut"].format(shown=MOST_ROWS, total=view["total"])
    for group in (found["claims"] or {}).get("groups", ()):  # one line per value: the page has its rule and its reason
        for row in group["view"]["rows"]:
            row[1]["note"] = ""
    widths = {name: float(SIZE.search(formula_svg(name)).group(1)) for name in FORMULAS}
    contents = {key: value for key, value in found.items() if key not in UNPRINTED}
    replaced = MISSING_GLYPH in json.dumps(contents, ensure_ascii=False)
    font_name = font.family if font else ""
    return {"document": found, "formula-widths": widths, "replaced": replaced, "notice": notice, "font": font_name}


def _compiled(document: Document, study: Study, font: fonts.Font | None, notice: str) -> bytes:
    data = json.dumps(sheet(document, font, notice), sort_keys=True, allow_nan=False, ensure_ascii=False)
    sources = {"main.typ": (TEMPLATES / "report.typ").read_bytes(), "data.json": data.encode("utf-8")}
    sources |= {f"{name}.svg": svg.encode("utf-8") for name, svg in study.figures.items()}
    sources |= {f"formula-{name}.svg": formula_svg(name).encode("utf-8") for name in FORMULAS}
    with tempfile.TemporaryDirectory(prefix="specledger-fonts-") as folder:
        for path in dict.fromkeys(path for path, _ in font.files) if font else ():
            (Path(folder) / Path(path).name).symlink_to(path)
        # Only the fonts inside the wheel and the one chosen: those of the system differ from machine to machine.
        found = typst.Fonts(include_system_fonts=False, include_embedded_fonts=True, font_paths=[folder])
        return typst.compile(sources, format="pdf", font_paths=found, pdf_standards="ua-1")


def _foreign(document: Document) -> bool:
    """Whether a letter comes that Typst's own fonts lack: in the corpus, a name, or the language."""
    contents = {key: value for key, value in _jsonable(document, ANYTHING).items() if key not in UNPRINTED}
    return any(ord(one) not in carried() for one in json.dumps(contents, ensure_ascii=False) if one > "~")


def render(results: Path, figures: Path, provenance: Mapping, output: Path) -> None:
    """Write report.pdf from results/<study>, its figures and its provenance.

    UserError names a result file, figure or key that is missing. The bytes depend on the arguments alone, and on
    the machine's font where Chinese letters come.
    """
    document, study = build(results, figures, provenance)
    font, notice = (fonts.for_paper() if _foreign(document) else None), ""
    if language(provenance) not in fonts.NEEDS_NONE and font is None:
        config = {**provenance["config"], "report": {"language": "en"}}
        document, study = build(results, figures, {**provenance, "config": config})
        notice = document.words["english_paper"]
    content = _compiled(document, study, font, notice)
    with written_whole(Path(output)) as temporary:
        temporary.write_bytes(content)
