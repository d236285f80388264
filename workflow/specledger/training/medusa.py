"""Training of Medusa heads (Cai et al. 2024, arXiv 2401.10774): alone (Medusa-1), or with the backbone (Medusa-2).

Shapes: N sequences, T = context, D width, V vocabulary.
"""

import torch
from torch import Tensor

from specledger.models.llama import Llama
from specledger.models.medusa import MedusaHeads
from specledger.training.subject import OnFrozenTarget, Subject, cross_entropy

DECAY = 0.8  # weight of head k is 0.8^k: guesses further ahead are less certain (section 2.2.1)
MEDUSA_WEIGHT = 0.2  # lambda_0 of eq. (2) for the heads beside the backbone's own loss


def _losses_of_heads(heads: MedusaHeads, target: Llama, hidden_NTD: Tensor, shifted: list[Tensor]) -> list[Tensor]:
    """Cross-entropy of head k at token i + k + 1, for k from 1."""
    return [cross_entropy(logits, tokens) for logits, tokens in zip(heads(target, hidden_NTD), shifted, strict=True)]


def _weighted(each: list[Tensor]) -> Tensor:
    """Sum of 0.8^k times the loss of head k, eq. (1)."""
    return torch.stack([DECAY**k * loss for k, loss in enumerate(each, 1)]).sum()


def _names_of(heads: MedusaHeads, first: int) -> tuple[str, ...]:
    return ("loss", *(f"ahead{k}_loss" for k in range(first, len(heads.outputs) + 2)))


class MedusaTraining(OnFrozenTarget):
    """Medusa-1: heads alone, each of which begins as the target's output head."""

    head: MedusaHeads

    def __init__(self, target: Llama, head: MedusaHeads):
        super().__init__(target, head)
        head.begin_as(target)
        self.ahead, self.names = len(head.outputs) + 1, _names_of(head, first=2)

    def losses(self, stretch: Tensor) -> tuple[Tensor, ...]:
        shifted = [stretch[:, k : k + self.context] for k in range(self.ahead + 1)]
        each = _losses_of_heads(self.head, self.target, self.hidden(shifted[0]), shifted[2:])
        return _weighted(each), *each


class JointMedusaTraining(Subject):
    """Medusa-2: backbone and heads, loss = L_LM + lambda_0 L_Medusa-1, eq. (2).

    The heads come in as Medusa-1 has trained them (its warm-up of the heads), and the backbone learns at a part of
    their rate (its differential learning rates), since it is trained already.

    Args:
        target: the backbone; it is changed.
        share: of the heads' learning rate, for the backbone.
    """

    def __init__(self, target: Llama, head: MedusaHeads, share: float):
        self.target, self.head = target, head
        self.parts, self.shares, self.context = (head, target), (1.0, share), target.config.context
        self.ahead, self.names = len(head.outputs) + 1, _names_of(head, first=1)

    def losses(self, stretch: Tensor) -> tuple[Tensor, ...]:
        shifted = [stretch[:, k : k + self.context] for k in range(self.ahead + 1)]
        hidden_NTD = self.target.hidden(shifted[0])
        own = cross_entropy(self.target.logits(hidden_NTD), shifted[1])
        each = _losses_of_heads(self.head, self.target, hidden_NTD, shifted[2:])
        return own + MEDUSA_WEIGHT * _weighted(each), own, *each
