"""From evidence to verdicts: kept, departs or undecided, over all rows of a run together.

A row departs where the p-values of both its samples together (Fisher), adjusted by Holm over every test of
every row, lie below the level, and the second sample by itself shows it too. "Kept" is always "nearer than":
the smallest distance that the row would have seen.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from specledger.audit.evidence import Evidence
from specledger.audit.measure import AGAIN_BELOW, NEAREST, Measured
from specledger.statistics.families import fisher, holm

KEPT, DEPARTS, UNDECIDED = "kept", "departs", "undecided"
EXIT = {KEPT: 0, DEPARTS: 1, UNDECIDED: 2}
FAILED = 3  # nothing was judged: bad input, a server that is gone
COLUMNS = (
    "system version mode prompt temperature top_k top_p min_p repetition_penalty n seed test statistic p_value p_holm "
    "verdict detectable_tv_draft detectable_tv_any tv tokens_per_forward acceptance seconds_per_text "
    "cpu_seconds_per_text control expected n_again p_again"
).split()


@dataclass(frozen=True, kw_only=True)
class Judged:
    """A row with its verdict and, for each of its tests, the combined p-value and Holm's over the run."""

    row: Measured
    verdict: str
    why: str
    p_values: tuple[float, ...]
    p_holm: tuple[float, ...]

    @property
    def as_expected(self) -> bool:
        return not self.row.expected or self.verdict == self.row.expected

    @property
    def p_least(self) -> float:
        known = [p for p in self.p_holm if not np.isnan(p)]
        return min(known, default=float("nan"))

    def near(self, name: str = "tokens 1-2") -> Evidence | None:
        """The evidence of a test, of the larger of the two samples if both have it."""
        return next((one for one in self.row.first if one.test == name), None)


def judge_white(rows: Sequence[Measured], *, level: float = 0.01) -> list[Judged]:
    """The verdict of each row; the rows of one call are one family. Black-box rows are judged alike."""
    combined = [_combined(row) for row in rows]
    adjusted = holm([p for row in combined for p in row]) if any(combined) else np.zeros(0)
    found, start = [], 0
    for row, p_values in zip(rows, combined, strict=True):
        p_holm = tuple(map(float, adjusted[start : start + len(p_values)]))
        start += len(p_values)
        verdict, why = _verdict(row, p_holm, level)
        found.append(Judged(row=row, verdict=verdict, why=why, p_values=p_values, p_holm=p_holm))
    return found


judge = judge_white


def again_of(row: Measured, test: str) -> float | None:
    """The second sample's p-value of a test; None where there is none."""
    return next((one.p_value for one in row.again if one.test == test and not np.isnan(one.p_value)), None)


def _combined(row: Measured) -> tuple[float, ...]:
    """One p-value a test: the first sample's, or Fisher's of both where the first lay below .05.

    The second counts only where the first was small, so that P(p <= x) <= x holds for every small x: it is at
    most the chance that Fisher's is that small.
    """
    found = []
    for one in row.first:
        second = again_of(row, one.test)
        small = not np.isnan(one.p_value) and one.p_value < AGAIN_BELOW
        found.append(fisher([one.p_value, second]) if small and second is not None else one.p_value)
    return tuple(found)


def _verdict(row: Measured, p_holm: Sequence[float], level: float) -> tuple[str, str]:
    if row.greedy is not None:
        return row.greedy.verdict()
    if row.broken:
        return DEPARTS, row.broken
    tested = [(one, p) for one, p in zip(row.first, p_holm, strict=True) if not np.isnan(p)]
    if not tested:
        return UNDECIDED, "no test had two cells with enough texts"
    low = [(one, p) for one, p in tested if p < level]
    if not low:
        return _near_enough(row)
    second = {one.test: again_of(row, one.test) for one, _ in low}
    twice = [test for test, p in second.items() if p is not None and p < AGAIN_BELOW]
    if twice:
        return DEPARTS, f"{', '.join(twice)}: in both samples"
    return UNDECIDED, f"{', '.join(second)}: in the first sample, not in the second"


def _near_enough(row: Measured) -> tuple[str, str]:
    """Kept, unless a nearer distance was wanted than the sample can see."""
    near = next((one.detectable_tv_any for one in row.first if one.test == NEAREST), None)
    if row.wanted_tv is None or (near is not None and near <= row.wanted_tv):
        return (
            KEPT,
            "no test departs" if near is None else f"nearer than TV {near:.2g} in the first two tokens (power .9)",
        )
    if near is None:
        return UNDECIDED, "the first two tokens have too few cells for a distance"
    wanted = int(np.ceil(row.n * (near / row.wanted_tv) ** 2))
    return UNDECIDED, f"{row.n:,} texts see TV {near:.2g}, and {row.wanted_tv:g} was wanted: about {wanted:,} texts"


def trusted(rows: Sequence[Judged]) -> list[str]:
    """What says that the run can't be trusted: controls that did not come out as they must; empty if none."""
    return [
        f"{one.row.system}, {one.row.mode}: a control that must be {one.row.expected} came out {one.verdict}"
        if one.row.expected == KEPT
        else f"{one.row.system}, {one.row.mode}: a control that must depart came out {one.verdict}"
        for one in rows
        if not one.as_expected
    ]


def whole(rows: Sequence[Judged]) -> str:
    """The verdict of the run: departs if a row does, kept if all are; undecided without trust in its controls."""
    if trusted(rows):
        return UNDECIDED
    verdicts = {one.verdict for one in rows if not one.row.control}
    if DEPARTS in verdicts:
        return DEPARTS
    return KEPT if verdicts == {KEPT} else UNDECIDED


def table(rows: Sequence[Judged]) -> list[dict]:
    """audit.csv: a line a test, its verdict that of the row; a row that was not tested has one line."""
    lines = []
    for judged in rows:
        row = judged.row
        same = {
            **{name: value for name, value in row.settings.named().items() if name != "tokens"},
            **{name: getattr(row, name) for name in ("system", "version", "mode", "prompt", "n", "n_again")},
            **{name: getattr(row, name) for name in ("tokens_per_forward", "acceptance", "control", "expected")},
            **{name: getattr(row, name) for name in ("seconds_per_text", "cpu_seconds_per_text")},
            "verdict": judged.verdict,
        }
        if not row.first:
            lines.append({name: same.get(name) for name in COLUMNS} | _of_greedy(row))
        for one, p_value, p_holm in zip(row.first, judged.p_values, judged.p_holm, strict=True):
            line = same | {
                "test": one.test,
                "statistic": one.statistic,
                "p_value": p_value,
                "p_holm": p_holm,
                "p_again": again_of(row, one.test),
                "detectable_tv_draft": one.detectable_tv_draft,
                "detectable_tv_any": one.detectable_tv_any,
                "tv": one.tv,
            }
            lines.append({name: _known(line.get(name)) for name in COLUMNS})
    return lines


def _of_greedy(row: Measured) -> dict:
    """The test of greedy texts: its statistic is the rate of texts that part by more than rounding."""
    if row.greedy is None:
        return {}
    return {"test": "greedy", "statistic": row.greedy.faults / row.greedy.n, "n": row.greedy.n}


def _known(value):
    return None if isinstance(value, float) and np.isnan(value) else value
