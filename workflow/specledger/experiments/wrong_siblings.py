"""Wrong rules for two siblings, proposals for the same place: what the tests of trees must catch.

Shapes: N rounds, K siblings, V vocabulary.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from specledger.experiments.wrong_rules import SLIP, Handed, RoundRule
from specledger.sampling.distributions import Sampling, draw
from specledger.sampling.siblings import scaled
from specledger.sampling.typical import typical
from specledger.sampling.verify import Verdict, residual, verify
from specledger.theory.trees import ROOT, Tree

SIBLINGS = 2
TREE = Tree.of((ROOT,) * SIBLINGS)
OTHER = [1, 0]  # each sibling's place taken by the other
SHARPER = Sampling(temperature=0.5)  # where the first sibling takes much of q, its absence from the second's shows


def leaving(leaves: Callable[[np.ndarray, np.ndarray, np.ndarray, int], np.ndarray]) -> Callable[..., Verdict]:
    """A rule like `verify` along siblings with another rest: `leaves(p_RV, held_RV, q_RV, rank)` after a rejection.

    `held` is what the rejected sibling of that rank was held against; what is left needn't be scaled to 1.
    """

    def decide(p_NKV, q_NKV, tokens_NK, accept_NK, extra_N) -> Verdict:
        N, K = tokens_NK.shape
        rounds, last_N, held_NV = np.arange(N), np.full(N, ROOT), p_NKV[:, 0].copy()
        for k in range(K):
            at = (rounds, tokens_NK[:, k])
            open_N = last_N == ROOT
            accepted_N = open_N & (accept_NK[:, k] * q_NKV[:, k][at] < held_NV[at])
            lost = np.flatnonzero(open_N & ~accepted_N)
            last_N[accepted_N] = k
            held_NV[lost] = leaves(p_NKV[lost, 0], held_NV[lost], q_NKV[lost, k], k)
        weights_NV = np.where((last_N == ROOT)[:, None], held_NV, p_NKV[rounds, last_N + 1])
        accepted_NK = last_N[:, None] == np.arange(K)
        return Verdict(
            accept_len_N=(last_N > ROOT) * 1,
            token_N=draw(weights_NV, extra_N),
            accept_probs_NG=accepted_NK * 1.0,
            last_N=last_N,
        )

    return decide


def right_rest(p_RV, held_RV, q_RV, rank) -> np.ndarray:
    return scaled(residual(held_RV, q_RV))[0]


def _held_against_p(p_RV, held_RV, q_RV, rank) -> np.ndarray:
    """Each sibling is held against p; what is drawn after all of them is the last one's residual."""
    return residual(p_RV, q_RV) if rank == SIBLINGS - 1 else p_RV


def _of_the_first_alone(p_RV, held_RV, q_RV, rank) -> np.ndarray:
    """What the second's rejection leaves isn't taken away."""
    return scaled(residual(held_RV, q_RV))[0] if rank == 0 else held_RV


def _not_scaled(p_RV, held_RV, q_RV, rank) -> np.ndarray:
    """The second sibling is held against weights that sum to less than 1; what is left of them may be nothing."""
    rest_RV = residual(held_RV, q_RV)
    return np.where(rest_RV.any(axis=-1, keepdims=True), rest_RV, held_RV)


def _turned_round(handed: Handed) -> Handed:
    """The second first, each with its own row of q and of p."""
    rows = [0, *(1 + place for place in OTHER)]
    return Handed(handed.p_NGV[:, rows], handed.q_NGV[:, OTHER], handed.tokens_NG[:, OTHER])


def _likeliest_first(handed: Handed) -> Handed:
    """The sibling to which q gives more comes first, each with its own rows."""
    q_NV, tokens_NK = handed.q_NGV[:, 0], handed.tokens_NG
    q_NK = np.take_along_axis(q_NV, tokens_NK, axis=1)
    turned = _turned_round(handed)
    swap_N = q_NK[:, 1] > q_NK[:, 0]
    return Handed(
        *(np.where(swap_N.reshape(-1, *[1] * (a.ndim - 1)), b, a) for a, b in zip(handed, turned, strict=True))
    )


def _first_q_for_all(handed: Handed) -> Handed:
    """What was drawn is not taken out of the second's q, and the rest not scaled to 1."""
    return handed._replace(q_NGV=np.repeat(handed.q_NGV[:, :1], SIBLINGS, axis=1))


def _rows_of_the_other(handed: Handed) -> Handed:
    """After an accepted sibling the next token comes from p after the other one."""
    return handed._replace(p_NGV=handed.p_NGV[:, [0, *(1 + place for place in OTHER)]])


def _typical(p_NKV, q_NKV, tokens_NK, accept_NK, extra_N) -> Verdict:
    return typical(p_NKV, tokens_NK, extra_N, TREE)


def wrong_siblings() -> list[RoundRule]:
    """The battery of rounds with siblings, the correct rule first."""

    def rule(name: str, source: str = SLIP, **faults: Any) -> RoundRule:
        return RoundRule(name=name, source=source, siblings=SIBLINGS, **({"decide": walk} | faults))

    walk = partial(verify, tree=TREE)
    return [
        rule("correct", "Miao et al. 2024 (SpecInfer), algorithm 2"),
        rule("siblings-reversed", hands=_turned_round),
        rule("siblings-likeliest-first", hands=_likeliest_first),
        rule("sibling-held-against-target", decide=leaving(_held_against_p)),
        rule("sibling-residual-not-scaled", decide=leaving(_not_scaled)),
        rule("sibling-residual-of-first", decide=leaving(_of_the_first_alone)),
        rule("sibling-draft-not-renormalised", hands=_first_q_for_all, sampling=SHARPER),
        rule("sibling-row-of-the-other", hands=_rows_of_the_other),
        rule("typical-as-lossless", "typical acceptance of Cai et al. 2024 (Medusa)", decide=_typical),
    ]
