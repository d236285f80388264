"""The multi-token prediction module of DeepSeek-V3 (arXiv 2412.19437, section 2.2), at one depth and in a chain.

Shapes: B batch, T time, D width, V vocabulary.
"""

import torch
from torch import Tensor, nn

from specledger.models.cache import KVCache, causal
from specledger.models.llama import Block, Linear, Llama, LlamaConfig, RMSNorm


class MTPModule(nn.Module):
    """Predicts token i + 2 from the trunk's hidden state at i and the embedding of token i + 1.

    h' = Block(W [RMSNorm(h_i); RMSNorm(Emb(x_{i+1}))]), eq. (21) and (22); the target's embedding
    and output head are shared (eq. 23), so they are arguments and not parameters of the module.
    """

    def __init__(self, config: LlamaConfig):
        super().__init__()
        self.hidden_norm = RMSNorm(config.width, config.norm_eps)
        self.embedding_norm = RMSNorm(config.width, config.norm_eps)
        self.projection = Linear(2 * config.width, config.width)
        self.block = Block(config)
        self.norm = RMSNorm(config.width, config.norm_eps)

    def state(self, target: Llama, hidden_BTD: Tensor, next_tokens_BT: Tensor, cache: KVCache | None = None) -> Tensor:
        """The module's stream [B, T, D]: what the module of the next depth takes for `hidden_BTD`.

        Args:
            target: whose embedding and output head are shared.
            hidden_BTD: states at positions i: the trunk's, before the final norm, or those of the depth before.
            next_tokens_BT: the tokens at positions i + k at depth k.
            cache: the module's own keys and values, for positions that follow cached ones.
        """
        T = next_tokens_BT.shape[1]
        seen = cache.extend(T) if cache is not None else causal(target.cos[:T], target.sin[:T])
        embedded_BTD = self.embedding_norm(target.model.embed_tokens(next_tokens_BT))
        joined = torch.cat((self.hidden_norm(hidden_BTD), embedded_BTD), dim=-1)
        stream_BTD = self.projection(joined).to(hidden_BTD.dtype)  # the trunk's precision, under autocast too
        return self.block(stream_BTD, seen, 0)

    def logits(self, target: Llama, state_BTD: Tensor) -> Tensor:
        """Logits [B, T, V] of the token after `next_tokens_BT`."""
        return target.lm_head(self.norm(state_BTD))

    def forward(
        self, target: Llama, hidden_BTD: Tensor, next_tokens_BT: Tensor, cache: KVCache | None = None
    ) -> Tensor:
        """Logits [B, T, V] of the token after `next_tokens_BT`; arguments as of `state`."""
        return self.logits(target, self.state(target, hidden_BTD, next_tokens_BT, cache))


class MTPChain(nn.Module):
    """Sequential modules of depth D: module k takes the states of module k - 1 and the tokens at i + k.

    The complete causal chain of section 2.2: every depth sees all tokens before the one that it predicts.
    """

    def __init__(self, config: LlamaConfig, depth: int):
        super().__init__()
        self.depths = nn.ModuleList(MTPModule(config) for _ in range(depth))

    def forward(self, target: Llama, hidden_BTD: Tensor, following: list[Tensor]) -> list[Tensor]:
        """Logits [B, T, V] of each depth; `following[k - 1]` [B, T] are the tokens at positions i + k."""
        found, state_BTD = [], hidden_BTD
        for module, next_tokens_BT in zip(self.depths, following, strict=True):
            state_BTD = module.state(target, state_BTD, next_tokens_BT)
            found.append(module.logits(target, state_BTD))
        return found
