"""Drafters that run no model: the n-gram, and prompt lookup in the text itself.

Shapes: G proposals, V vocabulary.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from specledger.decoding.engines import Engine
from specledger.decoding.proposals import Output, Proposal, no_proposal
from specledger.models.ngram import NGram
from specledger.sampling.distributions import Sampling, distribution

MEMO_BYTES = 64 * 1024 * 1024
CELL_BYTES = 40  # a probability, and its sum as a number of its own


@dataclass(frozen=True, kw_only=True)
class NGramDrafter:
    """Counts of the training text; microseconds a proposal, and no forward. Rows are kept for contexts seen."""

    ngram: NGram
    name: str = "ngram"
    max_gamma: int | None = None
    _rows: dict = field(default_factory=dict, repr=False)

    def open(self, engine: Engine, sampling: Sampling, capacity: int) -> "NGramSession":
        return NGramSession(self, sampling)

    def row(self, recent: tuple[int, ...], sampling: Sampling) -> tuple[np.ndarray, list[float]]:
        """q [V] after the tokens `recent`, and its running sums."""
        key = (recent, sampling)
        known = self._rows.get(key)
        if known is None:
            probs_V = self.ngram.probabilities(recent)
            if sampling != Sampling():
                with np.errstate(divide="ignore"):
                    probs_V = distribution(np.log(probs_V), sampling)
            if (len(self._rows) + 1) * len(probs_V) * CELL_BYTES > MEMO_BYTES:
                self._rows.clear()
            known = self._rows[key] = (probs_V, np.cumsum(probs_V).tolist())
        return known


class NGramSession:
    def __init__(self, drafter: NGramDrafter, sampling: Sampling):
        self.drafter, self.sampling = drafter, sampling
        self.reach = drafter.ngram.order - 1

    def propose(self, tokens: Sequence[int], gamma: int, generator: np.random.Generator) -> Proposal:
        if gamma == 0:
            return no_proposal(self.drafter.ngram.vocabulary)
        recent, reach = list(tokens[max(0, len(tokens) - self.reach) :]), self.reach
        probs_GV = np.empty((gamma, self.drafter.ngram.vocabulary))
        for place, uniform in enumerate(generator.random(gamma).tolist()):
            context = tuple(recent[max(0, len(recent) - reach) :])
            probs_GV[place], sums = self.drafter.row(context, self.sampling)
            # As `distributions.draw`: never past the last symbol that has weight.
            recent.append(min(bisect_right(sums, uniform * sums[-1]), bisect_left(sums, sums[-1])))
        return Proposal(tokens=recent[-gamma:], probs_GV=probs_GV, forwards=gamma)

    def observe(self, output: Output, length: int) -> None:
        pass


@dataclass(frozen=True, kw_only=True)
class LookupDrafter:
    """Prompt lookup (Saxena 2023): what followed the same last tokens the last time, proposed as certain.

    The longest match of `longest` down to `shortest` tokens counts; without one nothing is proposed.
    q is 1 at the proposal, so that it is accepted with p and a rejection draws from the rest of p.
    """

    vocabulary: int
    longest: int
    shortest: int
    name: str = "lookup"
    max_gamma: int | None = None

    def open(self, engine: Engine, sampling: Sampling, capacity: int) -> "LookupSession":
        return LookupSession(self)


class LookupSession:
    """Remembers where each run of tokens was last followed by something; `seen` tokens are entered."""

    def __init__(self, drafter: LookupDrafter):
        self.drafter = drafter
        self.lengths = range(drafter.longest, drafter.shortest - 1, -1)
        self.followed_at: dict[tuple[int, ...], int] = {}
        self.seen = 0

    def propose(self, tokens: Sequence[int], gamma: int, generator: np.random.Generator) -> Proposal:
        found = self._found(tokens)[:gamma]
        if not found:
            return no_proposal(self.drafter.vocabulary)
        probs_GV = np.zeros((len(found), self.drafter.vocabulary))
        probs_GV[np.arange(len(found)), found] = 1.0
        return Proposal(tokens=found, probs_GV=probs_GV, forwards=0)

    def _found(self, tokens: Sequence[int]) -> list[int]:
        """What followed the longest run that ends the text and stood there before."""
        for end in range(max(self.seen, 1), len(tokens)):
            for length in self.lengths:
                if length <= end:
                    self.followed_at[tuple(tokens[end - length : end])] = end
        self.seen = len(tokens)
        for length in self.lengths:
            at = self.followed_at.get(tuple(tokens[len(tokens) - length :])) if length <= len(tokens) else None
            if at is not None:
                return list(tokens[at:])
        return []

    def observe(self, output: Output, length: int) -> None:
        pass


class NGramSpeaker:
    """The n-gram's q along a tree of proposals (see `speakers`)."""

    hears = False

    def __init__(self, drafter: NGramDrafter, *, sampling: Sampling, capacity: int):
        self.drafter, self.sampling, self.reach = drafter, sampling, drafter.ngram.order - 1

    def begin(self, output: Output | None, tokens: Sequence[int]) -> np.ndarray:
        self.text, self.recent = tuple(tokens[max(0, len(tokens) - self.reach) :]), []
        return self.drafter.row(self.text, self.sampling)[0]

    def expand(self, parents: Sequence[int], tokens: Sequence[int]) -> list[np.ndarray]:
        rows = []
        for parent, token in zip(parents, tokens, strict=True):
            before = self.text if parent < 0 else self.recent[parent]
            context = (*before, token)
            self.recent.append(context[max(0, len(context) - self.reach) :])
            rows.append(self.drafter.row(self.recent[-1], self.sampling)[0])
        return rows

    def end(self, length: int) -> None:
        pass
