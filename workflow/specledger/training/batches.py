"""Which text a step sees: the same for every model that trains with the same seed and batch.

Shapes: N sequences, T = context, A tokens ahead of it.
"""

import numpy as np
import torch
from torch import Tensor


def sample_batch(tokens: Tensor, *, batch: int, context: int, ahead: int, generator: torch.Generator) -> Tensor:
    """`batch` random stretches [N, T + A] of tokens [L]; the generator lives on the CPU.

    `ahead` tokens follow the context, since losses look at them: the target's at the next one, and with an MTP
    module at the one after it; models with the same `ahead` see the same stretches.
    """
    starts_N = torch.randint(len(tokens) - context - ahead + 1, (batch,), generator=generator)
    index_NT = starts_N[:, None] + torch.arange(context + ahead)
    if tokens.is_cuda:  # a copy from pinned memory is one that nobody waits for
        index_NT = index_NT.pin_memory().to(tokens.device, non_blocking=True)
    return tokens[index_NT]


def validation_windows(tokens: np.ndarray, *, context: int, ahead: int, limit: int | None = None) -> np.ndarray:
    """Stretches [N, T + A] that tile tokens [L] without overlap of their contexts; `limit` thins evenly."""
    starts = np.arange(0, len(tokens) - context - ahead + 1, context)
    if limit is not None and len(starts) > limit:
        starts = starts[np.linspace(0, len(starts) - 1, limit).round().astype(int)]
    return tokens[starts[:, None] + np.arange(context + ahead)]
