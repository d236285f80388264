"""A small LLaMA: RMSNorm, RoPE, grouped-query attention, SwiGLU, no biases, untied embeddings.

Parameter names are Hugging Face's, so that a saved model opens with `LlamaForCausalLM`.
Shapes: B batch, T time, S key positions, D width, H query heads, K key/value heads, E head width,
V vocabulary.
"""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from specledger.models.cache import Attended, Cache, causal


@dataclass(frozen=True, kw_only=True)
class LlamaConfig:
    """The sizes of a model; `context` is how many positions attention reaches back, itself included."""

    vocabulary: int
    layers: int
    width: int
    heads: int
    kv_heads: int
    context: int
    rope_theta: float = 10_000.0
    norm_eps: float = 1e-6

    def __post_init__(self):
        if self.width % (2 * self.heads):
            raise ValueError(f"width must be a multiple of twice the heads ({2 * self.heads}), got {self.width}")
        if self.heads % self.kv_heads:
            raise ValueError(f"heads must be a multiple of kv_heads ({self.kv_heads}), got {self.heads}")

    @property
    def head_width(self) -> int:
        return self.width // self.heads

    @property
    def hidden(self) -> int:
        """Width of the SwiGLU: 8/3 of the model's width, rounded up to a multiple of 8."""
        return -(-8 * self.width // 24) * 8


class RMSNorm(nn.Module):
    """Scale by the root mean square, with a learned gain (Zhang & Sennrich 2019, arXiv 1910.07467)."""

    def __init__(self, width: int, eps: float):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.eps = eps

    def forward(self, x_BTD: Tensor) -> Tensor:
        return F.rms_norm(x_BTD, self.weight.shape, self.weight, self.eps)


def rope_tables(head_width: int, positions: int, theta: float, device=None) -> tuple[Tensor, Tensor]:
    """cos and sin [positions, head_width] of rotary embeddings (Su et al. 2021, arXiv 2104.09864)."""
    frequency = 1.0 / theta ** (torch.arange(0, head_width, 2, dtype=torch.float32, device=device) / head_width)
    angle = torch.outer(torch.arange(positions, dtype=torch.float32, device=device), frequency).repeat(1, 2)
    return angle.cos(), angle.sin()


def rotate(x_BHTE: Tensor, cos_TE: Tensor, sin_TE: Tensor) -> Tensor:
    """Turn each pair (i, i + E/2) by its position's angle, as Hugging Face's Llama pairs them."""
    first, second = x_BHTE.chunk(2, dim=-1)
    return x_BHTE * cos_TE + torch.cat((-second, first), dim=-1) * sin_TE


def attend(q_BHTE: Tensor, k_BKSE: Tensor, v_BKSE: Tensor, **how) -> Tensor:
    """Scaled dot-product attention; on a CPU always in float32, since bfloat16 goes back 4 times slower there."""
    if not torch.is_autocast_enabled("cpu"):
        return F.scaled_dot_product_attention(q_BHTE, k_BKSE, v_BKSE, **how)
    with torch.autocast("cpu", enabled=False):
        return F.scaled_dot_product_attention(q_BHTE.float(), k_BKSE.float(), v_BKSE.float(), **how)


class Linear(nn.Linear):
    """A matrix without bias."""

    def __init__(self, inputs: int, outputs: int):
        super().__init__(inputs, outputs, bias=False)


class Attention(nn.Module):
    """Causal attention in which groups of query heads share a key/value head."""

    def __init__(self, config: LlamaConfig):
        super().__init__()
        self.head_width = config.head_width
        kv_width = config.kv_heads * config.head_width
        self.q_proj = Linear(config.width, config.width)
        self.k_proj = Linear(config.width, kv_width)
        self.v_proj = Linear(config.width, kv_width)
        self.o_proj = Linear(config.width, config.width)
        self.qkv_proj: Linear | None = None  # the three in one product, once they are fused
        self.widths = [config.width, kv_width, kv_width]

    def forward(self, x_BTD: Tensor, seen: Attended, layer: int) -> Tensor:
        B, T, D = x_BTD.shape
        if self.qkv_proj is None:
            parts = self.q_proj(x_BTD), self.k_proj(x_BTD), self.v_proj(x_BTD)
        else:
            parts = self.qkv_proj(x_BTD).split(self.widths, dim=-1)
        q_BHTE, k_BKTE, v_BKTE = (part.view(B, T, -1, self.head_width).transpose(1, 2) for part in parts)
        q_BHTE, k_BKTE = rotate(q_BHTE, seen.cos_TE, seen.sin_TE), rotate(k_BKTE, seen.cos_TE, seen.sin_TE)
        k_BKSE, v_BKSE = seen.keys_and_values(layer, k_BKTE, v_BKTE)
        mixed_BHTE = attend(q_BHTE, k_BKSE, v_BKSE, attn_mask=seen.mask_TS, is_causal=seen.is_causal, enable_gqa=True)
        return self.o_proj(mixed_BHTE.transpose(1, 2).reshape(B, T, D))


class SwiGLU(nn.Module):
    """down(silu(gate(x)) * up(x)) (Shazeer 2020, arXiv 2002.05202)."""

    def __init__(self, config: LlamaConfig):
        super().__init__()
        self.gate_proj = Linear(config.width, config.hidden)
        self.up_proj = Linear(config.width, config.hidden)
        self.down_proj = Linear(config.hidden, config.width)
        self.gate_up_proj: Linear | None = None  # the first two in one product, once they are fused

    def forward(self, x_BTD: Tensor) -> Tensor:
        if self.gate_up_proj is None:
            gate_BTD, up_BTD = self.gate_proj(x_BTD), self.up_proj(x_BTD)
        else:
            gate_BTD, up_BTD = self.gate_up_proj(x_BTD).chunk(2, dim=-1)
        return self.down_proj(F.silu(gate_BTD) * up_BTD)


class Block(nn.Module):
    """One transformer layer: attention and SwiGLU, each on a normed residual stream."""

    def __init__(self, config: LlamaConfig):
        super().__init__()
        self.input_layernorm = RMSNorm(config.width, config.norm_eps)
        self.self_attn = Attention(config)
        self.post_attention_layernorm = RMSNorm(config.width, config.norm_eps)
        self.mlp = SwiGLU(config)

    def forward(self, x_BTD: Tensor, seen: Attended, layer: int) -> Tensor:
        x_BTD = x_BTD + self.self_attn(self.input_layernorm(x_BTD), seen, layer)
        return x_BTD + self.mlp(self.post_attention_layernorm(x_BTD))


class Trunk(nn.Module):
    """Embeddings, blocks and the final norm, under the names that Hugging Face gives them."""

    def __init__(self, config: LlamaConfig):
        super().__init__()
        self.embed_tokens = nn.Embedding(config.vocabulary, config.width)
        self.layers = nn.ModuleList(Block(config) for _ in range(config.layers))
        self.norm = RMSNorm(config.width, config.norm_eps)


class Llama(nn.Module):
    """The model: tokens to the trunk's last hidden state, and from there to logits."""

    chain = None  # an engine may have code that draws draft tokens without being asked for each

    def __init__(self, config: LlamaConfig):
        super().__init__()
        self.config = config
        self.model = Trunk(config)
        self.lm_head = Linear(config.width, config.vocabulary)
        cos, sin = rope_tables(config.head_width, config.context, config.rope_theta)
        self.register_buffer("cos", cos, persistent=False)
        self.register_buffer("sin", sin, persistent=False)

    def hidden(self, tokens_BT: Tensor, cache: Cache | None = None) -> Tensor:
        """The residual stream after the last block, before the final norm: [B, T, D].

        Without a cache the T <= context tokens are all there is. With one they follow the cached
        positions, are appended to it, and each looks back at most `context` positions.
        """
        return self.streams(tokens_BT, cache)[1]

    def streams(self, tokens_BT: Tensor, cache: Cache | None = None) -> tuple[Tensor, Tensor]:
        """The residual stream before and after the last block, each [B, T, D]; arguments as of `hidden`."""
        T = tokens_BT.shape[1]
        seen = cache.extend(T) if cache is not None else causal(self.cos[:T], self.sin[:T])
        x_BTD = before_BTD = self.model.embed_tokens(tokens_BT)
        for index, block in enumerate(self.model.layers):
            before_BTD, x_BTD = x_BTD, block(x_BTD, seen, index)
        return before_BTD, x_BTD

    def outputs(self, tokens_BT: Tensor, cache: Cache, rows: int) -> tuple[Tensor, Tensor, Tensor]:
        """`streams`, and the logits of the last `rows` positions [B, rows, V]."""
        before_BTD, hidden_BTD = self.streams(tokens_BT, cache)
        return before_BTD, hidden_BTD, self.logits(hidden_BTD[:, -rows:])

    def logits(self, hidden_BTD: Tensor) -> Tensor:
        """Logits [B, T, V] of the next token from the trunk's hidden state."""
        return self.lm_head(self.model.norm(hidden_BTD))

    def forward(self, tokens_BT: Tensor) -> Tensor:
        return self.logits(self.hidden(tokens_BT))


def fuse(*modules: nn.Module) -> None:
    """Make q/k/v one matrix product, and gate/up one, for inference alone; the parts become views of the whole."""
    for part in (part for module in modules for part in module.modules()):
        if isinstance(part, Attention):
            part.qkv_proj = _fused(part.q_proj, part.k_proj, part.v_proj)
        elif isinstance(part, SwiGLU):
            part.gate_up_proj = _fused(part.gate_proj, part.up_proj)


def _fused(*parts: Linear) -> Linear:
    found = Linear(parts[0].in_features, sum(part.out_features for part in parts))
    weight = torch.cat([part.weight.detach() for part in parts])
    found.weight = nn.Parameter(weight, requires_grad=False)
    for part, rows in zip(parts, weight.split([part.out_features for part in parts]), strict=True):
        part.weight = nn.Parameter(rows, requires_grad=False)
    return found


def initialise(module: nn.Module, generator: torch.Generator, std: float = 0.02) -> None:
    """Draw every matrix from N(0, std²) with an explicit generator; gains of norms stay at 1."""
    with torch.no_grad():
        for parameter in module.parameters():
            if parameter.dim() > 1:
                parameter.normal_(0.0, std, generator=generator)


def count_parameters(module: nn.Module) -> int:
    return sum(parameter.numel() for parameter in module.parameters())
