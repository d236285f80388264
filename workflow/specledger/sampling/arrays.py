"""The few operations whose names differ between NumPy and PyTorch, so that each function here is written once.

Arrays are float64 of shape [..., V]. Functions built from these have no branch that depends on numbers, so that PyTorch
compiles or captures them whole.
"""

from types import ModuleType
from typing import TypeAlias

import numpy as np
import torch

Array: TypeAlias = np.ndarray | torch.Tensor


def namespace(array: Array) -> ModuleType:
    """numpy or torch: functions of one name and meaning are called in it."""
    return torch if isinstance(array, torch.Tensor) else np


def doubles(array: Array) -> Array:
    """The same numbers in float64."""
    return array.double() if isinstance(array, torch.Tensor) else np.asarray(array, dtype=np.float64)


def symbols(array: Array) -> Array:
    """0 to V - 1, beside the array [..., V]."""
    V = array.shape[-1]
    return torch.arange(V, device=array.device) if isinstance(array, torch.Tensor) else np.arange(V)


def at_symbol(array: Array, tokens: Array) -> Array:
    """Of each row [..., V] the number at its token [...]."""
    if isinstance(array, torch.Tensor):
        return array.gather(-1, tokens[..., None])[..., 0]
    rows = array.reshape(-1, array.shape[-1])
    return rows[np.arange(len(rows)), tokens.reshape(-1)].reshape(tokens.shape)


def entries(table: Array, places: Array) -> Array:
    """Of a table [R] or [R, D] the entries at `places` [...]; a place may be a number of its own, of no dimension."""
    if isinstance(table, torch.Tensor):
        return table.index_select(0, places.reshape(-1)).reshape(places.shape + table.shape[1:])
    return table[places]


def row(rows: Array, places: Array) -> Array:
    """Of several rows [..., R, V] the one at `places` [...]."""
    if isinstance(rows, torch.Tensor):
        V = rows.shape[-1]
        return rows.gather(-2, places[..., None, None].expand(*places.shape, 1, V))[..., 0, :]
    R, V = rows.shape[-2:]
    flat = places.reshape(-1)
    return rows.reshape(-1, V)[flat + R * np.arange(len(flat))].reshape(*places.shape, V)


def with_symbol(array: Array, tokens: Array, numbers: Array | float) -> Array:
    """A copy of rows [..., V] with `numbers` [...] at their tokens [...]."""
    if isinstance(array, torch.Tensor):
        numbers = numbers[..., None] if isinstance(numbers, torch.Tensor) else numbers
        return torch.where(symbols(array) == tokens[..., None], numbers, array)
    copied = array.copy()
    rows = copied.reshape(-1, array.shape[-1])
    rows[np.arange(len(rows)), tokens.reshape(-1)] = numbers if np.isscalar(numbers) else numbers.reshape(-1)
    return copied


def top(array: Array) -> Array:
    """The largest of each row [..., 1]; NaN where one is."""
    return array.amax(dim=-1, keepdim=True) if isinstance(array, torch.Tensor) else array.max(axis=-1, keepdims=True)


def kth_largest(array: Array, k: int) -> Array:
    """The k-th largest of each row [..., 1]; what is not a number counts as largest."""
    if isinstance(array, torch.Tensor):
        return array.topk(k, dim=-1).values[..., -1:]
    return np.partition(array, -k, axis=-1)[..., -k, None]


def falling(array: Array) -> Array:
    """Each row sorted, the largest first."""
    if isinstance(array, torch.Tensor):
        return array.sort(dim=-1, descending=True).values
    return np.sort(array, axis=-1)[..., ::-1]
