"""What the papers predict, with the standard library alone.

Notation is Leviathan's (arXiv 2211.17192): p target, q draft, alpha the acceptance rate, gamma the
number of proposed tokens a round, c the time of a draft forward over that of a target forward.
"""

import math
from collections.abc import Mapping, Sequence


def _check_alpha(alpha: float) -> None:
    if not 0.0 <= alpha <= 1.0:
        raise ValueError(f"alpha must lie in [0, 1], got {alpha}")


def _check_gamma(gamma: int) -> None:
    if gamma < 0:
        raise ValueError(f"gamma must be at least 0, got {gamma}")


def expected_tokens_per_round(alpha: float, gamma: int) -> float:
    """Expected tokens of one round when each proposal is accepted independently: eq. (1).

    (1 - alpha^(gamma+1)) / (1 - alpha), written as the sum of its geometric series, which has no
    special case at alpha = 1.

    Args:
        alpha: acceptance rate, in [0, 1].
        gamma: proposed tokens a round, at least 0.

    Returns:
        tokens a target forward, between 1 and gamma + 1.

    Source: Leviathan et al. 2023, arXiv 2211.17192, eq. (1).
    """
    _check_alpha(alpha)
    _check_gamma(gamma)
    return math.fsum(alpha**k for k in range(gamma + 1))


def walltime_speedup(alpha: float, gamma: int, c: float) -> float:
    """Expected speed-up over plain decoding when verifying costs one forward: Theorem 3.8.

    Args:
        alpha: acceptance rate, in [0, 1].
        gamma: proposed tokens a round.
        c: time of a draft forward over time of a target forward, at least 0.

    Source: Leviathan et al. 2023, arXiv 2211.17192, Theorem 3.8.
    """
    if c < 0:
        raise ValueError(f"c must be at least 0, got {c}")
    return expected_tokens_per_round(alpha, gamma) / (gamma * c + 1)


def measured_cost_speedup(
    *, tokens_per_round: float, plain_s: float, verify_s: float, draft_s: float, gamma: int, overhead_s: float = 0.0
) -> float:
    """Speed-up when every cost is measured: tokens x t_AR / (t_verify + gamma x t_draft + overhead).

    Theorem 3.8 is the case t_verify = t_AR and no overhead.

    Args:
        tokens_per_round: mean tokens of a round.
        plain_s: seconds of a one-token target forward.
        verify_s: seconds of a target forward over gamma + 1 positions.
        draft_s: seconds of one draft forward.
        gamma: proposed tokens a round.
        overhead_s: seconds a round spends outside forwards.
    """
    _check_gamma(gamma)
    round_s = verify_s + gamma * draft_s + overhead_s
    if round_s <= 0:
        raise ValueError(f"a round must take time, got {round_s} s")
    return tokens_per_round * plain_s / round_s


def best_of(speedups: Mapping[int, float]) -> int:
    """The gamma with the largest speed-up of a table by gamma; the smallest one on a tie.

    ValueError where the table is empty or holds no number.
    """
    if not speedups:
        raise ValueError("speedups must not be empty")
    if any(math.isnan(value) for value in speedups.values()):
        raise ValueError("speedups must be numbers, got nan")
    return max(sorted(speedups), key=speedups.__getitem__)


def best_gamma(alpha: float, c: float, gammas: Sequence[int]) -> int:
    """The gamma of `gammas` with the largest speed-up by Theorem 3.8; the smallest one on a tie."""
    if not gammas:
        raise ValueError("gammas must not be empty")
    return best_of({gamma: walltime_speedup(alpha, gamma, c) for gamma in gammas})
