"""The few operations whose names differ between NumPy and PyTorch, so that each function here is written once.

Arrays are float64 of shape [..., V]. Functions built from these have no branch that depends on numbers, so that PyTorch
compiles or captures them whole.
"""

from types import ModuleType
from typing import TYPE_CHECKING, TypeAlias, Union

import numpy as np

if TYPE_CHECKING:  # who samples on the host alone needs no PyTorch
    import torch

Array: TypeAlias = Union[np.ndarray, "torch.Tensor"]


def namespace(array: Array) -> ModuleType:
    """numpy or torch: functions of one name and meaning are called in it."""
    if isinstance(array, np.ndarray):
        return np
    import torch

    return torch


def doubles(array: Array) -> Array:
    """The same numbers in float64."""
    return array.double() if hasattr(array, "double") else np.asarray(array, dtype=np.float64)


def symbols(array: Array) -> Array:
    """0 to V - 1, beside the array [..., V]."""
    V = array.shape[-1]
    return np.arange(V) if isinstance(array, np.ndarray) else namespace(array).arange(V, device=array.device)


def at_symbol(array: Array, tokens: Array) -> Array:
    """Of each row [..., V] the number at its token [...]."""
    if not isinstance(array, np.ndarray):
        return array.gather(-1, tokens[..., None])[..., 0]
    rows = array.reshape(tokens.size, array.shape[-1])
    return rows[np.arange(len(rows)), tokens.reshape(-1)].reshape(tokens.shape)


def entries(table: Array, places: Array) -> Array:
    """Of a table [R] or [R, D] the entries at `places` [...]; a place may be a number of its own, of no dimension."""
    if not isinstance(table, np.ndarray):
        return table.index_select(0, places.reshape(-1)).reshape(places.shape + table.shape[1:])
    return table[places]


def row(rows: Array, places: Array) -> Array:
    """Of several rows [..., R, V] the one at `places` [...]."""
    if not isinstance(rows, np.ndarray):
        V = rows.shape[-1]
        return rows.gather(-2, places[..., None, None].expand(*places.shape, 1, V))[..., 0, :]
    R, V = rows.shape[-2:]
    flat = places.reshape(-1)
    return rows.reshape(-1, V)[flat + R * np.arange(len(flat))].reshape(*places.shape, V)


def with_symbol(array: Array, tokens: Array, numbers: Array | float) -> Array:
    """A copy of rows [..., V] with `numbers` [...] at their tokens [...]."""
    if not isinstance(array, np.ndarray):
        numbers = numbers if isinstance(numbers, float) else numbers[..., None]
        return namespace(array).where(symbols(array) == tokens[..., None], numbers, array)
    copied = array.copy()
    rows = copied.reshape(-1, array.shape[-1])
    rows[np.arange(len(rows)), tokens.reshape(-1)] = numbers if np.isscalar(numbers) else numbers.reshape(-1)
    return copied


def top(array: Array) -> Array:
    """The largest of each row [..., 1]; NaN where one is."""
    return array.max(axis=-1, keepdims=True) if isinstance(array, np.ndarray) else array.amax(dim=-1, keepdim=True)


def kth_largest(array: Array, k: int) -> Array:
    """The k-th largest of each row [..., 1]; what is not a number counts as largest."""
    if not isinstance(array, np.ndarray):
        return array.topk(k, dim=-1).values[..., -1:]
    return np.partition(array, -k, axis=-1)[..., -k, None]


def falling(array: Array) -> Array:
    """Each row sorted, the largest first."""
    if not isinstance(array, np.ndarray):
        return array.sort(dim=-1, descending=True).values
    return np.sort(array, axis=-1)[..., ::-1]
