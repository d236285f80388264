"""In what order drafters and parts of the time come, in every figure and legend, and which figure shows whom."""

from collections.abc import Iterable

from specledger.foundation.drafters import IN_ORDER, SPECS, branched

PARTS = ("verify", "draft", "catch_up", "accept", "sync", "other")


def place_of(drafter: str) -> int:
    """Where a drafter stands; unknown ones come last."""
    return IN_ORDER.index(drafter) if drafter in IN_ORDER else len(IN_ORDER)


def is_apart(drafter: str) -> bool:
    """Heads, trees and chained modules: they have figures of their own."""
    return branched(drafter) or (drafter in SPECS and SPECS[drafter].group == "apart")


def main_rows(rows: Iterable) -> tuple:
    """The rows of the drafters that the figures of all engines show; all rows, where there is none of those."""
    rows = tuple(rows)
    found = tuple(row for row in rows if not is_apart(row["drafter"]))
    return found if any(row["drafter"] != "none" for row in found) else rows
