"""What was trained on top of the target: sizes, losses ahead, and what it took beside the target's own training."""

import numpy as np
import pandas as pd

from specledger.analysis.frames import columns_of, ordered
from specledger.foundation.drafters import SPECS
from specledger.statistics.intervals import t_interval

HEAD_TABLE = (
    "head trunk head_parameters steps loss n value value_lo value_hi train_s train_share train_share_lo train_share_hi"
).split()
TARGET = "mtp"  # whose training a head's is compared with


def target_seconds(training: pd.DataFrame) -> pd.Series:
    """Seconds of the target's training, by seed."""
    return training[training["model"] == TARGET].set_index("seed")["train_s"]


def heads_table(heads: pd.DataFrame, training: pd.DataFrame) -> pd.DataFrame:
    """One row per head and loss, in nats a character on the validation text, with 95% t intervals over seeds.

    `ahead2` is the loss of the token after the next, and so on; `train_share` is a head's seconds over those that
    its target was trained for.
    """
    rows = []
    if len(heads):
        for head, group in heads.groupby("head", sort=False):
            share = columns_of("train_share", t_interval(_share(group, training)))
            about = {key: group[key].iloc[0] for key in ("head", "trunk", "head_parameters", "steps")}
            about |= {"n": len(group), "train_s": float(group["train_s"].mean())} | share
            for column in group.columns[group.columns.str.match(r"validation_.*ahead.*_loss$") & group.notna().all()]:
                name = column.removeprefix("validation_").removesuffix("_loss")
                rows.append(about | {"head": head, "loss": name} | columns_of("value", t_interval(group[column])))
    return ordered(pd.DataFrame(rows, columns=HEAD_TABLE), ["head", "loss"])


def _share(group: pd.DataFrame, training: pd.DataFrame) -> pd.Series:
    return (group.set_index("seed")["train_s"] / target_seconds(training)).dropna()


def beyond_target(drafter: str, heads: pd.DataFrame, training: pd.DataFrame) -> tuple[float, float]:
    """Parameters that a drafter adds to the target, and its training over the target's; nan where none is known."""
    target_s, models = target_seconds(training), training.set_index(["model", "seed"])
    spec = SPECS[drafter]
    if spec.uses == TARGET:
        extra = models.loc[TARGET, "train_s"] - models.loc["plain", "train_s"]
        return float(models.loc[TARGET, "head_parameters"].iloc[0]), float((extra / target_s).mean())
    if spec.uses is not None:
        rows = models.loc[spec.uses]
        return float(rows["parameters"].iloc[0]), float((rows["train_s"] / target_s).mean())
    if not spec.trained:
        return 0.0, 0.0
    rows = heads[heads["head"] == drafter] if len(heads) else heads
    if rows.empty:
        return np.nan, np.nan
    share = float(_share(rows, training).mean())
    if spec.begins_with is not None:
        share += beyond_target(spec.begins_with, heads, training)[1]
    return float(rows["head_parameters"].iloc[0]), share
