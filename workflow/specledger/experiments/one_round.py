"""One round after a fixed prompt, decided many times by a right or a wrong rule, and its exact law.

Its proposals are one token or several siblings for the same place, and two tokens are kept: acceptance and residual
show in the first, the token after an accepted sibling in the second.
Shapes: N rounds, S drafts (all that the siblings can be), K siblings, V vocabulary; the law has a column more for
what lies outside the vocabulary.
"""

from dataclasses import dataclass

import numpy as np

from specledger.experiments.block_law import acceptance_law, drafts_of, token_law
from specledger.experiments.sequences import Finding, acceptance_test, ngram_test
from specledger.experiments.wrong_rules import Handed, RoundRule
from specledger.sampling.arrays import with_symbol
from specledger.sampling.distributions import distribution, draw
from specledger.sampling.siblings import draw_siblings, scaled
from specledger.sampling.uniforms import Uniforms
from specledger.sampling.verify import acceptance_probability, residual
from specledger.statistics.goodness import monte_carlo_fit
from specledger.statistics.power import binomial_power, chisquare_power

CHUNK_NUMBERS = 650_000  # a batch of rounds, in probabilities


@dataclass(frozen=True, kw_only=True)
class Place:
    """Logits at a prompt: of the target now [V] and after each token [V, V], of the draft now [V]."""

    target_V: np.ndarray
    target_VV: np.ndarray
    draft_V: np.ndarray


def declared_rows(probs_V: np.ndarray, drawn_NK: np.ndarray) -> np.ndarray:
    """What siblings are declared to be drawn from [N, K, V], whatever drew them: `probs_V` without those before each.

    ValueError where nothing is left to draw.
    """
    left_NV, found = np.tile(probs_V, (len(drawn_NK), 1)), []
    for rank, tokens_N in enumerate(drawn_NK.T):
        row_NV, some_N = scaled(left_NV) if rank else (left_NV, np.ones(1))
        if not some_N.all():
            raise ValueError(f"q must have more than {rank} symbols, got {np.count_nonzero(probs_V)}")
        found.append(row_NV)
        left_NV = with_symbol(left_NV, tokens_N, 0.0)
    return np.stack(found, axis=1)


def acceptance_of_any(target_probs_V: np.ndarray, draft_probs_V: np.ndarray, siblings: int) -> float:
    """How likely `verify` accepts one of the siblings: sum min(p, q), then after a rejection the same of what is left.

    Of one sibling it is beta; of K the sum goes over V^(K - 1) rejected ones.
    """
    found = float(acceptance_probability(target_probs_V, draft_probs_V))
    rejected_V = residual(draft_probs_V, target_probs_V)
    if siblings == 1 or not rejected_V.any():
        return found
    left_V = scaled(residual(target_probs_V, draft_probs_V))[0]
    for token in np.flatnonzero(rejected_V):
        next_V = scaled(with_symbol(draft_probs_V, token, 0.0))[0]
        found += float(rejected_V[token]) * acceptance_of_any(left_V, next_V, siblings - 1)
    return found


@dataclass(frozen=True, kw_only=True)
class Rows:
    """What a rule hears and says at a place, and the truth beside it.

    `beta` is how likely the right rule accepts one of the siblings.
    """

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
            beta=acceptance_of_any(p_V, distribution(place.draft_V, rule.sampling), rule.siblings),
        )

    def handed(self, rule: RoundRule, draft_NK: np.ndarray) -> Handed:
        """What the rule is given for these siblings: rows of p and q, and the tokens."""
        N, K = draft_NK.shape
        heard_V = np.broadcast_to(self.heard_V, (N, len(self.p_V)))
        return rule.hands(
            Handed(
                p_NGV=np.stack([heard_V, *(self.heard_VV[draft_NK[:, k]] for k in range(K))], axis=1),
                q_NGV=declared_rows(self.declared_V, draft_NK),
                tokens_NG=draft_NK,
            )
        )


@dataclass(frozen=True, kw_only=True)
class Rounds:
    """The two tokens of each round [N, 2] and whether one of its proposals was accepted [N]."""

    tokens_N2: np.ndarray
    accepted_N: np.ndarray


def decide_rounds(rule: RoundRule, rows: Rows, count: int, uniforms: Uniforms) -> Rounds:
    """`count` rounds; after a rejection the second token is the target's own."""
    V, K = len(rows.p_V), rule.siblings
    tokens, accepted = [], []
    chunk = max(1, CHUNK_NUMBERS // ((K + 1) * V))
    for start in range(0, count, chunk):
        N = min(chunk, count - start)
        u_NK, accept_NK = uniforms.draft.random((N, K)), uniforms.accept.random((N, K))
        extra_N, after_N = uniforms.extra.random(N), uniforms.extra.random(N)
        handed = rows.handed(rule, draw_siblings(np.broadcast_to(rows.drawn_V, (N, V)), u_NK).tokens)
        decided = (*handed, u_NK if rule.shares == "accept" else accept_NK)
        verdict = rule.decide(*decided, extra_N)
        last_N = verdict.last_N
        kept_N = last_N >= 0
        redrawn_N = rule.decide(*decided, u_NK[:, 0]).token_N if rule.shares == "recovery" else verdict.token_N
        first_N = np.where(kept_N, handed.tokens_NG[np.arange(N), last_N], redrawn_N)
        next_N = draw(rows.p_VV[np.minimum(first_N, V - 1)], after_N)
        tokens.append(np.stack([first_N, np.where(kept_N, verdict.token_N, next_N)], axis=1))
        accepted.append(kept_N)
    return Rounds(tokens_N2=np.concatenate(tokens), accepted_N=np.concatenate(accepted))


def round_law(rule: RoundRule, rows: Rows) -> tuple[np.ndarray, float]:
    """The exact law [V, V + 1] of the two tokens, and the probability that one of the proposals is accepted."""
    V, K, tree = len(rows.p_V), rule.siblings, rule.tree
    if rule.lossless:
        inside_VV = rows.p_V[:, None] * rows.p_VV
        return np.pad(inside_VV, ((0, 0), (0, 1))), float((rows.p_V * rows.drawn_V).sum())
    draft_SK, _, weight_S = drafts_of([rows.drawn_V], tree)
    handed = rows.handed(rule, draft_SK)
    hi_S = np.cumsum(rows.drawn_V)[draft_SK[:, 0]]  # of the uniform that drew the only proposal, where it serves twice
    lo_S, width_S = hi_S - rows.drawn_V[draft_SK[:, 0]], rows.drawn_V[draft_SK[:, 0]]
    accept_SK = acceptance_law(rule.decide, *handed, tree)
    if rule.shares == "accept":
        accept_SK = np.clip((accept_SK - lo_S[:, None]) / width_S[:, None], 0, 1)
    law = np.zeros((V, V + 1))
    for last in range(-1, K):
        before = range(K if last < 0 else last)
        weight_of_S = weight_S * np.prod([1 - accept_SK[:, k] for k in before], axis=0)
        possible, cumulative_SV = token_law(rule.decide, *handed, last, tree)
        if rule.shares == "recovery" and last < 0:
            cumulative_SV = np.clip((cumulative_SV - lo_S[:, None]) / width_S[:, None], 0, 1)
        if last >= 0:
            weight_of_S = weight_of_S * accept_SK[:, last]
        mass_SV = np.where(possible[:, None], weight_of_S[:, None] * np.diff(cumulative_SV, axis=1, prepend=0.0), 0.0)
        if last < 0:
            law[:, :V] += mass_SV.sum(axis=0)[:, None] * rows.p_VV
        else:
            rest_S = np.where(possible, weight_of_S, 0.0) - mass_SV.sum(axis=1)
            np.add.at(law, handed.tokens_NG[:, last], np.concatenate([mass_SV, rest_S[:, None]], axis=1))
    rejected_S = np.prod(1 - accept_SK, axis=1)
    return np.maximum(law, 0.0), float((weight_S * (1 - rejected_S)).sum())  # differences of steps may be -1e-16


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
