"""From logits to the distribution that an audited system samples: its warpers, in its order.

Systems agree on what a warper does and not on the order: llama.cpp takes the temperature last, so that its
top-p and min-p look at the untempered distribution. Shapes: N rows, V vocabulary, C ids of a row's context.
"""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from specledger.audit.settings import ENDED, SamplingSettings

ORDERS = {
    "transformers": ("repetition_penalty", "temperature", "top_k", "top_p", "min_p"),
    "llama.cpp": ("repetition_penalty", "top_k", "top_p", "min_p", "temperature"),
    "vllm": ("repetition_penalty", "temperature", "min_p", "top_k", "top_p"),
}
NEAR = 1e-5  # a cut that hangs on less than this share of a probability may fall either way by rounding
LOST = -np.inf


def softmax(logits_NV: NDArray[np.float64]) -> NDArray[np.float64]:
    weights = np.exp(logits_NV - logits_NV.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True)


def warped(
    logits_NV: NDArray[np.floating],
    settings: SamplingSettings,
    *,
    context_NC: NDArray[np.int64] | None = None,
    order: str | tuple[str, ...] = "transformers",
    slack: float = 0.0,
) -> NDArray[np.float64]:
    """Probabilities [N, V] float64 of logits [N, V].

    Args:
        context_NC: the ids before each row, which the repetition penalty looks at (all of them);
        order: a name of `ORDERS` or warpers by name; slack: moves each cut by this share, for `near_a_cut`.

    Temperature 0 is one-hot at the first maximum, after the repetition penalty.
    """
    steps = ORDERS[order] if isinstance(order, str) else order
    logits = np.array(logits_NV, dtype=np.float64)
    if "repetition_penalty" in steps and settings.repetition_penalty is not None:
        logits = _penalised(logits, settings.repetition_penalty, context_NC)
    if settings.temperature == 0:
        hot = np.zeros_like(logits)
        np.put_along_axis(hot, logits.argmax(axis=-1, keepdims=True), 1.0, axis=-1)
        return hot
    for step in steps:
        if step == "temperature":
            logits = logits / settings.temperature
        elif step == "top_k" and settings.top_k is not None and settings.top_k < logits.shape[-1]:
            kth = np.partition(logits, -settings.top_k, axis=-1)[:, -settings.top_k, None]
            logits = np.where(logits >= kth, logits, LOST)  # `_tied` sees to ties
        elif step == "top_p" and settings.top_p is not None and settings.top_p < 1:
            logits = _nucleus(logits, settings.top_p + slack)
        elif step == "min_p" and settings.min_p:
            least = logits.max(axis=-1, keepdims=True) + np.log(settings.min_p)
            logits = np.where(logits >= least - slack, logits, LOST)
    return softmax(logits)


def _penalised(logits: NDArray, penalty: float, context_NC: NDArray | None) -> NDArray:
    """Logits of ids seen before: divided by the penalty where above 0, times it where below (Keskar 2019)."""
    if context_NC is None:
        raise ValueError("repetition_penalty needs the ids of the context")
    seen = np.zeros(logits.shape, dtype=bool)
    rows, places = np.nonzero(context_NC != ENDED)
    seen[rows, context_NC[rows, places]] = True
    return np.where(seen, np.where(logits > 0, logits / penalty, logits * penalty), logits)


def _nucleus(logits: NDArray, top_p: float) -> NDArray:
    """The most probable tokens until their sum reaches top_p."""
    probs = softmax(logits)
    order = np.argsort(-probs, axis=-1, kind="stable")
    ranked = np.take_along_axis(probs, order, axis=-1)
    kept = np.zeros(probs.shape, dtype=bool)
    np.put_along_axis(kept, order, np.cumsum(ranked, axis=-1) - ranked < top_p, axis=-1)
    return np.where(kept & (probs > 0), logits, LOST)


def cuts(settings: SamplingSettings) -> bool:
    """Whether some tokens become impossible under these settings."""
    return (
        settings.temperature == 0
        or settings.top_k is not None
        or (settings.top_p is not None and settings.top_p < 1)
        or bool(settings.min_p)
    )


def near_a_cut(
    logits_NV: NDArray[np.floating],
    settings: SamplingSettings,
    *,
    context_NC: NDArray[np.int64] | None = None,
    order: str | tuple[str, ...] = "transformers",
) -> NDArray[np.bool_]:
    """[N]: does a rounding decide which tokens are possible? Such prefixes can't be judged and join the rest.

    Whether it does depends on the prefix alone, so that leaving these prefixes out biases nothing.
    """
    if not cuts(settings):
        return np.zeros(len(logits_NV), dtype=bool)
    logits = np.asarray(logits_NV, dtype=np.float64)
    if settings.repetition_penalty is not None:
        logits = _penalised(logits, settings.repetition_penalty, context_NC)
        settings = replace(settings, repetition_penalty=None)
    if settings.temperature == 0:
        two = np.partition(logits, -2, axis=-1)[:, -2:]
        return two[:, 1] - two[:, 0] < NEAR
    more, fewer = (warped(logits, settings, order=order, slack=slack) > 0 for slack in (NEAR, -NEAR))
    return (more != fewer).any(axis=-1) | _swapped(logits, more) | _tied(logits, settings.top_k)


def _tied(logits_NV: NDArray, top_k: int | None) -> NDArray[np.bool_]:
    """[N]: is the k-th token as probable as the next, so that systems differ in which of them they keep?"""
    if top_k is None or top_k >= logits_NV.shape[-1]:
        return np.zeros(len(logits_NV), dtype=bool)
    ranked = np.sort(logits_NV, axis=-1)
    return ranked[:, -top_k] - ranked[:, -top_k - 1] < NEAR


def _swapped(logits_NV: NDArray, kept_NV: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """[N]: may the last token that is kept and the first that is not change places?"""
    last = np.where(kept_NV, logits_NV, np.inf).min(axis=-1)
    first = np.where(kept_NV, LOST, logits_NV).max(axis=-1)
    return last - first < NEAR
