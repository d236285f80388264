"""The best gamma of each drafter: predicted from single costs and an acceptance measured apart, and found."""

import numpy as np
import pandas as pd

from specledger.analysis.frames import ordered
from specledger.tables.registry import TABLES
from specledger.theory.speculation import best_of


def _row(engine: str, drafter: str, rows: pd.DataFrame) -> dict:
    measured = dict(zip(rows["gamma"], rows["measured"], strict=True))
    modelled = dict(zip(rows["gamma"], rows["cost_model"], strict=True))
    found, predicted = best_of(measured), best_of(modelled)
    gammas = sorted(measured)
    place = gammas.index(found)
    less = gammas[place - 1] if place > 0 else None
    more = gammas[place + 1] if place + 1 < len(gammas) else None

    def loss(gamma: int | None) -> float:
        return np.nan if gamma is None else 1 - measured[gamma] / measured[found]

    return {
        "engine": engine, "drafter": drafter, "gammas": " ".join(map(str, gammas)),
        "gamma_predicted": predicted, "speedup_predicted": modelled[predicted],
        "gamma_found": found, "speedup_found": measured[found], "agrees": predicted == found,
        "loss_if_predicted": loss(predicted), "one_less": less, "loss_if_one_less": loss(less),
        "one_more": more, "loss_if_one_more": loss(more),
    }  # fmt: skip


def best_gamma_table(cost_model: pd.DataFrame) -> pd.DataFrame:
    """One row per engine and drafter with at least two gammas: where one would guess, and where one should.

    one_less and one_more are the neighbours of the found gamma among those that were measured, which need not
    be gamma - 1 and gamma + 1; the losses are shares of the speed-up at the found gamma.
    """
    groups = cost_model.dropna(subset=["measured"]).groupby(["engine", "drafter"], sort=False)
    rows = [_row(*key, group) for key, group in groups if group["gamma"].nunique() > 1]
    table = pd.DataFrame(rows, columns=TABLES["best_gamma"].computed)
    return ordered(table.astype({"one_less": "Int64", "one_more": "Int64"}), ["engine", "drafter"])
