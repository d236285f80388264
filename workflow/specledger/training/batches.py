"""Which text a step sees: the same for every model that trains with the same seed and batch.

Shapes: N sequences, T = context.
"""

import numpy as np
import torch
from torch import Tensor

AHEAD = 2  # tokens after a context that losses look at: the next one, and for MTP the one after it


def sample_batch(tokens: Tensor, *, batch: int, context: int, generator: torch.Generator) -> Tensor:
    """`batch` random stretches [N, T + 2] of tokens [L]; the generator lives on the CPU."""
    starts_N = torch.randint(len(tokens) - context - AHEAD + 1, (batch,), generator=generator)
    index_NT = starts_N[:, None] + torch.arange(context + AHEAD)
    if tokens.is_cuda:  # a copy from pinned memory is one that nobody waits for
        index_NT = index_NT.pin_memory().to(tokens.device, non_blocking=True)
    return tokens[index_NT]


def validation_windows(tokens: np.ndarray, *, context: int, limit: int | None = None) -> np.ndarray:
    """Stretches [N, T + 2] that tile tokens [L] without overlap of their contexts; `limit` thins evenly."""
    starts = np.arange(0, len(tokens) - context - AHEAD + 1, context)
    if limit is not None and len(starts) > limit:
        starts = starts[np.linspace(0, len(starts) - 1, limit).round().astype(int)]
    return tokens[starts[:, None] + np.arange(context + AHEAD)]
