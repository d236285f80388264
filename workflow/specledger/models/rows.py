"""A cache of several sequences of different lengths, which one forward pass extends together.

Shapes: B rows (sequences), T new positions, S attended positions, K key/value heads, E head width.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor


@dataclass(frozen=True, kw_only=True)
class SeenByRows:
    """One forward pass: where each row's new positions lie, whom they see, and their angles, if the model wants any.

    A row's positions stand right after its own text, so that what lies behind from a rejected draft is written over.
    """

    cache: Any  # keys and values [B, K, S, E] by layer, and how many positions they have room for
    places_BT: Tensor
    mask_TS: Tensor | None  # [B, 1, T, S], True where a new position sees the key; None: all before it, and itself
    stop: int
    start: int | None  # of the new positions, where all rows are of one length
    cos_TE: Tensor | None = None  # [B, 1, T, E]
    sin_TE: Tensor | None = None
    is_causal: bool = False

    def keys_and_values(self, layer: int, k_BKTE: Tensor, v_BKTE: Tensor) -> tuple[Tensor, Tensor]:
        """The keys and values [B, K, S, E] of every row, the new ones included."""
        found = []
        for stored, new_BKTE in zip((self.cache.keys, self.cache.values), (k_BKTE, v_BKTE), strict=True):
            if layer not in stored:
                shape = (new_BKTE.shape[0], new_BKTE.shape[1], self.cache.capacity, new_BKTE.shape[3])
                stored[layer] = new_BKTE.new_zeros(shape)
            all_BKSE = stored[layer]
            if self.start is not None:
                all_BKSE[:, :, self.start : self.stop] = new_BKTE
            else:
                rows_B1 = torch.arange(len(new_BKTE), device=new_BKTE.device)[:, None]
                all_BKSE[rows_B1, :, self.places_BT] = new_BKTE.transpose(1, 2)
            found.append(all_BKSE[:, :, : self.stop])
        return found[0], found[1]


@dataclass(kw_only=True)
class RowCache:
    """Keys and values [B, K, S, E] of each layer, made when they first come; `lengths_B` says how far each row holds.

    Args:
        context: how many positions attention reaches back, itself included.
        angles: cos and sin [S, E] of every position, for models that are told them.
    """

    rows: int
    capacity: int
    context: int
    device: torch.device
    angles: tuple[Tensor, Tensor] | None = None
    keys: dict[int, Tensor] = field(default_factory=dict)
    values: dict[int, Tensor] = field(default_factory=dict)

    def __post_init__(self):
        self.lengths_B = np.zeros(self.rows, dtype=np.int64)

    def extend(self, count: int) -> SeenByRows:
        """Room for `count` new positions of every row."""
        first_B = self.lengths_B
        stop = int(first_B.max()) + count
        assert stop <= self.capacity, f"cache of {self.capacity} positions can't hold {stop}"
        places_BT = first_B[:, None] + np.arange(count)
        ahead_BTS = places_BT[:, :, None] - np.arange(stop)
        mask_BTS = (ahead_BTS >= 0) & (ahead_BTS < self.context)
        places = torch.from_numpy(places_BT).to(self.device)
        cos, sin = (table[places][:, None] for table in self.angles) if self.angles else (None, None)
        self.lengths_B = first_B + count
        return SeenByRows(
            cache=self,
            places_BT=places,
            mask_TS=torch.from_numpy(mask_BTS[:, None]).to(self.device),
            start=int(first_B[0]) if (first_B == first_B[0]).all() else None,
            stop=stop,
            cos_TE=cos,
            sin_TE=sin,
        )

    def rollback(self, lengths: Sequence[int]) -> None:
        """Forget each row's positions from its length on."""
        self.lengths_B = np.minimum(self.lengths_B, np.asarray(lengths, dtype=np.int64))

    def select(self, rows: Sequence[int]) -> None:
        """Only these rows stay, in this order."""
        taken = torch.tensor(list(rows), device=self.device)
        for stored in (self.keys, self.values):
            for layer, all_BKSE in stored.items():
                stored[layer] = all_BKSE.index_select(0, taken)
        self.lengths_B = self.lengths_B[list(rows)]
        self.rows = len(self.lengths_B)
