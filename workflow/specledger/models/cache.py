"""What attention sees: the tokens themselves, or a preallocated key/value cache before them; in a line or in a tree.

Shapes: B batch, T new positions, S attended positions, K key/value heads, E head width, N nodes of a tree.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from specledger.theory.trees import ROOT, Tree


@dataclass(frozen=True, kw_only=True)
class Attended:
    """One forward's view: the angles of its positions, its mask, and where keys and values go."""

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


@dataclass(kw_only=True)
class KVCache:
    """Preallocated keys and values of one sequence; rolling back sets `length`, nothing is moved.

    Attention slides: a position sees itself and the `context - 1` before it.
    """

    stored: Tensor  # keys and values of every layer [2, layers, 1, K, S, E]
    cos: Tensor
    sin: Tensor
    context: int
    length: int = 0
    keys: list[Tensor] = field(init=False)
    values: list[Tensor] = field(init=False)
    _masks: dict[tuple, Tensor] = field(default_factory=dict)
    _branches: dict[tuple, tuple[Tensor, Tensor]] = field(default_factory=dict)

    def __post_init__(self):
        self.keys, self.values = list(self.stored[0]), list(self.stored[1])

    @classmethod
    def allocate(cls, *, layers: int, kv_heads: int, cos: Tensor, sin: Tensor, context: int) -> "KVCache":
        """Room for as many positions as the angle tables cos and sin [S, E] have rows."""
        stored = torch.zeros((2, layers, 1, kv_heads, *cos.shape), device=cos.device, dtype=cos.dtype)
        return cls(stored=stored, cos=cos, sin=sin, context=context)

    @property
    def capacity(self) -> int:
        return self.cos.shape[0]

    def rollback(self, length: int) -> None:
        """Forget every position from `length` on; a no-op where fewer are cached."""
        self.length = min(self.length, length)

    def keep(self, path: Sequence[int], nodes: int) -> None:
        """Of the last `nodes` positions, which hold a tree, only those of `path` stay, as the text's next ones."""
        first = self.length - nodes
        if list(path) != list(range(len(path))):
            rows = torch.tensor([first + node for node in path], device=self.cos.device)
            self.stored[..., first : first + len(path), :] = self.stored.index_select(-2, rows)
        self.length = first + len(path)

    def beside(self, tree: Tree, known: int = 0) -> "Branches":
        """For a forward whose last positions are the nodes of a tree, of which the first `known` are cached."""
        return Branches(cache=self, tree=tree, known=known)

    def extend(self, count: int) -> Attended:
        """Make room for `count` new positions and say what they see."""
        first, stop = self._room(count)
        start = max(0, first - self.context + 1)
        return Attended(
            cos_TE=self.cos[first:stop],
            sin_TE=self.sin[first:stop],
            mask_TS=self._mask(count, first - start) if count > 1 else None,
            cache=self,
            start=start,
            stop=stop,
        )

    def _room(self, count: int) -> tuple[int, int]:
        first, stop = self.length, self.length + count
        assert stop <= self.capacity, f"cache of {self.capacity} positions can't hold {stop}"
        self.length = stop
        return first, stop

    def _mask(self, count: int, before: int) -> Tensor:
        """True [count, before + count] where the new position sees the key."""
        if (count, before) not in self._masks:
            ahead = torch.arange(count, device=self.cos.device)[:, None] + before
            ahead = ahead - torch.arange(before + count, device=self.cos.device)[None, :]
            self._masks[count, before] = (ahead >= 0) & (ahead < self.context)
        return self._masks[count, before]


@dataclass(frozen=True, kw_only=True)
class Branches:
    """A cache to which a forward appends positions in a line and then nodes of a tree; takes a cache's place.

    A node sees the text before the tree as far as the context reaches, its ancestors and itself. It stands as many
    positions after the text as it is deep, whatever its row in the cache.
    """

    cache: KVCache
    tree: Tree
    known: int

    def extend(self, count: int) -> Attended:
        cache, nodes = self.cache, len(self.tree.parents)
        line = count - (nodes - self.known)
        assert line >= 0 and not (line and self.known), "positions in a line come before all nodes"
        text = cache.length - self.known + line  # positions before the tree
        _, stop = cache._room(count)
        start = max(0, text - line - cache.context + 1)
        mask_TS, ahead_T = self._shape(count, line, text - start)
        places_T = ahead_T + text
        return Attended(
            cos_TE=cache.cos.index_select(0, places_T),
            sin_TE=cache.sin.index_select(0, places_T),
            mask_TS=mask_TS,
            cache=cache,
            start=start,
            stop=stop,
        )

    def _shape(self, count: int, line: int, before: int) -> tuple[Tensor, Tensor]:
        """The mask, and how many positions past the text each new one stands: the same for every such forward."""
        known, key = self.cache._branches, (self.tree.parents, self.known, line, before)
        if key not in known:
            device = self.cache.cos.device
            ahead = [*range(-line, 0), *(depth - 1 for depth in self.tree.depths[self.known :])]
            mask_TS = tree_mask(self.tree, count, before, self.cache.context)
            known[key] = mask_TS.to(device), torch.tensor(ahead, device=device)
        return known[key]


def tree_mask(tree: Tree, count: int, before: int, context: int) -> Tensor:
    """True [count, before + N] where one of the last `count` positions sees the key; `before` lie in a line."""
    nodes = len(tree.parents)
    places = torch.tensor([*range(before), *(before - 1 + depth for depth in tree.depths)])
    sees = torch.zeros(before + nodes, before + nodes, dtype=torch.bool)
    sees[:, :before] = True
    for node, parent in enumerate(tree.parents):
        if parent != ROOT:
            sees[before + node] |= sees[before + parent]
        sees[before + node, before + node] = True
    ahead = places[:, None] - places[None, :]
    return (sees & (ahead >= 0) & (ahead < context))[-count:]
