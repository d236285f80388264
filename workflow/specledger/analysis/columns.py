"""What a cell of an observation may hold: each column's kind and bounds, declared once, and the reader that checks."""

import csv
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from specledger.foundation.errors import UserError

TEXT, WHOLE, NUMBER, TRUTH = "text", "whole", "number", "truth"


@dataclass(frozen=True, kw_only=True)
class Kind:
    """Text, a whole number, a number or true/false; `above` excludes the lower end, `empty` allows an empty cell."""

    type: str
    low: float = -math.inf
    high: float = math.inf
    above: bool = False
    empty: bool = False
    endless: bool = False

    def __str__(self) -> str:
        if self.type == TEXT:
            return "must not be empty"
        if self.type == TRUTH:
            return "must be true or false"
        words = "must be a whole number" if self.type == WHOLE else "must be a number"
        if math.isfinite(self.low) and math.isfinite(self.high):
            words += f" from {self.low:g} to {self.high:g}"
        elif math.isfinite(self.low):
            words += f" above {self.low:g}" if self.above else f" of at least {self.low:g}"
        return words + (" or empty" if self.empty else "")

    def wrong(self, values: np.ndarray) -> np.ndarray:
        """Which of these numbers are none that the kind allows; NaN stands for an empty cell."""
        with np.errstate(invalid="ignore"):
            bad = (values < self.low) | (values > self.high) | (self.above & (values <= self.low))
            if not self.endless:
                bad |= np.isinf(values)
            if self.type == WHOLE:  # a float holds each whole number up to 2**53
                bad |= (values != np.floor(values)) | (np.abs(values) > 2**53)
        missing = np.isnan(values)
        return np.where(missing, not self.empty, bad)


def _declared(kinds: Mapping[Kind, str]) -> dict[str, Kind]:
    found = [(name, kind) for kind, names in kinds.items() for name in names.split()]
    assert len({name for name, _ in found}) == len(found), "a column is declared twice"
    return dict(found)


SHARE, AMOUNT = {"type": NUMBER, "low": 0, "high": 1}, {"type": NUMBER, "low": 0}
NAMES = Kind(type=TEXT)
WORDS = Kind(type=TEXT, empty=True)
SEED = Kind(type=WHOLE, low=0, high=2**32 - 1)
COUNTS = Kind(type=WHOLE, low=0)
COUNTS_IF_ANY = Kind(type=WHOLE, low=0, empty=True)
SIZES = Kind(type=WHOLE, low=1)
SHARES, SHARES_IF_ANY = Kind(**SHARE), Kind(**SHARE, empty=True)
AMOUNTS, AMOUNTS_IF_ANY = Kind(**AMOUNT), Kind(**AMOUNT, empty=True)
POSITIVE, POSITIVE_IF_ANY = Kind(**AMOUNT, above=True), Kind(**AMOUNT, above=True, empty=True)
ANY_NUMBER, MAY_BE_ENDLESS = Kind(type=NUMBER, empty=True), Kind(type=NUMBER, empty=True, endless=True)
KINDS = _declared(
    {
        NAMES: "drafter context engine context_rule model part kind rule source test precision reference device "
        "program method interval loop parents head trunk checkpoint",
        WORDS: "accept_probs tree why ours",
        SEED: "seed",
        COUNTS: "position draws accepted null_draws accept_len round drafted examined text gamma used copy "
        "rounds target_forwards draft_forwards rows fed_short fed_long prompt_tokens generated_tokens rejected repeat "
        "full_rounds rank order parameters head_parameters chosen_step",
        SIZES: "tokens depth nodes positions texts n repeats blocks vocabulary threads steps batch",
        COUNTS_IF_ANY: "df resamples first_divergence tree_nodes top_k",
        SHARES: "beta tv_output tv_draft kept tv level rate lo hi",
        SHARES_IF_ANY: "acceptance acceptance_lo acceptance_hi tv_expected tv_q999 tv_p_value p_value chi2_p_value "
        "detectable_leak detectable_tv tv_bound null_tv_lo null_tv_hi power top_p min_p",
        AMOUNTS: "temperature max_abs_deviation max_abs_difference expected_tokens train_s validation_loss seconds_lo "
        "seconds_hi",
        AMOUNTS_IF_ANY: "draft_s catch_up_s verify_s accept_s sync_s compile_s validation_mtp_loss",
        POSITIVE: "wall_s seconds learning_rate",
        POSITIVE_IF_ANY: "ratio ratio_lo ratio_hi ratio_to_ours ratio_to_ours_lo ratio_to_ours_hi",
        ANY_NUMBER: "other_s",  # what the clocks leave over; two that overlap make it negative
        MAY_BE_ENDLESS: "statistic margin top2_margin chi2",  # chi2 of a symbol that p never says
        Kind(type=TRUTH): "identical available expected caught clocked",
    }
)
NO_MORE_THAN = (("accepted", "examined"), ("accepted", "draws"), ("examined", "drafted"), ("accept_len", "examined"))


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
    wrong = unread | kind.wrong(values)
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
            good = (is_number or value is None) and not kind.wrong(np.array([math.nan if value is None else value]))[0]
        else:
            good = isinstance(value, bool if kind.type == TRUTH else str)
        if not good:
            raise UserError(f"{path}: {key}: {str(value)[:60]!r} — {kind}; delete it and run snakemake again")
