"""The reader of observations, which holds each cell against the kind that its column is declared to be."""

import csv
import math
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pandas as pd

from specledger.foundation.errors import UserError
from specledger.tables.columns import KINDS, NUMBER, TEXT, TRUTH, WHOLE, Kind
from specledger.tables.raw import CHOICES, NO_MORE_THAN


def _wrong(kind: Kind, values: np.ndarray) -> np.ndarray:
    """Which of these numbers are none that the kind allows; NaN stands for an empty cell."""
    with np.errstate(invalid="ignore"):
        bad = (values < kind.low) | (values > kind.high) | (kind.above & (values <= kind.low))
        if not kind.endless:
            bad |= np.isinf(values)
        if kind.type == WHOLE:  # a float holds each whole number up to 2**53
            bad |= (values != np.floor(values)) | (np.abs(values) > 2**53)
    return np.where(np.isnan(values), not kind.empty, bad)


def _refuse(path: Path, row: int, column: str, value: object, allowed: object) -> None:
    raise UserError(
        f"{path}: row {row}, column {column}: {str(value)[:60]!r} — {allowed}; delete it and run snakemake again"
    )


def _typed(path: Path, name: str, cells: pd.Series, kind: Kind) -> pd.Series:
    """A column of text as what it is declared to be; UserError names the first cell that is not."""
    if kind.type == TEXT:
        if not kind.empty and (empty := cells.isna()).any():
            _refuse(path, int(empty.argmax()) + 1, name, "", kind)
        return cells
    if kind.type == TRUTH:
        found = cells.str.lower().map({"true": True, "false": False, "1": True, "0": False})
        if (wrong := found.isna()).any():
            row = int(wrong.argmax())
            _refuse(path, row + 1, name, _shown(cells.iloc[row]), kind)
        return found.astype(bool)
    values = pd.to_numeric(cells, errors="coerce").to_numpy(dtype=np.float64, na_value=np.nan)
    unread = np.isnan(values) & cells.notna().to_numpy()
    wrong = unread | _wrong(kind, values)
    if wrong.any():
        row = int(wrong.argmax())
        _refuse(path, row + 1, name, _shown(cells.iloc[row]), kind)
    return pd.Series(values.astype(np.int64) if kind.type == WHOLE and not np.isnan(values).any() else values)


def _shown(cell: object) -> str:
    return cell if isinstance(cell, str) else ""


def read_table(path: Path, columns: list[str]) -> pd.DataFrame:
    """A CSV table with at least `columns`, each cell of a declared column checked; UserError in one line otherwise.

    Only an empty cell is missing: a context may well read "NA" or "007". Columns that nobody declared are taken as
    pandas reads them.
    """
    try:
        with path.open(encoding="utf-8", newline="") as file:
            lines = csv.reader(file)
            head, first = next(lines, []), next(lines, None)
    except FileNotFoundError:
        raise UserError(f"{path}: result file is missing; the rule that writes it has to run first") from None
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise UserError(f"{path}: not a CSV table ({error}); delete it and run snakemake again") from None
    for column in columns:
        if column not in head:
            raise UserError(f"{path}: column {column} is missing")
    if twice := next((name for name in head if head.count(name) > 1), None):
        raise UserError(f"{path}: column {twice} stands there twice; delete it and run snakemake again")
    if first is not None and len(first) != len(head):
        raise UserError(f"{path}: row 1 has {len(first)} cells, the header {len(head)}")
    known = {name: str for name in head if name in KINDS}
    try:
        table = pd.read_csv(
            path, keep_default_na=False, na_values=[""], encoding="utf-8", dtype=known, skip_blank_lines=False
        )
    except (pd.errors.ParserError, pd.errors.EmptyDataError, UnicodeDecodeError, ValueError) as error:
        raise UserError(f"{path}: not a CSV table ({' '.join(str(error).split())})") from error
    with path.open("rb") as file:
        file.seek(-1, 2)
        if file.read(1) != b"\n":
            raise UserError(f"{path}: cut off in its last line; delete it and run snakemake again")
    for name in known:
        table[name] = _typed(path, name, table[name], KINDS[name])
    for name in CHOICES.keys() & set(columns):
        if (wrong := ~table[name].isin(CHOICES[name])).any():
            row = int(wrong.argmax())
            _refuse(path, row + 1, name, table[name].iloc[row], f"must be one of {', '.join(CHOICES[name])}")
    for less, more in NO_MORE_THAN:
        if less in known and more in known and (wrong := table[less] > table[more]).any():
            row = int(wrong.argmax())
            allowed = f"must be at most {more}, {table[more].iloc[row]}"
            _refuse(path, row + 1, less, table[less].iloc[row], allowed)
    return table


def check_record(path: Path, record: Mapping, required: list[str]) -> None:
    """The same for the values of a JSON object, where null is an empty cell."""
    for key in required:
        if key not in record:
            raise UserError(f"{path}: key {key} is missing; delete it and run snakemake again")
    for key, value in record.items():
        if key not in KINDS:
            continue
        kind = KINDS[key]
        if kind.type in (WHOLE, NUMBER):
            is_number = isinstance(value, int | float) and not isinstance(value, bool)
            good = value is None or is_number
            good = good and not _wrong(kind, np.array([math.nan if value is None else value]))[0]
        else:
            good = isinstance(value, bool if kind.type == TRUTH else str)
        if not good:
            raise UserError(f"{path}: {key}: {str(value)[:60]!r} — {kind}; delete it and run snakemake again")
