"""What a round yields, measured apart from the texts that were timed: the cost model's prediction rests on it.

Shapes: N texts, T positions of a text, K numbers of proposals from 0 to gamma.
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

LATE_STARTERS = frozenset({"mtp"})  # nothing to draft from in the first round: the target has not run yet


@dataclass(frozen=True, kw_only=True)
class Yield:
    """Tokens a round, accepted over examined proposals, and the share [K] of rounds by number of proposals."""

    tokens_per_round: float
    alpha: float
    share_K: NDArray[np.float64]


def expected_rounds(kept_NT: NDArray, gamma: int, *, late: bool = False) -> tuple[NDArray, float, float]:
    """Rounds [K] by number of proposals, accepted and examined proposals, expected over all texts.

    Args:
        kept_NT: min(1, q/p) of the token that is there, under the target's own law;
        late: the first round of a text proposes nothing.

    Speculative decoding writes such texts too. Given that it wrote this one, a guess at position t that is
    examined was the text's token and accepted with probability kept_t, whatever happened before and comes
    after, since neither changes the law of the text. So the probability that a round starts at t follows
    from those of the earlier starts: a round runs on while its guesses hold, and the next one starts one
    token (the redrawn or the extra one) further on. Only the verdicts are averaged out (Rao-Blackwell), the
    starts are where rounds start, behind a failure, and the last rounds are cut short by the text's end as
    the decoder cuts them. The expectation over texts is that of the decoder's own count of rounds: no bias.
    """
    N, T = kept_NT.shape
    starts_NT = np.zeros((N, T + 1))
    starts_NT[:, 0] = 1.0
    rounds_K, accepted, examined = np.zeros(gamma + 1), 0.0, 0.0
    for t in range(T):
        proposals = 0 if late and t == 0 else min(gamma, T - t - 1)
        alive_N = starts_NT[:, t]
        rounds_K[proposals] += alive_N.sum()
        for place in range(t, t + proposals):
            passed_N = alive_N * kept_NT[:, place]
            examined += float(alive_N.sum())
            accepted += float(passed_N.sum())
            starts_NT[:, place + 1] += alive_N - passed_N
            alive_N = passed_N
        starts_NT[:, t + proposals + 1] += alive_N
    return rounds_K, accepted, examined


def followed(plain_texts: pd.DataFrame, drafter: str, gamma: int) -> Yield | None:
    """The yield of a drafter that was followed along the target's texts; None where it was not."""
    rows = plain_texts[plain_texts["drafter"] == drafter].sort_values(["seed", "text", "position"])
    if rows.empty:
        return None
    kept = [group.to_numpy() for _, group in rows.groupby(["seed", "text"], sort=True)["kept"]]
    rounds_K, accepted, examined = np.zeros(gamma + 1), 0.0, 0.0
    for length in sorted({len(one) for one in kept}):
        kept_NT = np.stack([one for one in kept if len(one) == length])
        found = expected_rounds(kept_NT, gamma, late=drafter in LATE_STARTERS)
        rounds_K, accepted, examined = rounds_K + found[0], accepted + found[1], examined + found[2]
    return Yield(
        tokens_per_round=len(rows) / float(rounds_K.sum()),
        alpha=accepted / examined if examined else np.nan,
        share_K=rounds_K / rounds_K.sum(),
    )


def counted(rounds_apart: pd.DataFrame, context_rule: str, drafter: str, gamma: int) -> Yield | None:
    """The yield of a method that was counted over texts written for that alone, with random numbers of their own.

    What a drafter that chooses how much it proposes would propose next to a rejected guess cannot be read off
    a text, nor what a verdict under the rule `window` would rest on. None where no such texts were written.
    """
    method = {"context_rule": context_rule, "drafter": drafter, "gamma": gamma}
    rows = rounds_apart[(rounds_apart[list(method)] == pd.Series(method)).all(axis=1)]
    if rows.empty:
        return None
    examined = rows["examined"].sum()
    return Yield(
        tokens_per_round=1 + float(rows["accept_len"].mean()),
        alpha=float(rows["accept_len"].sum() / examined) if examined else np.nan,
        share_K=np.bincount(rows["drafted"], minlength=gamma + 1) / len(rows),
    )


def yield_of(
    plain_texts: pd.DataFrame, rounds_apart: pd.DataFrame, context_rule: str, drafter: str, gamma: int
) -> Yield | None:
    """What a round of this method yields, by whichever way it was measured."""
    return counted(rounds_apart, context_rule, drafter, gamma) or followed(plain_texts, drafter, gamma)
