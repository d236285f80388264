"""Does training with MTP change the target's loss? The paired difference, and what it could have shown."""

import pandas as pd

from specledger.analysis.summary import validation_losses
from specledger.statistics.differences import equivalence
from specledger.statistics.intervals import LEVEL, paired_t_interval
from specledger.statistics.power import smallest_difference

ALPHA = 0.05
DIFFERENCE_TABLE = (
    "what mean lo hi n level method sd margin tost_p tost_lo tost_hi verdict detectable detectable_sd power"
).split()
EQUIVALENT, DIFFERENT, UNDECIDED = "equivalent", "different", "undecided"


def verdict(*, lo: float | None, hi: float | None, tost_p: float | None) -> str:
    """Equivalent where both one-sided tests reject, even if the difference isn't 0: it is then known to be small."""
    if tost_p is not None and tost_p < ALPHA:
        return EQUIVALENT
    return DIFFERENT if lo is not None and (lo > 0 or hi < 0) else UNDECIDED


def differences_table(training: pd.DataFrame, margin: float, *, power: float = 0.8) -> pd.DataFrame:
    """One row: validation loss with MTP minus without, paired by seed, nats a character.

    margin: the difference that would not matter, stated in the config before the study is run.
    """
    mtp, plain = validation_losses(training, "mtp"), validation_losses(training, "plain")
    difference = paired_t_interval(mtp, plain)
    tost = equivalence(mtp, plain, margin=margin, level=ALPHA)
    row = {
        "what": "mtp - plain", "mean": difference.mean, "lo": difference.lo, "hi": difference.hi,
        "n": difference.n, "level": LEVEL, "method": difference.method, "margin": margin,
        "tost_p": tost.p_value, "tost_lo": tost.lo, "tost_hi": tost.hi,
        "verdict": verdict(lo=difference.lo, hi=difference.hi, tost_p=tost.p_value), "power": power,
    }  # fmt: skip
    if difference.n > 1:
        sd = float((mtp - plain).std(ddof=1))
        in_sd = smallest_difference(difference.n, power=power, level=ALPHA)
        row |= {"sd": sd, "detectable": in_sd * sd, "detectable_sd": in_sd}
    return pd.DataFrame([row], columns=DIFFERENCE_TABLE)


def equivalence_summary(differences: pd.DataFrame) -> dict:
    """The row as an object of summary.json: None where one seed leaves a cell empty."""
    row = differences.astype(object).iloc[0]
    return {key: None if pd.isna(value) else value for key, value in row.items()}
