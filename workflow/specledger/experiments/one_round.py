"""One round after a fixed prompt, decided many times by a right or a wrong rule, and its exact law.

gamma is 1 and two tokens are kept: the residual shows in the first, the bonus token in the second.
Shapes: N rounds, V vocabulary; the law has a column more for what lies outside the vocabulary.
"""

from dataclasses import dataclass

import numpy as np

from specledger.experiments.block_law import acceptance_law, token_law
from specledger.experiments.sequences import Finding, acceptance_test, ngram_test
from specledger.experiments.wrong_rules import RoundRule
from specledger.sampling.distributions import distribution, draw
from specledger.sampling.uniforms import Uniforms
from specledger.sampling.verify import acceptance_probability
from specledger.statistics.goodness import monte_carlo_fit
from specledger.statistics.power import binomial_power, chisquare_power

CHUNK_NUMBERS = 650_000  # a batch of rounds, in probabilities


@dataclass(frozen=True, kw_only=True)
class Place:
    """Logits at a prompt: of the target now [V] and after each token [V, V], of the draft now [V]."""

    target_V: np.ndarray
    target_VV: np.ndarray
    draft_V: np.ndarray


@dataclass(frozen=True, kw_only=True)
class Rows:
    """What a rule hears and says at a place, and the truth beside it."""

    p_V: np.ndarray
    p_VV: np.ndarray
    heard_V: np.ndarray
    heard_VV: np.ndarray
    drawn_V: np.ndarray
    declared_V: np.ndarray
    beta: float

    @classmethod
    def of(cls, rule: RoundRule, place: Place) -> "Rows":
        drawn_V, declared_V = rule.draft(place.draft_V, rule.sampling)
        p_V = distribution(place.target_V, rule.sampling)
        return cls(
            p_V=p_V,
            p_VV=distribution(place.target_VV, rule.sampling),
            heard_V=rule.hears(place.target_V, rule.sampling),
            heard_VV=rule.hears(place.target_VV, rule.sampling),
            drawn_V=drawn_V,
            declared_V=declared_V,
            beta=float(acceptance_probability(p_V, distribution(place.draft_V, rule.sampling))),
        )


@dataclass(frozen=True, kw_only=True)
class Rounds:
    """The two tokens of each round [N, 2] and whether its proposal was accepted [N]."""

    tokens_N2: np.ndarray
    accepted_N: np.ndarray


def decide_rounds(rule: RoundRule, rows: Rows, count: int, uniforms: Uniforms) -> Rounds:
    """`count` rounds; after a rejection the second token is the target's own."""
    V = len(rows.p_V)
    tokens, accepted = [], []
    chunk = max(1, CHUNK_NUMBERS // (2 * V))
    for start in range(0, count, chunk):
        N = min(chunk, count - start)
        u_N = uniforms.draft.random(N)
        accept_N, extra_N, after_N = uniforms.accept.random(N), uniforms.extra.random(N), uniforms.extra.random(N)
        guess_N = draw(np.broadcast_to(rows.drawn_V, (N, V)), u_N)
        heard_N2V = np.stack([np.broadcast_to(rows.heard_V, (N, V)), rows.heard_VV[guess_N]], axis=1)
        declared_N1V = np.broadcast_to(rows.declared_V, (N, 1, V))
        decided = (heard_N2V, declared_N1V, guess_N[:, None], (u_N if rule.shares == "accept" else accept_N)[:, None])
        verdict = rule.decide(*decided, extra_N)
        kept_N = verdict.accept_len_N == 1
        redrawn_N = rule.decide(*decided, u_N).token_N if rule.shares == "recovery" else verdict.token_N
        first_N = np.where(kept_N, guess_N, redrawn_N)
        next_N = draw(rows.p_VV[np.minimum(first_N, V - 1)], after_N)
        tokens.append(np.stack([first_N, np.where(kept_N, verdict.token_N, next_N)], axis=1))
        accepted.append(kept_N)
    return Rounds(tokens_N2=np.concatenate(tokens), accepted_N=np.concatenate(accepted))


def round_law(rule: RoundRule, rows: Rows) -> tuple[np.ndarray, float]:
    """The exact law [V, V + 1] of the two tokens, and the probability that the proposal is accepted."""
    V = len(rows.p_V)
    if rule.lossless:
        inside_VV = rows.p_V[:, None] * rows.p_VV
        return np.pad(inside_VV, ((0, 0), (0, 1))), float((rows.p_V * rows.drawn_V).sum())
    can = np.flatnonzero(rows.drawn_V > 0)
    heard = np.stack([np.broadcast_to(rows.heard_V, (len(can), V)), rows.heard_VV[can]], axis=1)
    declared = np.broadcast_to(rows.declared_V, (len(can), 1, V))
    inputs = (rule.decide, heard, declared, can[:, None])
    hi_S = np.cumsum(rows.drawn_V)[can]
    lo_S, width_S = hi_S - rows.drawn_V[can], rows.drawn_V[can]
    accept_S = acceptance_law(*inputs)[:, 0]
    if rule.shares == "accept":
        accept_S = np.clip((accept_S - lo_S) / width_S, 0, 1)
    reach_S = rows.drawn_V[can]
    law = np.zeros((V, V + 1))
    for length, weight_S in ((0, reach_S * (1 - accept_S)), (1, reach_S * accept_S)):
        possible, cumulative_SV = token_law(*inputs, length - 1)
        if rule.shares == "recovery" and length == 0:
            cumulative_SV = np.clip((cumulative_SV - lo_S[:, None]) / width_S[:, None], 0, 1)
        mass_SV = np.where(possible[:, None], weight_S[:, None] * np.diff(cumulative_SV, axis=1, prepend=0.0), 0.0)
        if length == 0:
            law[:, :V] += mass_SV.sum(axis=0)[:, None] * rows.p_VV
        else:
            law[can, :V] += mass_SV
            law[can, V] += np.where(possible, weight_S, 0.0) - mass_SV.sum(axis=1)
    return np.maximum(law, 0.0), float((reach_S * accept_S).sum())  # differences of steps may be -1e-16


def judge_rounds(rounds: Rounds, rows: Rows, generator: np.random.Generator, *, resamples: int) -> list[Finding]:
    """The tests of one position: 1-gram by Pearson and by TV, 2-gram, acceptance, and the vocabulary."""
    V = len(rows.p_V)
    inside_N = (rounds.tokens_N2 < V).all(axis=1)
    tokens_N2 = rounds.tokens_N2[inside_N]
    fit = monte_carlo_fit(np.bincount(tokens_N2[:, 0], minlength=V), rows.p_V, generator, resamples=resamples)
    outside = int((~inside_N).sum())
    return [
        ngram_test(tokens_N2[:, :1], rows.p_V),
        Finding(test="TV", statistic=fit.tv, df=None, p_value=fit.tv_p_value),
        ngram_test(tokens_N2, rows.p_V[:, None] * rows.p_VV),
        acceptance_test(rounds.accepted_N, np.full(len(rounds.accepted_N), rows.beta)),
        Finding(test="range", statistic=outside, df=None, p_value=0.0 if outside else 1.0),
    ]


def powers(law: np.ndarray, acceptance: float, rows: Rows, count: int, *, level: float) -> dict[str, float]:
    """How often each test rejects `count` rounds of that law; of TV it isn't known."""
    inside_VV = law[:, :-1]
    outside = max(0.0, 1.0 - float(inside_VV.sum()))
    inside_VV = inside_VV / inside_VV.sum()
    return {
        "1-gram": chisquare_power(inside_VV.sum(axis=1), rows.p_V, count, level=level),
        "2-gram": chisquare_power(inside_VV.ravel(), (rows.p_V[:, None] * rows.p_VV).ravel(), count, level=level),
        "acceptance": binomial_power(count, rows.beta, acceptance, level=level),
        "range": 1.0 - (1.0 - outside) ** count if outside > 1e-9 else 0.0,
    }
