"""What tables share: the order of their rows, the cells of an interval, and means of what is known."""

import numpy as np
import pandas as pd

from specledger.foundation.drafters import IN_ORDER, branched
from specledger.statistics.intervals import Interval
from specledger.tables.raw import ENGINES

PLAIN = "none"
ORDER = (*ENGINES, *IN_ORDER)
SHOWN_FIRST = {name: place for place, name in enumerate(ORDER)}


def ordered(frame: pd.DataFrame, columns: list[str]) -> pd.DataFrame:
    """Rows sorted by `columns`: known engines and drafters in the order of the report, the rest by name."""

    def rank(column: pd.Series) -> pd.Series:
        if column.name in ("engine", "drafter", "model", "head"):
            return column.map(lambda name: f"{SHOWN_FIRST.get(name, 99):02d} {name}")
        return column

    return frame.sort_values(columns, key=rank, kind="stable").reset_index(drop=True)


def columns_of(name: str, interval: Interval | None) -> dict[str, float]:
    """The three cells name, name_lo, name_hi; empty where there is no interval."""
    if interval is None:
        return {name: np.nan, f"{name}_lo": np.nan, f"{name}_hi": np.nan}
    ends = {f"{name}_lo": interval.lo, f"{name}_hi": interval.hi}
    return {name: interval.mean, **{key: np.nan if end is None else end for key, end in ends.items()}}


def known(values: pd.Series) -> list[float]:
    return values.dropna().tolist()


def mean(values: pd.Series) -> float:
    """The mean of what is known; nan where nothing is."""
    found = known(values)
    return float(np.mean(found)) if found else np.nan


def is_true(column: pd.Series) -> pd.Series:
    """Cells that read true or false, 1 or 0, as booleans."""
    return column.map(lambda value: str(value).lower() in ("true", "1", "1.0")).astype(bool)


def of_chains(frame: pd.DataFrame) -> pd.DataFrame:
    """The rows of drafters that propose chains."""
    return frame[~frame["drafter"].map(branched).astype(bool)]
