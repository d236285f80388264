"""From eq. (1) to the tokens a round that were measured, in three steps that add up exactly.

Shapes: P positions of all plain texts, S rounds that might have started there.
"""

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from specledger.analysis.acceptance import Rounds, by_method, clustered
from specledger.analysis.frames import ordered
from specledger.theory.speculation import expected_tokens_per_round

ENGINE = "cached"  # the engine whose rule of context the plain texts were decoded under
GAP_TABLE = ("engine drafter gamma eq1 drift dependence ending measured uniform uniform_lo uniform_hi").split()
# The four levels are rounded once, so that their differences add up in print as well as in memory.
DIGITS = 8


def expected_tokens(beta_P: NDArray, kept_P: NDArray, starts_S: NDArray, gamma: int) -> NDArray[np.float64]:
    """[S] expected tokens of a round of `gamma` proposals that starts at each of `starts_S`.

    The text follows p, so Pr(A >= j) from t is E[kept_t ... kept_(t+j-2) beta_(t+j-1)], where kept is
    min(1, q/p) of the text's symbol: an average over what p would have gone on to say.
    """
    tokens_S, kept_S = np.ones(len(starts_S)), np.ones(len(starts_S))
    for offset in range(gamma):
        tokens_S += kept_S * beta_P[starts_S + offset]
        kept_S *= kept_P[starts_S + offset]
    return tokens_S


def uniform_starts(plain_texts: pd.DataFrame, drafter: str, gamma: int) -> dict[str, float]:
    """Tokens a round if rounds started everywhere alike: the mean over all positions with room for gamma."""
    rows = plain_texts[plain_texts["drafter"] == drafter].sort_values(["seed", "text", "position"])
    text_P = rows.groupby(["seed", "text"], sort=True).ngroup().to_numpy()
    # A round's proposals lie in one text.
    starts_S = np.flatnonzero(text_P[: max(len(text_P) - gamma + 1, 0)] == text_P[gamma - 1 :])
    tokens_S = expected_tokens(rows["beta"].to_numpy(), rows["kept"].to_numpy(), starts_S, gamma)
    texts = int(text_P.max()) + 1 if len(text_P) else 0
    sums_T, counts_T = (np.bincount(text_P[starts_S], weights, minlength=texts) for weights in (tokens_S, None))
    return clustered("uniform", sums_T, counts_T)


def _gap_row(rounds: Rounds, uniform: dict[str, float]) -> dict[str, float]:
    examined_R = np.minimum(rounds.accept_len_R + 1, rounds.drafted_R)
    alpha = rounds.accept_len_R.sum() / examined_R.sum() if examined_R.any() else np.nan
    full_R = rounds.full()
    eq1, level, full, measured = (
        round(float(value), DIGITS)
        for value in (
            expected_tokens_per_round(alpha, rounds.gamma) if np.isfinite(alpha) else np.nan,
            uniform["uniform"],
            1 + rounds.accept_len_R[full_R].mean() if full_R.any() else np.nan,
            1 + rounds.accept_len_R.mean(),
        )
    )
    steps = {"drift": level - eq1, "dependence": full - level, "ending": measured - full}
    return {"eq1": eq1, **steps, "measured": measured, **uniform, "uniform": level}


def gap_table(rounds: pd.DataFrame, plain_texts: pd.DataFrame) -> pd.DataFrame:
    """One row a method: eq1 + drift + dependence + ending = measured.

    eq1 takes every guess for one coin of the pooled alpha; drift lets difficulty last within a round
    (rounds from everywhere alike); dependence starts rounds where the last one ended; ending lets the
    text's end cut the last rounds short.
    """
    rows = []
    known = rounds["drafter"].isin(plain_texts["drafter"].unique())  # the others choose how much they propose
    for (engine, drafter, gamma), found in by_method(rounds[(rounds["engine"] == ENGINE) & known]):
        uniform = uniform_starts(plain_texts, drafter, gamma)
        rows.append({"engine": engine, "drafter": drafter, "gamma": gamma} | _gap_row(found, uniform))
    return ordered(pd.DataFrame(rows, columns=GAP_TABLE), ["engine", "drafter", "gamma"])
