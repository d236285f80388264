"""Parallel heads on a shared trunk (Gloeckle et al. 2024, arXiv 2404.19737).

Shapes: B batch, T time, D width, V vocabulary.
"""

from torch import Tensor, nn

from specledger.models.cache import Attended, causal
from specledger.models.llama import Block, Llama, LlamaConfig


class ParallelHeads(nn.Module):
    """n = count + 1 heads of one block each predict the next n tokens from the same trunk state.

    The trunk is the target without its last block, and that block is the first head, so that the target
    stays as large as it was (section 2: "we remove layers from the shared trunk"). Head k reads the state at
    position i and predicts token i + k; all share the target's final norm and output head.
    """

    def __init__(self, config: LlamaConfig, count: int):
        super().__init__()
        self.heads = nn.ModuleList(Block(config) for _ in range(count))

    def forward(self, target: Llama, trunk_BTD: Tensor, number: int, seen: Attended | None = None) -> Tensor:
        """Logits [B, T, V] of token i + 2 + number at each position i, from head `number` (from 0).

        Args:
            trunk_BTD: the stream before the target's last block, at positions i.
            seen: what the positions see where they follow cached ones, of a cache with a layer for each head.
        """
        T = trunk_BTD.shape[1]
        seen = seen if seen is not None else causal(target.cos[:T], target.sin[:T])
        return target.logits(self.heads[number](trunk_BTD, seen, number))
