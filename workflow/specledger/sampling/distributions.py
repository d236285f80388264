"""From logits to the distribution that is sampled, and from a uniform number to a token.

One function serves the target and every drafter, the host and the device, so that a drafter returns exactly the q that
it sampled from. Arrays are NumPy's or PyTorch's. Shapes: ... any leading dimensions, V vocabulary, K siblings.
"""

from dataclasses import dataclass, fields

import numpy as np

from specledger.sampling.arrays import Array, doubles, namespace, top
from specledger.sampling.warpers import WARPERS


@dataclass(frozen=True, kw_only=True)
class Sampling:
    """How tokens are chosen: temperature 0 is greedy; None leaves the distribution whole.

    One setting a warper of `WARPERS`, in their order; `warpers` are those that are set.
    """

    temperature: float = 1.0
    top_k: int | None = None
    top_p: float | None = None
    min_p: float | None = None

    def __post_init__(self):
        given = [(kind, getattr(self, field.name)) for kind, field in zip(WARPERS, fields(self), strict=True)]
        object.__setattr__(self, "warpers", tuple(kind(value) for kind, value in given if value is not None))

    warpers = ()  # no field: it follows from them


GREEDY = Sampling(temperature=0.0)
SETTINGS = tuple(field.name for field in fields(Sampling))


def distribution(logits: Array, sampling: Sampling) -> Array:
    """Probabilities [..., V] float64 of logits [..., V]; one-hot at the first maximum when greedy.

    The largest logit is taken off first, so that a small temperature loses nothing.

    Raises:
        ValueError: on the host, a row whose largest logit is not finite (NaN, +inf, or all -inf), with its place. On a
            device nothing is raised: such a row is all NaN, and so is the mass that is drawn from it.
    """
    logits = doubles(logits)
    xp = namespace(logits)
    largest = top(logits)
    if xp is np and not np.isfinite(largest).all():
        row = tuple(int(i) for i in np.argwhere(~np.isfinite(largest[..., 0]))[0])
        raise ValueError(f"logits row {row} must have a finite largest number, got {largest[row][0]}")
    log_weights = logits - largest
    for warper in sampling.warpers:
        log_weights = warper(log_weights)
    weights = xp.exp(log_weights)
    return weights / weights.sum(-1, keepdims=True)


def draw(weights: Array, uniforms: Array | float) -> Array:
    """Inverse-CDF draw: tokens [...] from weights [..., V] >= 0 and uniforms [...] in [0, 1).

    Weights need not sum to 1. A symbol without weight is never drawn, but from a row that has none at all, token 0.
    """
    xp = namespace(weights)
    sums = weights.cumsum(-1)
    if xp is not np and weights.is_cuda:  # sums in parallel may give a symbol without weight a sliver
        sums = xp.where(weights > 0, sums, 0.0).cummax(dim=-1).values
    total = sums[..., -1:]
    if xp is np:
        uniforms = np.asarray(uniforms)
    token = (sums <= uniforms[..., None] * total).sum(-1)
    # A product that rounds up to the total would point past the last symbol that has weight.
    return xp.minimum(token, (sums < total).sum(-1))
