"""From logits to the distribution that is sampled, and from a uniform number to a token.

One function serves the target and every drafter, so that a drafter returns exactly the q that it
sampled from. Shapes: ... any leading dimensions, V vocabulary.
"""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, kw_only=True)
class Sampling:
    """How tokens are chosen: temperature 0 is greedy; top_k and top_p None leave the distribution whole."""

    temperature: float = 1.0
    top_k: int | None = None
    top_p: float | None = None

    def __post_init__(self):
        if self.temperature < 0:
            raise ValueError(f"temperature must be at least 0, got {self.temperature}")
        if self.top_k is not None and self.top_k < 1:
            raise ValueError(f"top_k must be at least 1, got {self.top_k}")
        if self.top_p is not None and not 0 < self.top_p <= 1:
            raise ValueError(f"top_p must lie in (0, 1], got {self.top_p}")


GREEDY = Sampling(temperature=0.0)


def distribution(logits: np.ndarray, sampling: Sampling) -> np.ndarray:
    """Probabilities [..., V] float64 of logits [..., V]; one-hot at the first maximum when greedy.

    Temperature first, then top-k (Fan et al. 2018, arXiv 1805.04833), then top-p (Holtzman et al.
    2020, arXiv 1904.09751), each renormalised. Symbols that tie with the k-th are kept.
    """
    logits = np.asarray(logits, dtype=np.float64)
    if sampling.temperature == 0:
        probs = np.zeros_like(logits)
        np.put_along_axis(probs, logits.argmax(axis=-1, keepdims=True), 1.0, axis=-1)
        return probs
    scaled = logits / sampling.temperature
    probs = np.exp(scaled - scaled.max(axis=-1, keepdims=True))
    if sampling.top_k is not None and sampling.top_k < probs.shape[-1]:
        kth = np.partition(probs, -sampling.top_k, axis=-1)[..., -sampling.top_k, None]
        probs = np.where(probs >= kth, probs, 0.0)
    probs /= probs.sum(axis=-1, keepdims=True)
    return probs if sampling.top_p is None else _nucleus(probs, sampling.top_p)


def _nucleus(probs: np.ndarray, top_p: float) -> np.ndarray:
    """The most probable symbols until their sum reaches top_p, renormalised."""
    order = np.argsort(-probs, axis=-1, kind="stable")
    ranked = np.take_along_axis(probs, order, axis=-1)
    before = np.cumsum(ranked, axis=-1) - ranked
    ranked = np.where(before < top_p, ranked, 0.0)
    kept = np.zeros_like(probs)
    np.put_along_axis(kept, order, ranked, axis=-1)
    return kept / kept.sum(axis=-1, keepdims=True)


def draw(weights: np.ndarray, uniforms: np.ndarray) -> np.ndarray:
    """Inverse-CDF draw: tokens [...] from weights [..., V] >= 0 and uniforms [...] in [0, 1).

    Weights need not sum to 1, but a row must have some; a symbol without weight is never drawn.
    """
    cumulative = np.cumsum(weights, axis=-1)
    threshold = np.asarray(uniforms) * cumulative[..., -1]
    token = (cumulative <= threshold[..., None]).sum(axis=-1)
    # A product that rounds up to the total would point past the last symbol that has weight.
    last = (cumulative < cumulative[..., -1:]).sum(axis=-1)
    return np.minimum(token, last)
