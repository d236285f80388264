"""What changes a distribution before it is sampled from: one class a warper, composed as a tuple.

A warper takes log weights [..., V] whose largest is 0, and gives back such. What it cuts becomes -inf; a row that is no
distribution has NaN for its largest, and keeps it. A symbol that ties with the last one kept is kept too, so that a cut
never hangs on the order of symbols.
"""

import math
from dataclasses import dataclass
from typing import Protocol

from specledger.sampling.arrays import Array, falling, kth_largest, namespace, symbols, top


class Warper(Protocol):
    """`doubtful` tells at which rows a change of `near` in the probabilities would let it keep other symbols."""

    def __call__(self, log_weights: Array) -> Array: ...

    def doubtful(self, log_weights: Array, near: float) -> Array: ...


@dataclass(frozen=True)
class Temperature:
    """Divide log weights by `temperature`; at 0 the first largest alone is left."""

    temperature: float

    def __post_init__(self):
        if not 0 <= self.temperature < math.inf:
            raise ValueError(f"temperature must be at least 0 and finite, got {self.temperature}")

    def __call__(self, log_weights: Array) -> Array:
        if self.temperature == 1:
            return log_weights
        if self.temperature:
            return log_weights / self.temperature
        first = log_weights.argmax(-1)[..., None]
        return namespace(log_weights).where(symbols(log_weights) == first, log_weights, -math.inf)

    def doubtful(self, log_weights: Array, near: float) -> Array:
        probs = _probabilities(log_weights)
        return (top(probs) - kth_largest(probs, 2) < near)[..., 0] & (self.temperature == 0)


@dataclass(frozen=True)
class TopK:
    """Keep the `top_k` likeliest (Fan et al. 2018, arXiv 1805.04833)."""

    top_k: int

    def __post_init__(self):
        if self.top_k < 1:
            raise ValueError(f"top_k must be at least 1, got {self.top_k}")

    def __call__(self, log_weights: Array) -> Array:
        if self.top_k >= log_weights.shape[-1]:
            return log_weights
        return _without_below(log_weights, kth_largest(log_weights, self.top_k))

    def doubtful(self, log_weights: Array, near: float) -> Array:
        probs, V = _probabilities(log_weights), log_weights.shape[-1]
        last, first = kth_largest(probs, min(self.top_k, V)), kth_largest(probs, min(self.top_k + 1, V))
        return (last - first < near)[..., 0] & (self.top_k < V)


@dataclass(frozen=True)
class TopP:
    """Keep the likeliest until their sum reaches `top_p` (nucleus; Holtzman et al. 2020, arXiv 1904.09751)."""

    top_p: float

    def __post_init__(self):
        if not 0 < self.top_p <= 1:
            raise ValueError(f"top_p must lie in (0, 1], got {self.top_p}")

    def __call__(self, log_weights: Array) -> Array:
        if self.top_p == 1:
            return log_weights
        xp = namespace(log_weights)
        ranked = falling(log_weights)
        sums = xp.exp(ranked).cumsum(-1)
        # A symbol is kept where the sum of those before it falls short.
        kept = xp.where(sums[..., :-1] < self.top_p * sums[..., -1:], ranked[..., 1:], ranked[..., :1])
        return _without_below(log_weights, xp.amin(kept, -1)[..., None])

    def doubtful(self, log_weights: Array, near: float) -> Array:
        xp = namespace(log_weights)
        ranked = falling(_probabilities(log_weights))
        sums = ranked.cumsum(-1)[..., :-1]
        # The sum reaches top_p by a hair, or the last that is kept and the first that is not may change places.
        reached = (sums >= self.top_p) & (sums - ranked[..., :-1] < self.top_p)
        swaps = reached & (ranked[..., :-1] - ranked[..., 1:] < near)
        return ((xp.abs(sums - self.top_p) < near) | swaps).any(-1) & (self.top_p < 1 - near)


@dataclass(frozen=True)
class MinP:
    """Keep what is at least `min_p` times as likely as the likeliest (Nguyen et al. 2024, arXiv 2407.01082)."""

    min_p: float

    def __post_init__(self):
        if not 0 < self.min_p <= 1:
            raise ValueError(f"min_p must lie in (0, 1], got {self.min_p}")

    def __call__(self, log_weights: Array) -> Array:
        return _without_below(log_weights, math.log(self.min_p))

    def doubtful(self, log_weights: Array, near: float) -> Array:
        xp = namespace(log_weights)
        probs = _probabilities(log_weights)
        return (xp.abs(probs - self.min_p * top(probs)) < near).any(-1)


WARPERS = (Temperature, TopK, TopP, MinP)  # in the order in which they are applied


def _without_below(log_weights: Array, threshold: Array | float) -> Array:
    return namespace(log_weights).where(log_weights < threshold, -math.inf, log_weights)


def _probabilities(log_weights: Array) -> Array:
    weights = namespace(log_weights).exp(log_weights)
    return weights / weights.sum(-1)[..., None]
