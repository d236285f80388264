"""The target's exact laws of short texts, with what rounding leaves open set apart: computed once, asked often.

Shapes: N texts of L tokens, K symbols of the alphabet, V vocabulary.
"""

from dataclasses import dataclass

import numpy as np

from specledger.experiments.reference import cells_of, joint, laws, lumped
from specledger.sampling.distributions import Sampling

NEAR = 1e-5


@dataclass(frozen=True, kw_only=True)
class ExactLaws:
    """Laws of the first n tokens under one sampling, n from 2 on, of texts that pass no doubtful prefix.

    `doubtful[d]` marks the prefixes of d symbols at which a rounding decides what a warper keeps.
    """

    sampling: Sampling
    vocabulary: int
    symbols_K: np.ndarray
    doubtful: list[np.ndarray]
    laws: dict[int, np.ndarray]

    @classmethod
    def of(cls, tree: list[np.ndarray], symbols_K: np.ndarray, sampling: Sampling) -> "ExactLaws":
        """From the target's tree of logits, [K] * d + [V]."""
        rows = lumped(laws(tree, sampling), symbols_K)
        others = rows[0].shape[-1] - len(symbols_K)
        doubtful = [np.pad(near_a_cut(logits, sampling), (0, others if d else 0)) for d, logits in enumerate(tree)]
        found = {}
        for n in range(2, len(tree) + 1):
            law = joint(rows, n)
            for d, near in enumerate(doubtful[:n]):
                law = np.where(near.reshape(near.shape + (1,) * (n - d)), 0.0, law)
            found[n] = law
        V = tree[0].shape[-1]
        return cls(sampling=sampling, vocabulary=V, symbols_K=symbols_K, doubtful=doubtful, laws=found)

    def clear_cells(self, tokens_NL: np.ndarray, n: int) -> np.ndarray:
        """The cells [., n] of the texts' first n tokens, without the texts that pass a doubtful prefix."""
        cells_NL = cells_of(tokens_NL[:, :n], self.symbols_K, self.vocabulary)
        clear_N = np.ones(len(cells_NL), dtype=bool)
        for d, near in enumerate(self.doubtful[:n]):
            clear_N &= ~near[tuple(cells_NL[:, :d].T)]
        return cells_NL[clear_N]


def near_a_cut(logits: np.ndarray, sampling: Sampling) -> np.ndarray:
    """[...] of logits [..., V]: would a change of 1e-5 in the probabilities let a warper keep other symbols?

    Decoders and the reference round differently; where such a cut hangs on it, a symbol is impossible to one
    and possible to the other. Whether it does depends on the prefix alone, so that leaving these prefixes out
    biases nothing.
    """
    log_weights = logits - logits.max(axis=-1, keepdims=True)
    near = np.zeros(logits.shape[:-1], dtype=bool)
    for warper in sampling.warpers:
        near |= warper.doubtful(log_weights, NEAR)
        log_weights = warper(log_weights)
    return near
