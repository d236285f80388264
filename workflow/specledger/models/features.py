"""Autoregression on the target's features: EAGLE (Li et al. 2024, arXiv 2401.15077, section 4.1).

Shapes: B batch, T time, D width, V vocabulary.
"""

import torch
from torch import Tensor, nn

from specledger.models.cache import KVCache, causal
from specledger.models.llama import Block, Llama, LlamaConfig


class FeatureDrafter(nn.Module):
    """Predicts the target's feature at i + 1 from its feature at i and the embedding of the token at i + 1.

    A feature is the trunk's last stream, before the final norm; embedding, norm and output head are the
    target's own and stay as they are.
    """

    def __init__(self, config: LlamaConfig):
        super().__init__()
        self.projection = nn.Linear(2 * config.width, config.width)
        torch.nn.init.zeros_(self.projection.bias)  # PyTorch would draw it from its global generator
        self.block = Block(config)

    def state(self, target: Llama, feature_BTD: Tensor, next_tokens_BT: Tensor, cache: KVCache | None = None) -> Tensor:
        """Predicted features [B, T, D] at positions i + 1.

        Args:
            feature_BTD: features at positions i, the target's or predicted ones.
            next_tokens_BT: the tokens at positions i + 1.
            cache: the module's own keys and values, for positions that follow cached ones.
        """
        T = next_tokens_BT.shape[1]
        seen = cache.extend(T) if cache is not None else causal(target.cos[:T], target.sin[:T])
        joined = torch.cat((target.model.embed_tokens(next_tokens_BT), feature_BTD), dim=-1)
        return self.block(self.projection(joined).to(feature_BTD.dtype), seen, 0)

    def logits(self, target: Llama, state_BTD: Tensor) -> Tensor:
        """Logits [B, T, V] of the token after `next_tokens_BT`."""
        return target.logits(state_BTD)
