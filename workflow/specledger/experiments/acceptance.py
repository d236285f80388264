"""The acceptance rule at one real position, drawn many times: does what comes out follow p?

Shapes: N draws, V vocabulary.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from specledger.sampling.distributions import draw
from specledger.sampling.uniforms import Uniforms
from specledger.sampling.verify import Verdict, acceptance_probability, verify
from specledger.statistics.goodness import monte_carlo_fit, pooled_chisquare, total_variation
from specledger.statistics.power import detectable_leak, tv_bound
from specledger.statistics.rates import wilson

CHUNK_NUMBERS = 650_000  # a batch of draws, in probabilities
RESAMPLES = 9_999
MOST_RESAMPLED = 20_000_000  # counts that are held at once, of large vocabularies


@dataclass(frozen=True, kw_only=True)
class Simulation:
    """How often each symbol came out [V], and how many proposals were accepted."""

    counts_V: np.ndarray
    accepted: int


def simulate(
    target_probs_V: np.ndarray,
    draft_probs_V: np.ndarray,
    *,
    draws: int,
    uniforms: Uniforms,
    rule: Callable[..., Verdict] = verify,
) -> Simulation:
    """Propose from q, verify against p (or let another rule do it), and count the first token, `draws` times."""
    V = len(target_probs_V)
    counts_V, accepted = np.zeros(V, dtype=np.int64), 0
    chunk = max(1, CHUNK_NUMBERS // (2 * V))
    for start in range(0, draws, chunk):
        N = min(chunk, draws - start)
        proposed_N1 = draw(np.broadcast_to(draft_probs_V, (N, V)), uniforms.draft.random(N))[:, None]
        verdict = rule(
            np.broadcast_to(target_probs_V, (N, 2, V)),
            np.broadcast_to(draft_probs_V, (N, 1, V)),
            proposed_N1,
            uniforms.accept.random((N, 1)),
            uniforms.extra.random(N),
        )
        first_N = np.where(verdict.accept_len_N == 1, proposed_N1[:, 0], verdict.token_N)
        counts_V += np.bincount(first_N, minlength=V)
        accepted += int(verdict.accept_len_N.sum())
    return Simulation(counts_V=counts_V, accepted=accepted)


def judge(p_V: np.ndarray, q_V: np.ndarray, simulation: Simulation, *, generator: np.random.Generator) -> dict:
    """The readings of one simulation: distances to p, what chance alone gives, and what the test could have seen.

    `detectable_leak` is the smallest share of tokens drawn from q in place of p that Pearson's test sees at
    level .001 with power .9; `tv_bound` the largest TV that the measured statistic leaves room for (95%).
    """
    draws = int(simulation.counts_V.sum())
    resamples = min(RESAMPLES, MOST_RESAMPLED // len(p_V))
    fit = monte_carlo_fit(simulation.counts_V, p_V, generator, resamples=resamples)
    chi2, df, p_value = pooled_chisquare(simulation.counts_V, p_V)
    rate, tv_draft = wilson(simulation.accepted, draws), float(total_variation(q_V, p_V))
    leak = detectable_leak(p_V, q_V, draws) if df else None
    return {
        "draws": draws,
        "accepted": simulation.accepted,
        "acceptance": simulation.accepted / draws,
        "acceptance_lo": rate.lo,
        "acceptance_hi": rate.hi,
        "beta": float(acceptance_probability(p_V, q_V)),
        "tv_output": float(total_variation(simulation.counts_V / draws, p_V)),
        "tv_expected": fit.tv_expected,
        "tv_q999": fit.tv_q999,
        "tv_p_value": fit.tv_p_value,
        "tv_draft": tv_draft,
        "chi2": chi2,
        "df": df,
        "p_value": p_value,
        "chi2_p_value": fit.chi2_p_value,
        "detectable_leak": leak,
        "detectable_tv": None if leak is None else leak * tv_draft,
        "tv_bound": tv_bound(chi2, df, draws) if df else None,
        "resamples": resamples,
    }


def choose_positions(length: int, *, context: int, count: int, after: int = 0) -> list[int]:
    """At most `count` positions of a text of `length` tokens with a whole context before them.

    The same for all seeds; `after` leaves out as many that another call has chosen.
    """
    shuffled = np.random.default_rng(0).permutation(np.arange(context, length))
    return sorted(int(place) for place in shuffled[after : after + count])
