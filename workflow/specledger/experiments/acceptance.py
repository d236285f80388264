"""The acceptance rule at real positions, drawn many times: does what comes out follow p?

Shapes: N draws, V vocabulary.
"""

from dataclasses import dataclass

import numpy as np
import torch

from specledger.decoding.drafters import Drafter
from specledger.decoding.engines import engine
from specledger.models.llama import Llama
from specledger.sampling.distributions import Sampling, distribution, draw
from specledger.sampling.uniforms import Uniforms
from specledger.sampling.verify import acceptance_probability, verify
from specledger.statistics.goodness import null_total_variation, pooled_chisquare, total_variation

CHUNK = 20_000


@dataclass(frozen=True, kw_only=True)
class Simulation:
    """How often each symbol came out [V], and how many proposals were accepted."""

    counts_V: np.ndarray
    accepted: int


@torch.inference_mode()
def position_distributions(
    target: Llama, drafter: Drafter, context: list[int], sampling: Sampling
) -> tuple[np.ndarray, np.ndarray]:
    """p and q [V] of the token after `context`, which must fit into the model's context.

    The target first sees all but the last token, as it would have by the time it decodes: an MTP
    module proposes from the hidden states of that forward.
    """
    executed = engine("recompute")
    session = executed.open(target, len(context) + 1)
    drafting = drafter.open(executed, sampling, len(context) + 1)
    drafting.observe(session.forward(context[:-1], rows=1), len(context) - 1)
    draft_probs_V = drafting.propose(context, 1, np.random.default_rng(0)).probs_GV[0]
    logits_V = session.forward(context, rows=1).logits_TV[0].cpu().numpy()
    return distribution(logits_V, sampling), draft_probs_V


def simulate(target_probs_V: np.ndarray, draft_probs_V: np.ndarray, *, draws: int, uniforms: Uniforms) -> Simulation:
    """Propose from q, verify against p, and count the first token that comes out, `draws` times."""
    V = len(target_probs_V)
    counts_V, accepted = np.zeros(V, dtype=np.int64), 0
    for start in range(0, draws, CHUNK):
        N = min(CHUNK, draws - start)
        proposed_N1 = draw(np.broadcast_to(draft_probs_V, (N, V)), uniforms.draft.random(N))[:, None]
        verdict = verify(
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
    """The readings of one simulation: distances to p, what chance alone would give, chi-square."""
    draws = int(simulation.counts_V.sum())
    expected, q999 = null_total_variation(p_V, draws, generator)
    chi2, df, p_value = pooled_chisquare(simulation.counts_V, p_V)
    return {
        "draws": draws,
        "accepted": simulation.accepted,
        "acceptance": simulation.accepted / draws,
        "beta": float(acceptance_probability(p_V, q_V)),
        "tv_output": float(total_variation(simulation.counts_V / draws, p_V)),
        "tv_expected": expected,
        "tv_q999": q999,
        "tv_draft": float(total_variation(q_V, p_V)),
        "chi2": chi2,
        "df": df,
        "p_value": p_value,
    }


def choose_positions(length: int, *, context: int, count: int) -> list[int]:
    """`count` positions of a text of `length` tokens with a whole context before them; the same for all seeds."""
    generator = np.random.default_rng(0)
    return sorted(int(i) for i in generator.choice(np.arange(context, length), size=count, replace=False))
