"""What a round does with numbers on the host: distributions, draws and the acceptance rule, one round at a time.

An engine has one `Rules`; the tests hold each to the functions of `sampling`, draw by draw.
Shapes: T rows, G draft tokens (nodes), K siblings, V vocabulary.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from specledger.models.arrays import Array, to_host
from specledger.sampling.distributions import Sampling, distribution, draw
from specledger.sampling.siblings import draw_siblings
from specledger.sampling.typical import typical
from specledger.sampling.verify import verify
from specledger.theory.trees import Tree


class Found(NamedTuple):
    """A round's verdict: the last accepted node (-1: none), the token after it, and min(1, p/q) of the nodes [G]."""

    last: int
    token: int
    accept_probs: np.ndarray


class Rules:
    """The functions of `sampling`, for one round."""

    def distribution(self, logits_TV: Array, sampling: Sampling) -> np.ndarray:
        """Probabilities [T, V]; ValueError for a row that is none."""
        return distribution(to_host(logits_TV), sampling)

    def draw(self, probs_V: np.ndarray, uniform: float) -> int:
        return int(draw(probs_V, uniform))

    def siblings(self, probs_V: np.ndarray, uniforms_K: np.ndarray) -> tuple[Sequence[int], np.ndarray]:
        """Tokens drawn without replacement, as many as q has, and the row that each was drawn from [K, V]."""
        found = draw_siblings(probs_V, uniforms_K)
        count = int(found.there.sum())
        return found.tokens[:count].tolist(), found.rows[:count]

    def verify(
        self,
        target_probs_TV: np.ndarray,
        draft_probs_GV: np.ndarray,
        tokens: Sequence[int],
        accept_uniforms_G: np.ndarray,
        extra_uniform: float,
        tree: Tree,
    ) -> Found:
        """The acceptance rule for draft tokens in a tree, of which a chain is one."""
        tokens_1G, extra_1 = np.array([tokens], dtype=np.int64), np.array([extra_uniform])
        verdict = verify(target_probs_TV[None], draft_probs_GV[None], tokens_1G, accept_uniforms_G[None], extra_1, tree)
        return Found(int(verdict.last_N[0]), int(verdict.token_N[0]), verdict.accept_probs_NG[0])

    def typical(self, target_probs_TV: np.ndarray, tokens: Sequence[int], extra_uniform: float, tree: Tree) -> Found:
        """Typical acceptance, which is lossy."""
        tokens_1G, extra_1 = np.array([tokens], dtype=np.int64), np.array([extra_uniform])
        verdict = typical(target_probs_TV[None], tokens_1G, extra_1, tree)
        return Found(int(verdict.last_N[0]), int(verdict.token_N[0]), verdict.accept_probs_NG[0])
