"""Networks on the CPU without PyTorch: their own forward code over numpy arrays, with leaves that are C++ functions.

`kernels.cpp` is compiled once for all models: weights are arguments. `twin(module)` stands in for a module; what
its class defines runs as it is written, on the twins of its parts, so that no network is written twice.
Shapes: B = 1, T positions, D width, V vocabulary, S cached positions.
"""

import ctypes
from collections.abc import Sequence
from ctypes import c_double, c_float, c_int64, c_void_p
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
import torch
from torch import nn

from specledger.decoding.building import NotCompiled, build, library
from specledger.decoding.engines import TwinEngine
from specledger.decoding.rules import Found, Rules
from specledger.decoding.twins import Kept, Twin
from specledger.models.cache import Cache, Where
from specledger.models.llama import Block, Llama, RMSNorm, rope_tables
from specledger.sampling.distributions import Sampling
from specledger.theory.trees import Tree

WIDE = 16  # numbers of a vector; the last block of a matrix is filled up to it
MOST_ROWS = 64  # positions of one forward pass


class _Matrix(ctypes.Structure):
    _fields_ = [("packed", c_void_p), ("bias", c_void_p), ("inputs", c_int64), ("blocks", c_int64)]


class _Block(ctypes.Structure):
    _fields_ = [
        ("attention_gain", c_void_p), ("mlp_gain", c_void_p),
        ("qkv", _Matrix), ("out", _Matrix), ("gate_up", _Matrix), ("down", _Matrix),
    ]  # fmt: skip


class _View(ctypes.Structure):
    _fields_ = [
        ("keys", c_void_p), ("values", c_void_p), ("layer", c_int64), ("capacity", c_int64),
        ("start", c_int64), ("stop", c_int64), ("cos", c_void_p), ("sin", c_void_p),
        ("places", c_void_p), ("mask", c_void_p), ("heads", c_int64), ("kv_heads", c_int64), ("head_width", c_int64),
        ("context", c_int64),
    ]  # fmt: skip


class _Model(ctypes.Structure):
    _fields_ = [
        ("embedding", c_void_p), ("blocks", c_void_p), ("gain", c_void_p), ("head", _Matrix),
        ("layers", c_int64), ("width", c_int64), ("vocabulary", c_int64), ("eps", c_float),
    ]  # fmt: skip


class _Warpers(ctypes.Structure):
    _fields_ = [("temperature", c_double), ("top_p", c_double), ("min_p", c_double), ("top_k", c_int64)]


def address(array: np.ndarray) -> int:
    return array.__array_interface__["data"][0]


def _padded(count: int) -> int:
    return -(-count // WIDE) * WIDE


def aligned(shape: tuple[int, ...]) -> np.ndarray:
    """Zeros [shape] float32 that begin at a multiple of 64 bytes."""
    count = int(np.prod(shape))
    raw = np.zeros(count + WIDE, dtype=np.float32)
    first = (-(address(raw) // 4)) % WIDE
    return raw[first : first + count].reshape(shape)


class Matrix(Kept):
    """A product with one or several matrices [O, I], whose outputs stand side by side."""

    def __init__(self, *weights: torch.Tensor, bias: torch.Tensor | None = None):
        weight_OI = torch.cat([weight.detach() for weight in weights]).numpy()
        self.outputs, self.inputs = weight_OI.shape
        self.columns = _padded(self.outputs)
        blocks = self.columns // WIDE
        self.packed, filled = aligned((blocks, self.inputs, WIDE)), aligned((self.columns, self.inputs))
        filled[: self.outputs] = weight_OI
        self.packed[:] = filled.reshape(blocks, WIDE, self.inputs).transpose(0, 2, 1)
        self.bias = None
        if bias is not None:
            self.bias = aligned((self.columns,))
            self.bias[: self.outputs] = bias.detach().numpy()
        of_bias = None if self.bias is None else address(self.bias)
        self.struct = _Matrix(address(self.packed), of_bias, self.inputs, blocks)
        self.reference, self.run = ctypes.byref(self.struct), library().specledger_linear

    def __call__(self, x_BTD: np.ndarray) -> np.ndarray:
        T = x_BTD.shape[1]
        x_TD = np.ascontiguousarray(x_BTD[0])
        y_TO = np.empty((T, self.columns), dtype=np.float32)
        self.run(address(x_TD), T, self.reference, address(y_TO))
        return y_TO[None, :, : self.outputs]


class Norm(Kept):
    def __init__(self, module: RMSNorm):
        self.gain, self.eps = module.weight.detach().numpy().copy(), module.eps
        self.run = library().specledger_norm

    def __call__(self, x_BTD: np.ndarray) -> np.ndarray:
        x_TD = np.ascontiguousarray(x_BTD[0])
        y_TD = np.empty_like(x_TD)
        self.run(address(x_TD), *x_TD.shape, address(self.gain), self.eps, address(y_TD))
        return y_TD[None]


class Embedding(Kept):
    def __init__(self, module: nn.Embedding):
        self.weight_VD = module.weight.detach().numpy().copy()

    def __call__(self, tokens_BT: np.ndarray) -> np.ndarray:
        return self.weight_VD.take(tokens_BT, axis=0)


class Blocks(Kept):
    """Transformer blocks, one after another in one call."""

    def __init__(self, modules: Sequence[Block]):
        first = modules[0]
        self.width, self.eps = first.input_layernorm.weight.shape[0], first.input_layernorm.eps
        self.weights = [self._weights(module) for module in modules]
        self.structs = (_Block * len(modules))(
            *(
                _Block(address(gains[0]), address(gains[1]), *(matrix.struct for matrix in matrices))
                for gains, matrices in self.weights
            )
        )
        qkv, out, gate_up, down = self.weights[0][1]
        columns = self.width + max(qkv.columns, gate_up.columns) + max(out.inputs, down.inputs)
        self.numbers = columns + max(out.columns, down.columns)
        self.work = aligned((0,))
        self.run = library().specledger_blocks

    @staticmethod
    def _weights(module: Block) -> tuple[tuple[np.ndarray, np.ndarray], tuple[Matrix, ...]]:
        attention, mlp = module.self_attn, module.mlp
        gains = (module.input_layernorm.weight, module.post_attention_layernorm.weight)
        return tuple(gain.detach().numpy().copy() for gain in gains), (
            Matrix(attention.q_proj.weight, attention.k_proj.weight, attention.v_proj.weight),
            Matrix(attention.o_proj.weight),
            Matrix(mlp.gate_proj.weight, mlp.up_proj.weight),
            Matrix(mlp.down_proj.weight),
        )

    def __call__(self, x_BTD: np.ndarray, seen: "Seen", layer: int) -> np.ndarray:
        return self.streams(x_BTD.copy(), seen, layer)[1]

    def streams(self, x_BTD: np.ndarray, seen: "Seen", layer: int = 0) -> tuple[np.ndarray, np.ndarray]:
        """The stream before and after the last block; `x_BTD` is overwritten."""
        T, before_BTD = x_BTD.shape[1], np.empty_like(x_BTD)
        self.run(
            address(x_BTD), T, self.width, self.structs, len(self.weights), layer, seen.reference, self.eps,
            address(before_BTD), self.room(T, seen.count),
        )  # fmt: skip
        return before_BTD, x_BTD

    def room(self, rows: int, count: int, extra: int = 0) -> int:
        """The address of a place to work in, for so many rows that attend to `count` positions."""
        need = rows * self.numbers + count + 4 * WIDE + extra
        if len(self.work) < need:
            self.work = aligned((2 * need,))
            self.at = address(self.work)
        return self.at


class LlamaTwin(Twin):
    """A model that runs in one call, from tokens to logits; and a whole chain of draft tokens, too."""

    def __init__(self, module: Llama):
        super().__init__(module, twin)
        config, norm, kernels = module.config, self.model.norm, library()
        self.blocks = Blocks(module.model.layers)
        self.struct = _Model(
            address(self.model.embed_tokens.weight_VD), ctypes.addressof(self.blocks.structs), address(norm.gain),
            self.lm_head.struct, config.layers, config.width, config.vocabulary, norm.eps,
        )  # fmt: skip
        self.reference, self.run, self.run_chain = (
            ctypes.byref(self.struct),
            kernels.specledger_model,
            kernels.specledger_chain,
        )
        self.to_logits = kernels.specledger_normed_linear

    def outputs(
        self, tokens_BT: np.ndarray, cache: "NativeCache", rows: int
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The streams before and after the last block [1, T, D], and the logits of the last `rows` [1, rows, V]."""
        T, D, head = tokens_BT.shape[1], self.struct.width, self.lm_head
        seen = cache.extend(T)
        x_BTD, before_BTD = np.empty((1, T, D), dtype=np.float32), np.empty((1, T, D), dtype=np.float32)
        logits_BTV = np.empty((1, rows, head.columns), dtype=np.float32)
        self.run(
            self.reference, seen.reference, address(tokens_BT), T, rows, address(x_BTD), address(before_BTD),
            address(logits_BTV), self.blocks.room(T, seen.count),
        )  # fmt: skip
        return before_BTD, x_BTD, logits_BTV[..., : head.outputs]

    def streams(self, tokens_BT: np.ndarray, cache: "NativeCache") -> tuple[np.ndarray, np.ndarray]:
        return self.outputs(tokens_BT, cache, 1)[:2]

    def logits(self, hidden_BTD: np.ndarray) -> np.ndarray:
        x_TD, head, norm = np.ascontiguousarray(hidden_BTD[0]), self.lm_head, self.model.norm
        y_TV, work = np.empty((len(x_TD), head.columns), dtype=np.float32), np.empty_like(x_TD)
        self.to_logits(
            address(x_TD), *x_TD.shape, address(norm.gain), norm.eps, head.reference, address(y_TV), address(work)
        )
        return y_TV[None, :, : head.outputs]

    def chain(
        self, tokens_BT: np.ndarray, cache: "NativeCache", sampling: Sampling, uniforms_G: np.ndarray, threshold: float
    ) -> tuple[list[int], np.ndarray]:
        """At most G draft tokens after these, which are taken in, and the row that each was drawn from [G, V]."""
        T, G, V = tokens_BT.shape[1], len(uniforms_G), self.struct.vocabulary
        seen = cache.extend(T)
        assert cache.length + G - 1 <= cache.capacity, f"cache of {cache.capacity} positions can't hold {G - 1} more"
        drawn_G, probs_GV = np.empty(G, dtype=np.int64), np.empty((G, V))
        extra = 2 * T * self.struct.width + self.lm_head.columns + G
        count = self.run_chain(
            self.reference, seen.reference, address(tokens_BT), T, G, warpers_of(sampling), address(uniforms_G),
            threshold, address(drawn_G), address(probs_GV), self.blocks.room(T, seen.count + G, extra),
        )  # fmt: skip
        if count < 0:
            raise ValueError(f"logits of draft token {-1 - count} must have a finite largest number")
        cache.length += count - 1
        return drawn_G[:count].tolist(), probs_GV[:count]


_WARPERS: dict[int, tuple[Sampling, Any]] = {}


def warpers_of(sampling: Sampling) -> Any:
    """A reference to the settings as the kernels read them; by identity, since a hash takes longer than a draw."""
    known = _WARPERS.get(id(sampling))
    if known is None:
        top_p, min_p = (-1.0 if value is None else value for value in (sampling.top_p, sampling.min_p))
        struct = _Warpers(sampling.temperature, top_p, min_p, sampling.top_k or 0)
        known = _WARPERS[id(sampling)] = sampling, ctypes.byref(struct)
    return known[1]


def twin(module: nn.Module) -> Any:
    """What runs in place of a module; its weights are copied, each in the layout that the kernels read."""
    match module:
        case Llama():
            return LlamaTwin(module)
        case Block():
            return Blocks([module])
        case nn.Linear():
            return Matrix(module.weight, bias=module.bias)
        case RMSNorm():
            return Norm(module)
        case nn.Embedding():
            return Embedding(module)
        case nn.ModuleList():
            return [twin(child) for child in module]
    return Twin(module, twin)


@dataclass(kw_only=True)
class Seen:
    """What one forward pass attends to, as the kernels read it; valid until the cache's next one."""

    struct: _View
    count: int = 0
    places: Any = None  # kept alive
    reference: Any = field(init=False)

    def __post_init__(self):
        self.reference = ctypes.byref(self.struct)


class NativeCache(Cache):
    """Keys [layers, K, E, S] and values [layers, K, S, E], as the kernels read them."""

    def __init__(self, model: Llama, layers: int, capacity: int):
        config = model.config
        super().__init__(context=config.context, capacity=capacity)
        slots = _padded(capacity) + WIDE
        self.keys = np.zeros((layers, config.kv_heads, config.head_width, slots), dtype=np.float32)
        self.values = np.zeros((layers, config.kv_heads, slots, config.head_width), dtype=np.float32)
        self.tables = tuple(table.numpy() for table in rope_tables(config.head_width, capacity, config.rope_theta))
        self.places = np.arange(capacity, dtype=np.int64)
        self._point(config.heads)

    def _point(self, heads: int) -> None:
        _, kv_heads, head_width, slots = self.keys.shape
        self.struct = _View(
            address(self.keys), address(self.values), kv_heads * head_width * slots, slots, 0, 0,
            address(self.tables[0]), address(self.tables[1]), address(self.places), None, heads, kv_heads, head_width,
            self.context,
        )  # fmt: skip
        self.first_place = address(self.places)
        self.seen = Seen(struct=self.struct)

    def __deepcopy__(self, memo: dict) -> "NativeCache":
        """Tables and masks are shared."""
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__)
        other.keys, other.values = self.keys.copy(), self.values.copy()
        other._point(self.struct.heads)
        return other

    def as_mask(self, sees_TS: np.ndarray) -> tuple[int, np.ndarray]:
        """Its address, and what must live as long as that is used."""
        mask = np.ascontiguousarray(sees_TS, dtype=np.uint8)
        return address(mask), mask

    def move(self, rows: list[int], first: int) -> None:
        self.keys[..., first : first + len(rows)] = self.keys[..., rows]
        self.values[:, :, first : first + len(rows)] = self.values[:, :, rows]

    def view(self, where: Where) -> Seen:
        struct, seen, places = self.struct, self.seen, where.places
        struct.start, struct.stop = where.start, where.stop
        struct.mask = None if where.mask is None else where.mask[0]
        struct.places = self.first_place + 8 * places.start if isinstance(places, range) else address(places)
        seen.count, seen.places = where.stop - where.start, places
        return seen


class NativeRules(Rules):
    """`Rules` by the kernels; typical acceptance, which is lossy, stays on the host."""

    def __init__(self):
        kernels = library()
        self.run_distribution, self.run_draw = kernels.specledger_distribution, kernels.specledger_draw
        self.run_siblings, self.run_accept = kernels.specledger_siblings, kernels.specledger_accept

    def distribution(self, logits_TV: np.ndarray, sampling: Sampling) -> np.ndarray:
        T, V = logits_TV.shape
        probs_TV = np.empty((T, V))
        bad = self.run_distribution(
            address(logits_TV), T, logits_TV.strides[0] // 4, V, warpers_of(sampling), address(probs_TV)
        )
        return probs_TV if bad < 0 else super().distribution(logits_TV, sampling)  # which names the row

    def draw(self, probs_V: np.ndarray, uniform: float) -> int:
        return self.run_draw(address(probs_V), len(probs_V), uniform)

    def siblings(self, probs_V: np.ndarray, uniforms_K: np.ndarray) -> tuple[Sequence[int], np.ndarray]:
        K, V = len(uniforms_K), len(probs_V)
        tokens_K, rows_KV = np.empty(K, dtype=np.int64), np.empty((K, V))
        count = self.run_siblings(address(probs_V), V, K, address(uniforms_K), address(tokens_K), address(rows_KV))
        return tokens_K[:count].tolist(), rows_KV

    def verify(
        self,
        target_probs_TV: np.ndarray,
        draft_probs_GV: np.ndarray,
        tokens: Sequence[int],
        accept_uniforms_G: np.ndarray,
        extra_uniform: float,
        tree: Tree,
    ) -> Found:
        G, V = draft_probs_GV.shape
        if target_probs_TV.shape[1] != V:
            raise ValueError(
                f"target_probs and draft_probs must be of one vocabulary, got {len(target_probs_TV[0])} and {V} symbols"
            )
        tokens_G, accept_probs_G = np.array(tokens, dtype=np.int64), np.empty(G)
        found = np.empty(2, dtype=np.int64)
        mass = self.run_accept(
            address(target_probs_TV), address(draft_probs_GV), address(tokens_G), address(parents_of(tree)), G, V,
            address(accept_uniforms_G), extra_uniform, address(found), address(accept_probs_G),
        )  # fmt: skip
        if not 0.0 < mass < np.inf:
            raise ValueError(
                f"draft_probs must give every draft token a probability, got {tokens} and a mass of {mass}"
            )
        last, token = found.tolist()
        return Found(last, token, accept_probs_G)


@cache
def parents_of(tree: Tree) -> np.ndarray:
    return np.array(tree.parents, dtype=np.int64)


@dataclass(frozen=True, kw_only=True)
class NativeEngine(TwinEngine):
    """The engine `compiled` on a CPU."""

    name: str = "compiled"
    rules: Rules = field(default_factory=NativeRules, compare=False)

    @classmethod
    def on(cls, device: torch.device) -> "NativeEngine":
        """For models on the CPU; NotCompiled where there is no compiler."""
        if device.type != "cpu":
            raise NotCompiled(f"its kernels run on a CPU, not on {device.type}")
        library()
        return cls(compile_s=build()[1])

    def tokens(self, model: Llama, tokens: Sequence[int]) -> np.ndarray:
        return np.array([tokens], dtype=np.int64)

    def cache(self, model: Llama, layers: int, capacity: int) -> NativeCache:
        return NativeCache(model, layers, capacity)

    def twin(self, module: Any) -> Any:
        return twin(module)
