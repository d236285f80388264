"""What attention sees: the tokens themselves, or a preallocated key/value cache before them; in a line or in a tree.

A `Cache` knows which positions a forward pass adds and which of the others each may look at; what holds keys and
values is a subclass, one for each way to run a forward pass.
Shapes: B batch, T new positions, S attended positions, K key/value heads, E head width, N nodes of a tree.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from specledger.theory.trees import ROOT, Tree


@dataclass(frozen=True, kw_only=True)
class Attended:
    """One forward pass over tensors: the angles of its positions, its mask, and where keys and values go."""

    cos_TE: Tensor
    sin_TE: Tensor
    mask_TS: Tensor | None = None
    is_causal: bool = False
    cache: "KVCache | None" = None
    start: int = 0
    stop: int = 0

    def keys_and_values(self, layer: int, k_BKTE: Tensor, v_BKTE: Tensor) -> tuple[Tensor, Tensor]:
        """The keys and values [B, K, S, E] that the new positions may look at, themselves included."""
        if self.cache is None:
            return k_BKTE, v_BKTE
        keys, values = self.cache.keys[layer], self.cache.values[layer]
        keys[:, :, self.stop - k_BKTE.shape[2] : self.stop] = k_BKTE
        values[:, :, self.stop - v_BKTE.shape[2] : self.stop] = v_BKTE
        return keys[:, :, self.start : self.stop], values[:, :, self.start : self.stop]


def causal(cos_TE: Tensor, sin_TE: Tensor) -> Attended:
    """Each position sees itself and those before it, and there is nothing cached."""
    return Attended(cos_TE=cos_TE, sin_TE=sin_TE, is_causal=cos_TE.shape[0] > 1)


@dataclass(frozen=True, kw_only=True)
class Where:
    """Where the new positions of a forward pass lie in a cache: rows `start` to `stop` are attended, the last are new.

    `places` are their positions in the text; `mask` [T, stop - start] is what the cache made of who sees whom, None
    where each sees all.
    """

    start: int
    stop: int
    places: Sequence[int] | np.ndarray
    mask: Any


class Cache(ABC):
    """The rows of one sequence; rolling back sets `length`, nothing is moved.

    Attention slides: a position sees itself and the `context - 1` before it.
    """

    def __init__(self, *, context: int, capacity: int):
        self.context, self.capacity, self.length = context, capacity, 0
        self.branches: Callable[..., Branches] = Branches
        self._masks: dict[tuple, Any] = {}

    @abstractmethod
    def view(self, where: Where) -> Any:
        """What a block is given besides its input."""

    @abstractmethod
    def move(self, rows: list[int], first: int) -> None:
        """Copy keys and values of `rows`, in order, to the rows from `first` on."""

    def as_mask(self, sees_TS: np.ndarray) -> Any:
        """The mask as the cache's blocks take it."""
        return sees_TS

    def rollback(self, length: int) -> None:
        """Forget every position from `length` on; a no-op where fewer are cached."""
        self.length = min(self.length, length)

    def keep(self, path: Sequence[int], nodes: int) -> None:
        """Of the last `nodes` positions, which hold a tree, only those of `path` stay, as the text's next ones."""
        first = self.length - nodes
        if list(path) != list(range(len(path))):
            self.move([first + node for node in path], first)
        self.length = first + len(path)

    def beside(self, tree: Tree, known: int = 0) -> "Branches":
        """For a forward pass whose last positions are the nodes of a tree, of which the first `known` are cached."""
        return self.branches(cache=self, tree=tree, known=known)

    def extend(self, count: int) -> Any:
        """Make room for `count` new positions, and tell what they see."""
        return self.view(self.where(count))

    def where(self, count: int) -> Where:
        first, stop = self.room(count)
        start = max(0, first - self.context + 1)
        before = first - start
        mask = None if count == 1 else self.mask((count, before), lambda: line_mask(count, before, self.context))
        return Where(start=start, stop=stop, places=range(first, stop), mask=mask)

    def room(self, count: int) -> tuple[int, int]:
        first, stop = self.length, self.length + count
        assert stop <= self.capacity, f"cache of {self.capacity} positions can't hold {stop}"
        self.length = stop
        return first, stop

    def mask(self, key: tuple, make: Callable[[], np.ndarray]) -> Any:
        """The mask of that key: the same for every forward pass of that shape, so that it is made once."""
        if key not in self._masks:
            self._masks[key] = self.as_mask(make())
        return self._masks[key]


@dataclass(frozen=True, kw_only=True)
class Branches:
    """A cache to which a forward pass appends positions in a line and then nodes of a tree; takes a cache's place.

    A node sees the text before the tree as far as the context reaches, its ancestors and itself. It stands as many
    positions after the text as it is deep, whatever its row in the cache.
    """

    cache: Cache
    tree: Tree
    known: int

    def extend(self, count: int) -> Any:
        return self.cache.view(self.where(count))

    def where(self, count: int) -> Where:
        cache, tree, known = self.cache, self.tree, self.known
        line = count - (len(tree.parents) - known)
        assert line >= 0 and not (line and known), "positions in a line come before all nodes"
        text = cache.length - known + line  # positions before the tree
        _, stop = cache.room(count)
        start = max(0, text - line - cache.context + 1)
        before = text - start
        key = (tree.parents, known, line, before)
        mask = cache.mask(key, lambda: tree_mask(tree, count, before, cache.context))
        ahead = [*range(-line, 0), *(depth - 1 for depth in tree.depths[known:])]
        return Where(start=start, stop=stop, places=np.array(ahead) + text, mask=mask)


def line_mask(count: int, before: int, context: int) -> np.ndarray:
    """True [count, before + count] where one of `count` new positions sees the key."""
    ahead = np.arange(count)[:, None] + before - np.arange(before + count)[None, :]
    return (ahead >= 0) & (ahead < context)


def tree_mask(tree: Tree, count: int, before: int, context: int) -> np.ndarray:
    """True [count, before + N] where one of the last `count` positions sees the key; `before` lie in a line."""
    nodes = len(tree.parents)
    places = np.array([*range(before), *(before - 1 + depth for depth in tree.depths)])
    sees = np.zeros((before + nodes, before + nodes), dtype=bool)
    sees[:, :before] = True
    for node, parent in enumerate(tree.parents):
        if parent != ROOT:
            sees[before + node] |= sees[before + parent]
        sees[before + node, before + node] = True
    ahead = places[:, None] - places[None, :]
    return (sees & (ahead >= 0) & (ahead < context))[-count:]


class KVCache(Cache):
    """Keys and values as tensors [layers, 1, K, S, E], for as many positions as the angle tables [S, E] have rows."""

    def __init__(self, *, layers: int, kv_heads: int, cos: Tensor, sin: Tensor, context: int):
        super().__init__(context=context, capacity=cos.shape[0])
        self.cos, self.sin = cos, sin
        self.stored = torch.zeros((2, layers, 1, kv_heads, *cos.shape), device=cos.device, dtype=cos.dtype)
        self.keys, self.values = list(self.stored[0]), list(self.stored[1])

    def __deepcopy__(self, memo: dict) -> "KVCache":
        """Tables and masks are shared; `keys` and `values` must go on to be views of what is stored."""
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__)
        other.stored = self.stored.clone()
        other.keys, other.values = list(other.stored[0]), list(other.stored[1])
        return other

    def as_mask(self, sees_TS: np.ndarray) -> Tensor:
        return torch.from_numpy(np.ascontiguousarray(sees_TS)).to(self.cos.device)

    def move(self, rows: list[int], first: int) -> None:
        taken = torch.tensor(rows, device=self.cos.device)
        self.stored[..., first : first + len(rows), :] = self.stored.index_select(-2, taken)

    def view(self, where: Where) -> Attended:
        places = where.places
        if isinstance(places, range):
            cos_TE, sin_TE = self.cos[places.start : places.stop], self.sin[places.start : places.stop]
        else:
            places_T = torch.from_numpy(places).to(self.cos.device)
            cos_TE, sin_TE = self.cos.index_select(0, places_T), self.sin.index_select(0, places_T)
        return Attended(
            cos_TE=cos_TE, sin_TE=sin_TE, mask_TS=where.mask, cache=self, start=where.start, stop=where.stop
        )
