"""Wrong acceptance rules and wrong drafts, one round at a time: what the tests must catch.

Each stands for a fault that was found in public code or that a test could overlook; `source` says which.
Those of siblings are in `wrong_siblings`. Shapes: N rounds, G proposals, V vocabulary.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import torch

from specledger.sampling.distributions import GREEDY, Sampling, distribution, draw
from specledger.sampling.verify import Verdict, residual, verify
from specledger.theory.trees import ROOT, Tree

SLIP = "an easy slip"
WHOLE, COLD = Sampling(), Sampling(temperature=0.7)


def honest_draft(logits: np.ndarray, sampling: Sampling) -> tuple[np.ndarray, np.ndarray]:
    """What proposals are drawn from, and what is declared to have been: the same."""
    q = distribution(logits, sampling)
    return q, q


class Handed(NamedTuple):
    """What a rule is given of a round: the rows of p and q, and the proposals."""

    p_NGV: np.ndarray
    q_NGV: np.ndarray
    tokens_NG: np.ndarray


@dataclass(frozen=True, kw_only=True)
class RoundRule:
    """How a round is decided, what its proposals are drawn from, and which uniforms it uses twice.

    Its proposals are `siblings` for one place, a chain where it is one. `hands` changes what is given to the rule.

    `shares` is "accept" or "recovery" where that uniform is the one that drew the proposal. `hears` turns
    the target's logits into what the rule takes for p. `lossless` marks a rule that keeps p by its
    construction but is no step function of its uniforms: its acceptance is sum p q.
    """

    name: str
    source: str
    decide: Callable[..., Verdict] = verify
    draft: Callable[[np.ndarray, Sampling], tuple[np.ndarray, np.ndarray]] = honest_draft
    hears: Callable[[np.ndarray, Sampling], np.ndarray] = distribution
    sampling: Sampling = WHOLE
    shares: str = ""
    lossless: bool = False
    siblings: int = 1
    hands: Callable[[Handed], Handed] = lambda handed: handed

    @property
    def tree(self) -> Tree:
        return Tree.of((ROOT,) * self.siblings)


def deciding(
    *,
    accepts: Callable = lambda u, p, q: u * q < p,
    weights: Callable = lambda p_NGV, q_NGV, rows, lengths: residual(p_NGV[rows, lengths], q_NGV[rows, lengths]),
    bonus: Callable = lambda p_NGV, q_NGV, tokens_NG: p_NGV[:, -1],
) -> Callable[..., Verdict]:
    """A rule like `verify` with one of its three steps replaced."""

    def decide(p_NGV, q_NGV, tokens_NG, accept_NG, extra_N) -> Verdict:
        N, G = tokens_NG.shape
        at = (np.arange(N)[:, None], np.arange(G)[None, :], tokens_NG)
        p_NG, q_NG = p_NGV[at], q_NGV[at]
        accepted_NG = accepts(accept_NG, p_NG, q_NG)
        accept_len_N = np.where(accepted_NG.all(axis=1), G, accepted_NG.argmin(axis=1))
        weights_NV = np.array(bonus(p_NGV, q_NGV, tokens_NG))
        rejected = np.flatnonzero(accept_len_N < G)
        if rejected.size:
            found = weights(p_NGV, q_NGV, rejected, accept_len_N[rejected])
            empty = found.sum(axis=-1) <= 0  # a wrong rule may reject where nothing is left to draw from
            found[empty] = p_NGV[rejected, accept_len_N[rejected]][empty]
            weights_NV[rejected] = found
        return verdict_of_chain(accept_len_N, draw(weights_NV, extra_N), accepted_NG * 1.0)

    return decide


def verdict_of_chain(accept_len_N: np.ndarray, token_N: np.ndarray, accept_probs_NG: np.ndarray) -> Verdict:
    return Verdict(accept_len_N=accept_len_N, token_N=token_N, accept_probs_NG=accept_probs_NG, last_N=accept_len_N - 1)


def bfloat16(logits: np.ndarray) -> np.ndarray:
    return torch.as_tensor(logits).to(torch.bfloat16).to(torch.float64).numpy()


def _softmax_of_residual(p_NGV, q_NGV, rows, lengths):
    return np.exp(np.maximum(p_NGV[rows, lengths] - q_NGV[rows, lengths], 0.0))


def _row_after(p_NGV, q_NGV, rows, lengths):
    return np.maximum(p_NGV[rows, lengths + 1] - q_NGV[rows, lengths], 0.0)


def accept_if_equal(p_NGV, q_NGV, tokens_NG, accept_NG, extra_N) -> Verdict:
    """Lossless but wasteful: draw from p with the accept uniform, keep the guess only if both are the same."""
    wanted_NG = draw(p_NGV[:, :-1], accept_NG)
    same_NG = wanted_NG == tokens_NG
    G = tokens_NG.shape[1]
    accept_len_N = np.where(same_NG.all(axis=1), G, same_NG.argmin(axis=1))
    first_N = wanted_NG[np.arange(len(wanted_NG)), np.minimum(accept_len_N, G - 1)]
    token_N = np.where(accept_len_N == G, draw(p_NGV[:, -1], extra_N), first_N)
    return verdict_of_chain(accept_len_N, token_N, same_NG * 1.0)


def _past_the_vocabulary(p_NGV, q_NGV, tokens_NG, accept_NG, extra_N) -> Verdict:
    """A row that is not a number, which nothing checks: no symbol's cumulative sum exceeds the uniform."""
    verdict = verify(p_NGV, q_NGV, tokens_NG, accept_NG, extra_N)
    lost_N = extra_N >= 1 - 1e-3  # one row in a thousand is not a number
    return replace(verdict, token_N=np.where(lost_N, p_NGV.shape[-1], verdict.token_N))


def wrong_residuals() -> list[RoundRule]:
    """What is drawn after a rejection is wrong."""

    def rule(name: str, weights: Callable, source: str = SLIP) -> RoundRule:
        return RoundRule(name=name, source=source, decide=deciding(weights=weights))

    return [
        rule("resample-target", lambda p, q, n, j: p[n, j].copy()),
        rule("resample-draft", lambda p, q, n, j: q[n, j].copy()),
        rule("residual-absolute", lambda p, q, n, j: np.abs(p[n, j] - q[n, j])),
        rule("residual-softmax", _softmax_of_residual, "transformers PR #28508"),
        rule("residual-row-after", _row_after),
    ]


def wrong_verdicts() -> list[RoundRule]:
    """What is accepted is wrong, or right by a wasteful way."""

    def rule(name: str, accepts: Callable, source: str = SLIP) -> RoundRule:
        return RoundRule(name=name, source=source, decide=deciding(accepts=accepts))

    def one_percent(u, p, q):
        ratio = np.minimum(1, p / q)
        return u < ratio + 0.01 * (1 - ratio)

    return [
        rule("accept-always", lambda u, p, q: np.ones_like(u, dtype=bool)),
        rule("ratio-inverted", lambda u, p, q: u * p < q),
        rule("lenience-1.05", lambda u, p, q: u * q < 1.05 * p, "lenience of Leviathan et al. 2023"),
        rule("accept-1-percent-of-rejections", one_percent),
        RoundRule(name="accept-if-equal", source=SLIP, decide=accept_if_equal, lossless=True),
    ]


def wrong_draws(draft_after_VV: np.ndarray) -> list[RoundRule]:
    """The bonus token comes from a wrong row, a uniform serves twice, or a row is not a number."""
    row_before = deciding(bonus=lambda p, q, tokens: p[:, -2])
    from_draft = deciding(bonus=lambda p, q, tokens: draft_after_VV[tokens[:, -1]])
    return [
        RoundRule(name="bonus-row-before", source=SLIP, decide=row_before),
        RoundRule(name="bonus-from-draft", source=SLIP, decide=from_draft),
        RoundRule(name="uniform-draft-accept", source=SLIP, shares="accept"),
        RoundRule(name="uniform-draft-recovery", source="vLLM PR #54282", shares="recovery"),
        RoundRule(name="row-not-a-number", source="vLLM PR #45060", decide=_past_the_vocabulary),
    ]


def wrong_drafts() -> list[RoundRule]:
    """What is declared to the rule is not what proposals were drawn from, or p is heard in low precision."""

    def rule(name: str, drawn: Callable, source: str, sampling: Sampling = WHOLE) -> RoundRule:
        draft = lambda z, s: (drawn(z, s), distribution(z, s))  # noqa: E731
        return RoundRule(name=name, source=source, draft=draft, sampling=sampling)

    return [
        rule("draft-greedy", lambda z, s: distribution(z, GREEDY), "transformers #32867"),
        rule(
            "draft-top-k",
            lambda z, s: distribution(z, replace(s, top_k=min(10, z.shape[-1] // 2))),
            "transformers #47932",
        ),
        rule("draft-colder", lambda z, s: distribution(z, replace(s, temperature=0.9)), SLIP),
        rule("draft-ignores-temperature", lambda z, s: distribution(z, WHOLE), "z-lab/dflash #74", COLD),
        rule("draft-bfloat16", lambda z, s: distribution(bfloat16(z), s), "DeepSpec #31"),
        RoundRule(name="target-bfloat16", source="vLLM #54928", hears=lambda z, s: distribution(bfloat16(z), s)),
    ]


def wrong_rules(draft_after_VV: np.ndarray) -> list[RoundRule]:
    """The battery of rounds with one proposal, the correct one first; `draft_after_VV` is q after each first token."""
    correct = RoundRule(name="correct", source="Leviathan et al. 2023, algorithm 1")
    return [correct, *wrong_residuals(), *wrong_verdicts(), *wrong_draws(draft_after_VV), *wrong_drafts()]
