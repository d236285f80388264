"""The engine `compiled` on a GPU: blocks run as captured CUDA graphs, one launch for all their kernels.

A graph reads and writes the same memory each time. So a cache's tensors come from a pool, with the graphs that were
captured over them, and go back to it; where a forward pass lies in the cache comes in as numbers.
Shapes: B = 1, R new positions, L positions that may be attended, S rows of a cache, K key/value heads, E head width.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from specledger.decoding.building import NotCompiled
from specledger.decoding.engines import TwinEngine
from specledger.decoding.twins import Kept, Twin
from specledger.models.cache import Cache, Where
from specledger.models.llama import Block, Llama, rope_tables

WARM_UPS = 3
ROWS = 256  # a cache's rows are a multiple, so that texts of most lengths share graphs
LOOKED_AT = 32  # and so are the rows that are looked at, of which a mask hides the last


def looked_at(count: int) -> int:
    """How many rows are looked at where `count` are attended."""
    return -(-count // LOOKED_AT) * LOOKED_AT


def captured(function: Callable[[], tuple[Tensor, ...]]) -> Callable[[], tuple[Tensor, ...]]:
    """A function of static tensors as a CUDA graph; on a CPU, where tests run it, as it is."""
    if not torch.cuda.is_available():
        return function
    try:
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(WARM_UPS):
                function()
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            outputs = function()
    except RuntimeError as error:
        raise NotCompiled(f"no CUDA graph could be captured ({str(error).splitlines()[0][:200]})") from error

    def replay() -> tuple[Tensor, ...]:
        graph.replay()
        return outputs

    return replay


@dataclass(kw_only=True)
class Store:
    """The tensors of one cache, keys and values [2, layers, 1, K, S, E], and the graphs over them."""

    kept: Tensor
    cos: Tensor
    sin: Tensor
    graphs: dict[tuple, Any] = field(default_factory=dict)


@dataclass(kw_only=True)
class View:
    """What blocks are given: the static numbers of R new positions; takes the place of an `Attended`."""

    store: Store
    places_R: Tensor
    slots_R: Tensor
    looks_L: Tensor
    mask_TS: Tensor  # [R, L]
    is_causal: bool = False

    @classmethod
    def of(cls, store: Store, R: int, L: int) -> "View":
        numbers = [torch.zeros(count, dtype=torch.int64, device=store.cos.device) for count in (R, R, L)]
        mask_TS = torch.ones((R, L), dtype=torch.bool, device=store.cos.device)
        return cls(store=store, places_R=numbers[0], slots_R=numbers[1], looks_L=numbers[2], mask_TS=mask_TS)

    @property
    def cos_TE(self) -> Tensor:
        return self.store.cos.index_select(0, self.places_R)

    @property
    def sin_TE(self) -> Tensor:
        return self.store.sin.index_select(0, self.places_R)

    def keys_and_values(self, layer: int, k_BKTE: Tensor, v_BKTE: Tensor) -> tuple[Tensor, Tensor]:
        """The keys and values [B, K, L, E] of the rows that may be attended, the new ones written before."""
        keys, values = self.store.kept[0, layer], self.store.kept[1, layer]
        keys.index_copy_(2, self.slots_R, k_BKTE)
        values.index_copy_(2, self.slots_R, v_BKTE)
        return keys.index_select(2, self.looks_L), values.index_select(2, self.looks_L)


class GraphCache(Cache):
    """A cache whose tensors are lent by a pool for as long as it lives."""

    def __init__(self, model: Llama, layers: int, capacity: int, pool: dict[tuple, list[Store]]):
        super().__init__(context=model.config.context, capacity=capacity)
        config, weight, rows = model.config, model.lm_head.weight, -(-capacity // ROWS) * ROWS
        self.pool, self.key = pool, (layers, config.kv_heads, config.head_width, rows, weight.dtype, weight.device)
        self.store = self._lent(config.rope_theta)

    def _lent(self, theta: float) -> Store:
        layers, kv_heads, head_width, rows, dtype, device = self.key
        if self.pool.setdefault(self.key, []):
            return self.pool[self.key].pop()
        cos, sin = (table.to(device, dtype) for table in rope_tables(head_width, rows, theta))
        kept = torch.zeros((2, layers, 1, kv_heads, rows, head_width), dtype=dtype, device=device)
        return Store(kept=kept, cos=cos, sin=sin)

    def __del__(self):
        if hasattr(self, "store"):
            self.pool[self.key].append(self.store)

    def __deepcopy__(self, memo: dict) -> "GraphCache":
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__)
        kept, cos, sin = self.store.kept.clone(), self.store.cos, self.store.sin
        other.store = Store(kept=kept, cos=cos, sin=sin)
        return other

    def as_mask(self, sees_TS: np.ndarray) -> Tensor:
        R, count = sees_TS.shape
        whole_RL = np.zeros((R, looked_at(count)), dtype=bool)
        whole_RL[:, :count] = sees_TS
        return torch.from_numpy(whole_RL).to(self.store.cos.device)

    def move(self, rows: list[int], first: int) -> None:
        taken, kept = torch.tensor(rows, device=self.store.cos.device), self.store.kept
        kept[..., first : first + len(rows), :] = kept.index_select(-2, taken)

    def view(self, where: Where) -> View:
        R, count, device = len(where.places), where.stop - where.start, self.store.cos.device
        L = looked_at(count)
        known = self.store.graphs.get((R, L))
        if known is None:
            known = self.store.graphs[R, L] = View.of(self.store, R, L)
        mask = where.mask
        if mask is None:
            mask = self.mask((R, "all", count), lambda: np.ones((R, count), dtype=bool))
        looks = np.minimum(np.arange(where.start, where.start + L), self.key[3] - 1)
        numbers = np.concatenate([np.asarray(where.places), np.arange(where.stop - R, where.stop), looks])
        sent = torch.from_numpy(numbers).to(device, non_blocking=True)
        for static, part in zip((known.places_R, known.slots_R, known.looks_L), sent.split([R, R, L]), strict=True):
            static.copy_(part)
        known.mask_TS.copy_(mask)
        return known


class GraphBlocks(Kept):
    """Transformer blocks, one after another in one graph."""

    def __init__(self, blocks: Sequence[Block]):
        self.blocks = list(blocks)

    def __call__(self, x_BTD: Tensor, seen: View, layer: int) -> Tensor:
        return self.streams(x_BTD, seen, layer)[1]

    def streams(self, x_BTD: Tensor, seen: View, layer: int = 0) -> tuple[Tensor, Tensor]:
        """The stream before and after the last block."""
        graphs, key = seen.store.graphs, (id(self), layer, *seen.mask_TS.shape)
        if key not in graphs:
            static_BTD = x_BTD.clone()

            def run() -> tuple[Tensor, Tensor]:
                before_BTD = after_BTD = static_BTD
                for place, block in enumerate(self.blocks, layer):
                    before_BTD, after_BTD = after_BTD, block(after_BTD, seen, place)
                return before_BTD.clone(), after_BTD

            graphs[key] = static_BTD, captured(run), self  # kept, so that its number stays its own
        static_BTD, run, _ = graphs[key]
        static_BTD.copy_(x_BTD)
        before_BTD, after_BTD = run()
        return before_BTD.clone(), after_BTD.clone()


class GraphLlama(Twin):
    def __init__(self, module: Llama):
        super().__init__(module, twin)
        self.blocks = GraphBlocks(module.model.layers)

    def streams(self, tokens_BT: Tensor, cache: GraphCache) -> tuple[Tensor, Tensor]:
        return self.blocks.streams(self.model.embed_tokens(tokens_BT), cache.extend(tokens_BT.shape[1]))


def twin(module: nn.Module) -> Any:
    """What runs in place of a module: itself, but for its blocks."""
    match module:
        case Llama():
            return GraphLlama(module)
        case Block():
            return GraphBlocks([module])
        case nn.ModuleList():
            return [twin(child) for child in module]
    return Twin(module, twin) if any(isinstance(part, Block) for part in module.modules()) else module


@dataclass(frozen=True, kw_only=True)
class GraphEngine(TwinEngine):
    """The engine `compiled` on a GPU."""

    pool: dict[tuple, list[Store]] = field(default_factory=dict, repr=False)

    def cache(self, model: Llama, layers: int, capacity: int) -> GraphCache:
        return GraphCache(model, layers, capacity, self.pool)

    def twin(self, module: Any) -> Any:
        return twin(module)
