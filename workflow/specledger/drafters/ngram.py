"""A character n-gram with interpolated absolute discounting (Ney, Essen & Kneser 1994).

P_n(w | h) = max(count(h w) - d, 0) / count(h) + d * distinct(h) / count(h) * P_{n-1}(w | h'),
where h' is h without its oldest symbol, and P_0 is uniform. Shapes: V vocabulary, E entries (distinct
n-grams of one length), C contexts of one length.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file

from specledger.corpus.text import max_order
from specledger.decoding.drafter import Drafter, Parts
from specledger.decoding.proposals import Output
from specledger.decoding.proposers import Proposer
from specledger.foundation.drafters import Spec
from specledger.foundation.errors import UserError
from specledger.models.arrays import to_host
from specledger.sampling.distributions import Sampling, distribution

SPECS = (
    Spec(
        name="ngram",
        order=70,
        title={"en": "n-gram", "zh": "n-gram"},
        tree_title={"en": "n-gram tree", "zh": "n-gram 树"},
        colour="#009e73",
        dark="#1fb88c",
        marker="^",
        prefix_alone=True,
        required=True,
    ),
)

MEMO_BYTES = 64 * 1024 * 1024


@dataclass(frozen=True, kw_only=True)
class Level:
    """All contexts of one length: entries of context i are [start_i, start_{i+1}).

    `gain_E` is what a symbol has beyond the share `factor_C` of the shorter context's probabilities.
    """

    contexts_C: np.ndarray
    starts_C1: np.ndarray
    symbols_E: np.ndarray
    counts_E: np.ndarray
    factor_C: np.ndarray
    gain_E: np.ndarray
    row_of: dict[int, int]


def _level(codes_E: np.ndarray, counts_E: np.ndarray, vocabulary: int, discount: float) -> Level:
    contexts, starts = np.unique(codes_E // vocabulary, return_index=True)
    starts_C1 = np.append(starts, len(codes_E))
    distinct_C, total_C = np.diff(starts_C1), np.add.reduceat(counts_E, starts)
    return Level(
        contexts_C=contexts,
        starts_C1=starts_C1,
        symbols_E=codes_E % vocabulary,
        counts_E=counts_E,
        factor_C=discount * distinct_C / total_C,
        gain_E=(counts_E - discount) / np.repeat(total_C, distinct_C),
        row_of={int(context): i for i, context in enumerate(contexts)},
    )


@dataclass(frozen=True, kw_only=True)
class NGram:
    """Counts of every n-gram up to `order` symbols, and the probabilities that they give."""

    vocabulary: int
    order: int
    discount: float
    levels: tuple[Level, ...]
    _memo: dict[tuple[int, ...], np.ndarray] = field(default_factory=dict, repr=False)
    _rows: dict = field(default_factory=dict, repr=False)

    @classmethod
    def count(cls, tokens_T: np.ndarray, *, vocabulary: int, order: int, discount: float) -> "NGram":
        """Count tokens [T] int64; `order` is the length of an n-gram, the predicted symbol included."""
        if not 1 <= order <= max_order(vocabulary):
            raise ValueError(f"order must be from 1 to {max_order(vocabulary)} at vocabulary {vocabulary}, got {order}")
        levels = []
        for length in range(1, order + 1):
            windows = np.lib.stride_tricks.sliding_window_view(tokens_T, length)
            codes = windows @ vocabulary ** np.arange(length - 1, -1, -1, dtype=np.int64)
            levels.append(_level(*np.unique(codes, return_counts=True), vocabulary, discount))
        return cls(vocabulary=vocabulary, order=order, discount=discount, levels=tuple(levels))

    def probabilities(self, context) -> np.ndarray:
        """P(next | context) [V] float64 from the last order - 1 tokens; read it, don't write to it."""
        recent = tuple(int(token) for token in context[max(0, len(context) - self.order + 1) :])
        known = self._memo.get(recent)
        if known is None:
            known = self._interpolated(recent)
            if (len(self._memo) + 1) * known.nbytes <= MEMO_BYTES:
                self._memo[recent] = known
        return known

    def rows(self, sampling) -> dict[tuple[int, ...], np.ndarray]:
        """The rows of a sampling that are known, by their contexts."""
        return self._rows.setdefault(sampling, {})

    def _interpolated(self, recent: tuple[int, ...]) -> np.ndarray:
        """From the row of the context that is one symbol shorter; of none, the uniform one."""
        lower_V = self.probabilities(recent[1:]) if recent else np.full(self.vocabulary, 1.0 / self.vocabulary)
        code = 0
        for token in recent:
            code = code * self.vocabulary + token
        level = self.levels[len(recent)]
        row = level.row_of.get(code)
        if row is None:
            return lower_V
        entries = slice(level.starts_C1[row], level.starts_C1[row + 1])
        probs_V = lower_V * level.factor_C[row]
        probs_V[level.symbols_E[entries]] += level.gain_E[entries]
        return probs_V

    def loss(self, tokens_T: np.ndarray) -> float:
        """Mean negative log-likelihood of tokens [T], in nats a symbol, each from what precedes it."""
        order = self.order
        rows = (self.probabilities(tokens_T[max(0, t - order + 1) : t])[tokens_T[t]] for t in range(len(tokens_T)))
        return float(-np.log(np.fromiter(rows, dtype=np.float64, count=len(tokens_T))).mean())

    def save(self, path: Path) -> None:
        arrays = {"discount": np.array([self.discount]), "vocabulary": np.array([self.vocabulary])}
        for length, level in enumerate(self.levels, start=1):
            repeated = np.repeat(level.contexts_C, np.diff(level.starts_C1))
            arrays[f"codes_{length}"] = repeated * self.vocabulary + level.symbols_E
            arrays[f"counts_{length}"] = level.counts_E
        save_file(arrays, path)

    @classmethod
    def load(cls, path: Path) -> "NGram":
        try:
            arrays = load_file(path)
        except FileNotFoundError:
            raise UserError(f"{path}: missing; run snakemake again, it makes what is missing") from None
        except SafetensorError as error:
            raise UserError(f"{path}: damaged ({error}); delete it and run snakemake again") from None
        vocabulary = int(arrays["vocabulary"][0])
        order = sum(name.startswith("codes_") for name in arrays)
        discount, entries = float(arrays["discount"][0]), range(1, order + 1)
        levels = tuple(_level(arrays[f"codes_{n}"], arrays[f"counts_{n}"], vocabulary, discount) for n in entries)
        return cls(vocabulary=vocabulary, order=order, discount=discount, levels=levels)


class NGramProposer(Proposer):
    """Counts of the training text: no forward. Rows are kept for contexts seen, by all texts of one n-gram."""

    def __init__(self, ngram: NGram, *, engine, sampling: Sampling, capacity: int):
        super().__init__(engine=engine, sampling=sampling)
        self.ngram, self.reach, self.known = ngram, ngram.order - 1, ngram.rows(sampling)

    def begin(self, output: Output | None, tokens: Sequence[int]) -> np.ndarray:
        self.contexts = [tuple(tokens[max(0, len(tokens) - self.reach) :])]  # after the text, and after each node
        return self._row(self.contexts[0])

    def expand(self, parents: Sequence[int], tokens: Sequence[int]) -> np.ndarray:
        found = []
        for parent, token in zip(parents, tokens, strict=True):
            context = (*self.contexts[parent + 1], token)
            self.contexts.append(context[max(0, len(context) - self.reach) :])
            found.append(self._row(self.contexts[-1]))
        return np.stack(found)

    def chain(
        self, tokens: Sequence[int], uniforms_G: np.ndarray, threshold: float
    ) -> tuple[Sequence[int], np.ndarray]:
        context, draw, drawn, rows = tuple(tokens[max(0, len(tokens) - self.reach) :]), self.engine.rules.draw, [], []
        for uniform in uniforms_G.tolist():
            row_V = self._row(context)
            drawn.append(draw(row_V, uniform))
            rows.append(row_V)
            if row_V[drawn[-1]] < threshold:
                break
            context = (*context, drawn[-1])[-self.reach :] if self.reach else ()
        return drawn, np.array(rows)

    def _row(self, context: tuple[int, ...]) -> np.ndarray:
        """q [V] after a context."""
        row_V = self.known.get(context)
        if row_V is None:
            row_V = self.ngram.probabilities(context)
            if self.sampling != Sampling():
                with np.errstate(divide="ignore"):
                    row_V = distribution(np.log(row_V), self.sampling)
            if (len(self.known) + 1) * row_V.nbytes > MEMO_BYTES:
                self.known.clear()
            self.known[context] = row_V
        return row_V

    @staticmethod
    def plain_logits(ngram: NGram, contexts_NT, proposed: int) -> np.ndarray:
        return np.log(np.stack([ngram.probabilities(context) for context in to_host(contexts_NT)]))

    @staticmethod
    def logits_along(ngram: NGram, engine, tokens: list[int]) -> np.ndarray:
        """Log probabilities [T - 1, V] of tokens[1:]."""
        return np.log(np.stack([ngram.probabilities(tokens[:t]) for t in range(1, len(tokens))]))


def drafter(spec: Spec, parts: Parts) -> Drafter:
    return Drafter.of(spec, NGramProposer, parts.ngram, vocabulary=parts.ngram.vocabulary)
