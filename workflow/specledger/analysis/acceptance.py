"""Acceptance round by round: rates by position, tests of independence, and where eq. (1) parts from the clock.

Shapes: R rounds, G proposals of a round, T texts (a seed and a repeat).
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from specledger.analysis.frames import columns_of, of_chains, ordered
from specledger.foundation.errors import UserError
from specledger.statistics.independence import geometric_fit, lag1, position_homogeneity
from specledger.statistics.rates import cluster_t

METHOD = ["engine", "drafter", "gamma"]
RATE_TABLE = ("engine drafter gamma position examined accepted rate rate_lo rate_hi reached reached_rb texts").split()
INDEPENDENCE_TABLE = (
    "engine drafter gamma alpha alpha_lo alpha_hi texts tokens_per_round tokens_per_round_rb "
    "homogeneity_p geometric_p lag1 lag1_p"
).split()


class Rounds(NamedTuple):
    """The rounds of one method, text by text in their order.

    `survival_RG` is the probability that the first 1..G proposals of a round are all accepted, given
    the proposals (their min(1, p/q) multiplied up), 0 where fewer were made; `starts_T` is the first
    round of each text.
    """

    gamma: int
    drafted_R: NDArray[np.int64]
    accept_len_R: NDArray[np.int64]
    survival_RG: NDArray[np.float64]
    starts_T: NDArray[np.int64]

    def full(self) -> NDArray[np.bool_]:
        """[R] rounds that made all gamma proposals: not those that the end of a text cut short."""
        return self.drafted_R == self.gamma


def survival(accept_probs: pd.Series, drafted_R: NDArray[np.int64], gamma: int) -> NDArray[np.float64]:
    """[R, G] products of the first 1..G acceptance probabilities, out of cells like "1 0.5 0.25"."""
    words = " ".join(accept_probs.dropna()).split()
    try:
        values = np.array(words, dtype=np.float64)
    except ValueError as error:
        raise UserError(f"rounds.csv: accept_probs: {error}") from error
    if values.size != drafted_R.sum():
        raise UserError(f"rounds.csv: accept_probs hold {values.size} numbers for {drafted_R.sum()} proposals")
    made_RG = np.arange(gamma) < drafted_R[:, None]
    probs_RG = np.zeros(made_RG.shape)
    probs_RG[made_RG] = values
    return np.cumprod(probs_RG, axis=1)


def by_method(rounds: pd.DataFrame) -> Iterator[tuple[tuple[str, str, int], Rounds]]:
    """Each engine, drafter of chains and gamma with its rounds."""
    rounds = of_chains(rounds).sort_values(["seed", "repeat", "round"], kind="stable")
    for (engine, drafter, gamma), rows in rounds.groupby(METHOD, sort=True):
        drafted_R, accept_len_R = rows["drafted"].to_numpy(), rows["accept_len"].to_numpy()
        if (drafted_R > gamma).any() or (accept_len_R > drafted_R).any() or (accept_len_R < 0).any():
            raise UserError(f"rounds.csv: {engine}, {drafter}, gamma {gamma}: accept_len or drafted is out of range")
        first_R = np.append(True, (np.diff(rows["seed"]) != 0) | (np.diff(rows["repeat"]) != 0))
        yield (
            (engine, drafter, int(gamma)),
            Rounds(
                gamma=int(gamma),
                drafted_R=drafted_R,
                accept_len_R=accept_len_R,
                survival_RG=survival(rows["accept_probs"], drafted_R, int(gamma)),
                starts_T=np.flatnonzero(first_R),
            ),
        )


def _texts(values_R: NDArray, starts_T: NDArray[np.int64]) -> NDArray[np.float64]:
    """[T] the sums over each text's rounds."""
    return np.add.reduceat(values_R.astype(np.float64), starts_T)


def clustered(name: str, numerators_T: NDArray, denominators_T: NDArray) -> dict[str, float]:
    """The cells name, name_lo, name_hi of a ratio of sums with texts as clusters, and how many texts count."""
    found = cluster_t(numerators_T, denominators_T) if denominators_T.any() else None
    return columns_of(name, found) | {"texts": int((denominators_T > 0).sum())}


def _position_counts(rounds: Rounds, position: int) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """[R] whether the proposal at `position` (from 1) was examined, and whether it was accepted."""
    examined_R = (rounds.drafted_R >= position) & (rounds.accept_len_R >= position - 1)
    return examined_R, examined_R & (rounds.accept_len_R >= position)


def _rate_row(rounds: Rounds, position: int) -> dict:
    examined_R, accepted_R = _position_counts(rounds, position)
    made_R = rounds.drafted_R >= position
    known = made_R.any()
    return {
        "position": position,
        "examined": int(examined_R.sum()),
        "accepted": int(accepted_R.sum()),
        **clustered("rate", _texts(accepted_R, rounds.starts_T), _texts(examined_R, rounds.starts_T)),
        "reached": accepted_R[made_R].mean() if known else np.nan,
        "reached_rb": rounds.survival_RG[made_R, position - 1].mean() if known else np.nan,
    }


def _independence_row(rounds: Rounds) -> dict:
    """What one method's rounds say against eq. (1)'s independent, equal acceptances."""
    examined_R = np.minimum(rounds.accept_len_R + 1, rounds.drafted_R)
    counts = [_position_counts(rounds, position) for position in range(1, rounds.gamma + 1)]
    row = {
        **clustered("alpha", _texts(rounds.accept_len_R, rounds.starts_T), _texts(examined_R, rounds.starts_T)),
        "tokens_per_round": 1 + rounds.accept_len_R.mean(),
        "tokens_per_round_rb": 1 + rounds.survival_RG.sum(axis=1).mean(),
    }
    # Rounds cut short by the end of a text would pass for early rejections.
    full_R = rounds.full()
    lengths = [text[keep] for text, keep in _split(rounds.accept_len_R, full_R, rounds.starts_T)]
    if rounds.gamma > 1 and full_R.any():
        examined_J, accepted_J = (np.array([pair[which].sum() for pair in counts]) for which in (0, 1))
        row["homogeneity_p"] = position_homogeneity(accepted_J, examined_J)
        histogram = np.bincount(rounds.accept_len_R[full_R], minlength=rounds.gamma + 1)
        row["geometric_p"] = geometric_fit(histogram).p_value
    row["lag1"], row["lag1_p"] = lag1([one for one in lengths if len(one)]) if full_R.any() else (np.nan, np.nan)
    return row


def _split(values_R: NDArray, keep_R: NDArray, starts_T: NDArray) -> Iterator[tuple[NDArray, NDArray]]:
    return zip(np.split(values_R, starts_T[1:]), np.split(keep_R, starts_T[1:]), strict=True)


def acceptance_tables(rounds: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """rates.csv, one row per method and position in the round, and independence.csv, one row a method."""
    rates, methods = [], []
    for key, found in by_method(rounds):
        cells = dict(zip(METHOD, key, strict=True))
        rates += [cells | _rate_row(found, position) for position in range(1, found.gamma + 1)]
        methods.append(cells | _independence_row(found))
    return (
        ordered(pd.DataFrame(rates, columns=RATE_TABLE), [*METHOD, "position"]),
        ordered(pd.DataFrame(methods, columns=INDEPENDENCE_TABLE), METHOD),
    )
