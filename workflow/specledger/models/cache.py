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

    keys: list[Tensor]
    values: list[Tensor]
    cos: Tensor
    sin: Tensor
    context: int
    length: int = 0
    _masks: dict[tuple, Tensor] = field(default_factory=dict)

    @classmethod
    def allocate(cls, *, layers: int, kv_heads: int, cos: Tensor, sin: Tensor, context: int) -> "KVCache":
        """Room for as many positions as the angle tables cos and sin [S, E] have rows."""
        shape = (1, kv_heads, *cos.shape)
        return cls(
            keys=[torch.zeros(shape, device=cos.device, dtype=cos.dtype) for _ in range(layers)],
            values=[torch.zeros(shape, device=cos.device, dtype=cos.dtype) for _ in range(layers)],
            cos=cos,
            sin=sin,
            context=context,
        )

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
            rows = torch.tensor(path, device=self.cos.device) + first
            for stored in (*self.keys, *self.values):
                stored[:, :, first : first + len(path)] = stored.index_select(2, rows)
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
        depths = self.tree.depths[self.known :]
        places = [*range(text - line, text), *(text - 1 + depth for depth in depths)]
        key = (self.tree, self.known, line, text - start)
        if key not in cache._masks:
            cache._masks[key] = tree_mask(self.tree, count, text - start, cache.context).to(cache.cos.device)
        return Attended(
            cos_TE=cache.cos[places],
            sin_TE=cache.sin[places],
            mask_TS=cache._masks[key],
            cache=cache,
            start=start,
            stop=stop,
        )


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
