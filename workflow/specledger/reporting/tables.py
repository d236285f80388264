"""Result tables as plain, frozen rows: read once, strictly, and never interpreted twice."""

import csv
import io
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from specledger.foundation.errors import UserError
from specledger.tables import columns as declared
from specledger.tables.registry import TABLES

TEXT = {name for name, kind in declared.KINDS.items() if kind.type == declared.TEXT}  # of files that nothing declares
Row = Mapping[str, object]


@dataclass(frozen=True, kw_only=True)
class Table:
    """A CSV file: its rows with typed cells (None is missing), and its bytes as they lie on disk."""

    name: str
    columns: tuple[str, ...]
    rows: tuple[Row, ...]
    content: bytes

    def where(self, **wanted: object) -> tuple[Row, ...]:
        """The rows whose cells equal all of `wanted`."""
        return tuple(row for row in self.rows if all(row.get(key) == value for key, value in wanted.items()))

    def values(self, column: str) -> tuple:
        """The distinct values of a column, in their order of appearance."""
        return tuple(dict.fromkeys(row[column] for row in self.rows))


def _typed(text: str, is_text: bool) -> object:
    if text == "":
        return None
    if is_text:
        return text
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    value = float(text)
    if math.isnan(value):
        return None
    return int(value) if value.is_integer() and abs(value) < 2**53 else value


def _cell(path: Path, row: int, column: str, text: str, *, is_text: bool, strict: bool) -> object:
    """The typed cell; UserError names where text stands in place of a number that the report reads."""
    try:
        return _typed(text, is_text)
    except ValueError:
        if not strict:
            return text
        raise UserError(
            f"{path}: row {row}, column {column}: {text[:60]!r} — must be a number, true, false or empty; "
            "delete it and run snakemake again"
        ) from None


def require(path: Path) -> Path:
    """The path itself; UserError naming it when there is no such file."""
    if not path.is_file():
        raise UserError(f"{path}: missing; run snakemake again, it makes what is missing")
    return path


def read_table(path: Path, required: str = "", *, table: declared.Table | None = None) -> Table:
    """A CSV table; UserError names the file and the column or row that it lacks.

    table: declares the file, or `required` names the columns that must be there.
    """
    needed = table.names if table else required.split()
    textual = {name for name, kind in table.kinds.items() if kind.type == declared.TEXT} if table else TEXT
    content = require(path).read_bytes()
    try:
        lines = list(csv.reader(io.StringIO(content.decode("utf-8"), newline="")))
    except (UnicodeDecodeError, csv.Error) as error:
        raise UserError(f"{path}: not a UTF-8 CSV table ({error})") from None
    columns = tuple(lines[0]) if lines else ()
    absent = [name for name in needed if name not in columns]
    if absent:
        raise UserError(f"{path}: column {absent[0]} is missing")
    if any(len(line) != len(columns) for line in lines[1:]):
        raise UserError(f"{path}: a row has another number of cells than the header")
    if len(lines) == 1 and not (table and table.may_be_empty):
        raise UserError(f"{path}: holds no rows")
    must = set(needed) - textual
    rows = tuple(
        MappingProxyType(
            {
                name: _cell(path, number, name, cell, is_text=name in textual, strict=name in must)
                for name, cell in zip(columns, line, strict=True)
            }
        )
        for number, line in enumerate(lines[1:], start=1)
    )
    return Table(name=path.stem, columns=columns, rows=rows, content=content)


def read_object(path: Path) -> dict:
    """A JSON object; UserError names the file that is missing or broken."""
    try:
        value = json.loads(require(path).read_text(encoding="utf-8"))
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise UserError(f"{path}: not valid JSON ({error})") from None
    if not isinstance(value, dict):
        raise UserError(f"{path}: expected a JSON object, got {type(value).__name__}")
    return value


def read_tables(results: Path) -> Mapping[str, Table]:
    """Every table of results/<study>/tables that the report reads."""
    return MappingProxyType(
        {name: read_table(results / "tables" / f"{name}.csv", table=table) for name, table in TABLES.items()}
    )
