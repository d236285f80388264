"""Training of MTP modules beyond depth 1 (DeepSeek-V3, arXiv 2412.19437, section 2.2).

DeepSeek trains trunk and modules together, from scratch. Here the trunk is frozen, so that all drafters guess for
one and the same target, and every depth begins as the target's own module of depth 1.

Shapes: N sequences, T = context, D width, V vocabulary.
"""

import torch
from torch import Tensor

from specledger.models.llama import Llama
from specledger.models.mtp import MTPChain, MTPModule
from specledger.training.subject import OnFrozenTarget, cross_entropy


class ChainTraining(OnFrozenTarget):
    """Loss = mean over depths k of the cross-entropy of token i + 1 + k, eq. (24) and (25) with lambda 1."""

    head: MTPChain

    def __init__(self, target: Llama, head: MTPChain, mtp: MTPModule):
        super().__init__(target, head)
        for module in head.depths:
            module.load_state_dict(mtp.state_dict())
        depth = len(head.depths)
        self.ahead = depth + 1
        self.names = ("loss", *(f"ahead{k + 1}_loss" for k in range(1, depth + 1)))

    def losses(self, stretch: Tensor) -> tuple[Tensor, ...]:
        shifted = [stretch[:, k : k + self.context] for k in range(self.ahead + 1)]
        logits = self.head(self.target, self.hidden(shifted[0]), shifted[1:-1])
        each = [cross_entropy(of_depth, tokens) for of_depth, tokens in zip(logits, shifted[2:], strict=True)]
        return torch.stack(each).mean(), *each
