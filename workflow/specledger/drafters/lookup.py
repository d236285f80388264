"""Prompt lookup in the text itself (Saxena 2023): what followed the same last tokens the last time."""

from collections.abc import Sequence

from specledger.decoding.drafter import Drafter, Parts
from specledger.decoding.proposers import Proposer
from specledger.foundation.drafters import Spec

SPECS = (
    Spec(
        name="lookup",
        order=80,
        title={"en": "prompt lookup", "zh": "提示查找"},
        colour="#cc79a7",
        dark="#cc79a7",
        marker="v",
        chooses=True,
        costs_of="ngram",
        searches=True,
    ),
)


class LookupProposer(Proposer):
    """Remembers where each run of tokens was last followed by something; `seen` tokens are entered.

    The longest match of `longest` down to `shortest` tokens counts; without one nothing is proposed.
    """

    certain = True

    def __init__(self, longest: int, shortest: int, *, engine, sampling, capacity: int):
        super().__init__(engine=engine, sampling=sampling)
        self.lengths = range(longest, shortest - 1, -1)
        self.followed_at: dict[tuple[int, ...], int] = {}
        self.seen = 0

    def follow(self, tokens: Sequence[int]) -> list[int]:
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


def drafter(spec: Spec, parts: Parts) -> Drafter | None:
    """None where nothing says how long a match must be."""
    if parts.drafting is None:
        return None
    longest, shortest = parts.drafting["lookup_longest"], parts.drafting["lookup_shortest"]
    return Drafter.of(spec, LookupProposer, longest, shortest, vocabulary=parts.target.config.vocabulary)
