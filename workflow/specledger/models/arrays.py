"""The few functions that arrays of NumPy and tensors of PyTorch name differently.

The forward code of networks and proposers uses these, operators, indexing and calls of submodules, so that an engine
may run it on either.
"""

from collections.abc import Sequence

import numpy as np
import torch
import torch.nn.functional as F

Array = np.ndarray | torch.Tensor


def cat(parts: Sequence[Array], axis: int = -1) -> Array:
    """The parts joined along an axis; a single part as it is."""
    if len(parts) == 1:
        return parts[0]
    if isinstance(parts[0], np.ndarray):
        return np.concatenate(parts, axis=axis)
    return torch.cat(tuple(parts), dim=axis)


def silu(x: Array) -> Array:
    """x times its logistic function."""
    return x / (1.0 + np.exp(-x)) if isinstance(x, np.ndarray) else F.silu(x)


def as_kind(x: Array, like: Array) -> Array:
    """x in the number format of `like`: under autocast a product comes out in another."""
    return x if x.dtype == like.dtype else x.astype(like.dtype) if isinstance(x, np.ndarray) else x.to(like.dtype)


def to_host(x: Array) -> np.ndarray:
    """x as an array of NumPy; from a GPU it is copied, and the copy waited for."""
    return x if isinstance(x, np.ndarray) else x.cpu().numpy()


def take(x: Array, rows: Sequence[int]) -> Array:
    """These rows of x, along its first axis."""
    return x[list(rows)] if isinstance(x, np.ndarray) else x.index_select(0, torch.tensor(rows, device=x.device))
