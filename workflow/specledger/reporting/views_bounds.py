"""Intervals that end where the quantity does: a t interval from two seeds knows nothing of 0 and 1."""

from collections.abc import Mapping

from specledger.reporting.formats import interval, known

CUT = "†"  # beside an interval that is cut; the page says what it means
Limits = tuple[float | None, float | None]

SHARE, POSITIVE, ANY = (0.0, 1.0), (0.0, None), (None, None)
LIMITS: dict[str, Limits] = {
    "alpha": SHARE, "rate": SHARE, "acceptance": SHARE, "wall_s": POSITIVE, "seconds": POSITIVE, "speedup": POSITIVE,
    "validation_loss": POSITIVE, "validation_mtp_loss": POSITIVE, "tv": SHARE, "ratio": POSITIVE, "value": POSITIVE,
    "train_share": POSITIVE,
}  # fmt: skip
OF_UNIT: dict[str, Limits] = {
    "acceptance": SHARE, "total variation": SHARE, "upper bound of total variation": SHARE, "share of contexts": SHARE,
    "forwards a token": SHARE, "fraction of texts": SHARE, "share of engines": SHARE, "probability": SHARE,
    "share of examined proposals": SHARE, "p-value": SHARE, "tokens a round": (1.0, None), "ms": POSITIVE,
    "s": POSITIVE, "speed-up": POSITIVE, "target forwards": POSITIVE, "ratio": POSITIVE, "ratio of times": POSITIVE,
    "ratio of speeds": POSITIVE, "ratio of speed-ups": POSITIVE, "ratio of tokens a second": POSITIVE,
    "measured over eq. (1)": POSITIVE, "measured over Theorem 3.8": POSITIVE, "TV over E[TV]": POSITIVE,
    "TV output over TV draft": POSITIVE, "logits": POSITIVE, "largest deviation of a probability": POSITIVE,
    "contexts": POSITIVE, "positions": POSITIVE, "parameters": POSITIVE, "positions and contexts that depart": POSITIVE,
    "tests that depart": POSITIVE, "difference in acceptance": ANY, "difference in tokens a round": ANY,
    "correlation of neighbours": (-1.0, 1.0),
    "nats a character": ANY, "share of the clock": ANY, "share of the measured speed-up": ANY,
}  # fmt: skip


def limits_of(column: str, gamma: float | None = None) -> Limits:
    """What a column of a table can be; a round yields 1 to γ + 1 tokens."""
    if column == "tokens_per_round":
        return 1.0, gamma + 1 if known(gamma) else None
    return LIMITS.get(column, ANY)


def limits_of_unit(unit: str | None) -> Limits:
    """What a claim's number can be, by its unit."""
    return OF_UNIT.get(unit or "", ANY)


def bounded(lo: float | None, hi: float | None, limits: Limits) -> tuple[float | None, float | None, str]:
    """The interval inside its limits, and a mark where it was cut."""
    if not known(lo) or not known(hi):
        return lo, hi, ""
    least, most = limits
    cut = (least is not None and lo < least) or (most is not None and hi > most)
    inside_lo = lo if least is None else max(lo, least)
    inside_hi = hi if most is None else min(hi, most)
    return inside_lo, inside_hi, CUT if cut else ""


def ends_of(row: Mapping, column: str) -> tuple[float | None, float | None, str]:
    """A row's interval inside what the column can be, and a mark where it was cut."""
    return bounded(row.get(f"{column}_lo"), row.get(f"{column}_hi"), limits_of(column, row.get("gamma")))


def spread_of(row: Mapping, column: str, decimals: int = 3) -> str:
    """A row's interval in words, cut and marked where it leaves what the column can be; empty without one."""
    lo, hi, mark = ends_of(row, column)
    spread = interval(lo, hi, decimals=decimals)
    return f"{spread}{mark}" if spread else ""
