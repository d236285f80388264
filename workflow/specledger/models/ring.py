"""A key/value cache whose shapes never change, for compiled and captured forwards.

A position's keys and values lie in slot (position mod slots). Where a forward begins is a tensor, so that
one compiled call serves every place of a text. Rolling back is beginning earlier: what lies behind the
beginning is written over or is out of sight.
Shapes: T new positions, S slots, K key/value heads, E head width.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from specledger.models.llama import Llama, rope_tables


@dataclass(frozen=True, kw_only=True)
class RingView:
    """What the positions of one forward see; takes the place of an `Attended`."""

    ring: "Ring"
    slots_T: Tensor
    cos_TE: Tensor
    sin_TE: Tensor
    mask_TS: Tensor
    is_causal: bool = False

    def keys_and_values(self, layer: int, k_BKTE: Tensor, v_BKTE: Tensor) -> tuple[Tensor, Tensor]:
        """The whole ring [B, K, S, E] after the new positions were written into it."""
        keys, values = self.ring.keys[layer], self.ring.values[layer]
        keys.index_copy_(2, self.slots_T, k_BKTE)
        values.index_copy_(2, self.slots_T, v_BKTE)
        return keys, values


@dataclass(frozen=True, kw_only=True)
class RingAt:
    """The ring with a forward beginning at position `first`, a whole number as a tensor []."""

    ring: "Ring"
    first: Tensor

    def extend(self, count: int) -> RingView:
        ring = self.ring
        ahead_T = torch.arange(count, device=self.first.device)
        positions_T, last = self.first + ahead_T, self.first + (count - 1)
        # The newest position up to `last` that each slot can hold; before the text's beginning it is negative.
        held_S = last - (last - torch.arange(ring.slots, device=self.first.device)) % ring.slots
        back_TS = positions_T[:, None] - held_S[None, :]
        return RingView(
            ring=ring,
            slots_T=positions_T % ring.slots,
            cos_TE=ring.cos[positions_T],
            sin_TE=ring.sin[positions_T],
            mask_TS=(back_TS >= 0) & (back_TS < ring.context) & (held_S >= 0),
        )


@dataclass(frozen=True, kw_only=True)
class Ring:
    """Keys and values [1, K, S, E] a layer, and the angles of as many positions as a text may have."""

    keys: list[Tensor]
    values: list[Tensor]
    cos: Tensor
    sin: Tensor
    context: int

    @classmethod
    def allocate(cls, model: Llama, *, layers: int, widest: int, positions: int) -> "Ring":
        """Room for forwards over at most `widest` new positions in texts of at most `positions`.

        A rejected proposal may lie up to `widest` ahead of the newest token and must not write over
        what a token still sees, `context` positions back.
        """
        config, weight = model.config, model.lm_head.weight
        slots = -(-(config.context + 2 * widest) // 8) * 8
        shape = (1, config.kv_heads, slots, config.head_width)
        cos, sin = (t.to(weight) for t in rope_tables(config.head_width, positions, config.rope_theta))
        return cls(
            keys=[weight.new_zeros(shape) for _ in range(layers)],
            values=[weight.new_zeros(shape) for _ in range(layers)],
            cos=cos,
            sin=sin,
            context=config.context,
        )

    @property
    def slots(self) -> int:
        return self.keys[0].shape[2]

    def at(self, first: Tensor) -> RingAt:
        return RingAt(ring=self, first=first)
