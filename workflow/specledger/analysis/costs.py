"""What single forwards, proposals and rounds cost, each timed by itself and apart from the texts.

Seeds are made comparable first: each cost is taken over its seed's plain round, then the median over seeds is
taken, then seconds are made of it again, so that a machine that is slower at one seed does not bend a ratio.
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from specledger.analysis.frames import PLAIN, columns_of, mean, ordered
from specledger.foundation.drafters import SPECS, base_of
from specledger.foundation.errors import UserError
from specledger.statistics.intervals import t_interval
from specledger.tables.registry import TABLES

FORWARD, PROPOSE, ROUND = "forward", "propose", "round"
KEYS = ["engine", "part", "drafter", "gamma", "positions"]
# A drafter that chooses how much it proposes is timed after a few texts, where it may stop anywhere: its costs are
# those of the drafter that does the same work.
LENDER = {name: spec.costs_of for name, spec in SPECS.items() if spec.costs_of is not None}


@dataclass(frozen=True, kw_only=True)
class Costs:
    """Seconds of one engine: forwards by new positions, proposals and rounds by drafter and gamma."""

    forward: dict[int, float]
    propose: dict[tuple[str, int], float]
    round: dict[tuple[str, int], float]

    @property
    def t_ar(self) -> float:
        """A target forward over one new position."""
        return self.forward[1]

    @property
    def plain_round(self) -> float:
        """One token of plain decoding: its forward, its draw, and the loop around them."""
        return self.round[PLAIN, 0]

    def verify(self, proposals: int) -> float:
        """A target forward over the proposals and the token before them; between measured sizes on a line."""
        return _on_line(self.forward, proposals + 1)

    def _timed(self, part: dict[tuple[str, int], float], drafter: str) -> dict[int, float]:
        return {gamma: seconds for (name, gamma), seconds in part.items() if name == drafter}

    def _lender(self, drafter: str) -> str:
        """Whose rounds stand for this drafter's."""
        other = LENDER.get(drafter, drafter)
        return other if self._timed(self.round, other) else drafter

    def draft(self, drafter: str, proposals: int, gamma: int) -> float:
        """A proposal of that length in a round of at most gamma; between measured lengths on a line."""
        if SPECS[base_of(drafter)].searches:
            return self.propose[drafter, gamma]
        return _on_line({0: 0.0} | self._timed(self.propose, self._lender(drafter)), proposals)

    def overhead(self, drafter: str, proposals: int) -> float:
        """What a round takes beside its proposal and its forward; without proposals, what plain decoding takes."""
        lender = self._lender(drafter)
        points = {
            at: seconds - self.propose[lender, at] - self.verify(at)
            for at, seconds in self._timed(self.round, lender).items()
            if (lender, at) in self.propose
        }
        return _on_line({0: self.plain_round - self.t_ar} | points, proposals)

    def measured(self, drafter: str, gamma: int) -> bool:
        """Whether this method's proposal, its forward and its round were timed, and its lender's up to there."""
        timed = (drafter, gamma) in self.propose and (drafter, gamma) in self.round and gamma + 1 in self.forward
        if not timed:
            return timed
        lender = self._lender(drafter)  # beyond its largest gamma there is no line to read its costs from
        return any(at >= gamma and (lender, at) in self.propose for at in self._timed(self.round, lender))


def _on_line(points: dict[int, float], at: int) -> float:
    places = sorted(points)
    return float(np.interp(at, places, [points[place] for place in places]))


def with_ratios(forwards: pd.DataFrame) -> pd.DataFrame:
    """Each timing with target_s, the one-position forward of its seed and engine, and c.

    c of a proposal is that of one of its tokens: seconds / gamma over target_s.
    """
    one = forwards[(forwards["part"] == FORWARD) & (forwards["positions"] == 1)]
    one = one[["seed", "engine", "seconds"]].rename(columns={"seconds": "target_s"})
    table = forwards.merge(one, on=["seed", "engine"], how="left")
    share = table["gamma"].where(table["part"] == PROPOSE, 1).clip(lower=1)
    model = table["drafter"].where(table["part"] == PROPOSE, "target").where(table["part"] != ROUND, ROUND)
    return table.assign(model=model, c=table["seconds"] / share / table["target_s"])


def costs_of(forwards: pd.DataFrame) -> dict[str, Costs]:
    """The costs of each engine; UserError where an engine's plain round or forward was not timed."""
    plain = forwards[(forwards["part"] == ROUND) & (forwards["drafter"] == PLAIN)]
    plain = plain[["seed", "engine", "seconds"]].rename(columns={"seconds": "plain_s"})
    table = forwards.merge(plain, on=["seed", "engine"], how="left")
    table["relative"] = table["seconds"] / table["plain_s"]
    found = {}
    for engine, rows in table.groupby("engine", sort=True):
        if rows["plain_s"].isna().any():
            raise UserError(f"forwards.csv: {engine}: no round of plain decoding (part round, drafter none)")
        medians = rows.groupby(KEYS)["relative"].median() * rows["plain_s"].median()
        parts = {part: {} for part in (FORWARD, PROPOSE, ROUND)}
        for (_, part, drafter, gamma, positions), seconds in medians.items():
            parts[part][positions if part == FORWARD else (drafter, gamma)] = float(seconds)
        if 1 not in parts[FORWARD]:
            raise UserError(f"forwards.csv: {engine}: no forward of one position")
        timed = {"forward": parts[FORWARD], "propose": parts[PROPOSE], "round": parts[ROUND]}
        found[engine] = Costs(**timed)
    return found


def forwards_table(forwards: pd.DataFrame) -> pd.DataFrame:
    """Seconds of single forwards, proposals and rounds: per seed a median, then mean and t interval over seeds."""
    keys = ["engine", "part", "model", "drafter", "gamma", "positions"]
    rows = []
    for key, group in with_ratios(forwards).groupby(keys, sort=True):
        seconds = columns_of("seconds", t_interval(group["seconds"]))
        rows.append(dict(zip(keys, key, strict=True)) | seconds | {"c": mean(group["c"])})
    table = pd.DataFrame(rows)[TABLES["forwards"].computed]
    return ordered(table, ["engine", "part", "model", "gamma", "positions"])
