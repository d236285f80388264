"""Medusa heads: residual blocks on the target's last hidden state (Cai et al. 2024, arXiv 2401.10774).

They are trained alone (Medusa-1), or with the backbone (Medusa-2).
Shapes: B batch, N sequences, T time, K heads, D width, V vocabulary.
"""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from specledger.decoding.drafter import Drafter, Parts
from specledger.decoding.proposals import Output
from specledger.decoding.proposers import IndependentProposer
from specledger.foundation.drafters import Spec
from specledger.models.arrays import Array, cat, silu
from specledger.models.llama import Linear, Llama, LlamaConfig
from specledger.training.subject import OnFrozenTarget, Subject, cross_entropy

SPECS = (
    Spec(
        name="medusa1",
        order=100,
        title={"en": "Medusa-1", "zh": "Medusa-1"},
        tree_title={"en": "Medusa-1 tree", "zh": "Medusa-1 树"},
        typical_title={"en": "Medusa-1 (typical)", "zh": "Medusa-1（典型接受）"},
        colour="#aa4499",
        dark="#d98bcb",
        marker="h",
        group="apart",
        max_gamma=4,
        states=True,
        trained=True,
        training_cost=0.30,
    ),
    Spec(
        name="medusa2",
        order=110,
        title={"en": "Medusa-2", "zh": "Medusa-2"},
        tree_title={"en": "Medusa-2 tree", "zh": "Medusa-2 树"},
        colour="#882255",
        dark="#cf6c9c",
        marker="H",
        group="apart",
        max_gamma=4,
        states=True,
        trained=True,
        joint=True,
        begins_with="medusa1",
        training_cost=0.83,
    ),
)

DECAY = 0.8  # weight of head k is 0.8^k: guesses further ahead are less certain (section 2.2.1)
MEDUSA_WEIGHT = 0.2  # lambda_0 of eq. (2) for the heads beside the backbone's own loss


class MedusaHeads(nn.Module):
    """Head k predicts token i + k + 1 from the state at position i: W2 (SiLU(W1 h) + h), k from 1.

    W1 begins at zero and W2 as the target's output head, so that every head begins as the target's own
    prediction, as in the paper.
    """

    def __init__(self, config: LlamaConfig, count: int):
        super().__init__()
        self.residuals = nn.ModuleList(nn.Linear(config.width, config.width) for _ in range(count))
        self.outputs = nn.ModuleList(Linear(config.width, config.vocabulary) for _ in range(count))
        for residual in self.residuals:
            nn.init.zeros_(residual.bias)  # PyTorch would draw it from its global generator

    def begin_as(self, target: Llama) -> None:
        """Start every head from the target's output head."""
        with torch.no_grad():
            for residual, output in zip(self.residuals, self.outputs, strict=True):
                residual.weight.zero_()
                residual.bias.zero_()
                output.weight.copy_(target.lm_head.weight)

    def forward(self, target: Llama, hidden_BTD: Tensor) -> list[Tensor]:
        """Logits [B, T, V] of each head, from the trunk's states before the target's final norm."""
        normed_BTD = target.model.norm(hidden_BTD)
        return [
            output(normed_BTD + silu(residual(normed_BTD)))
            for residual, output in zip(self.residuals, self.outputs, strict=True)
        ]


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


class MedusaProposer(IndependentProposer):
    """Heads on the target's last state."""

    def __init__(self, target: Llama, heads: MedusaHeads, *, engine, sampling, capacity: int):
        super().__init__(target, heads, engine=engine, sampling=sampling)

    def head_logits(self, output: Output, tokens: Sequence[int]) -> Array:
        count = self.take(output, tokens)
        return cat(self.network(self.target, output.hidden_TD[None, count - 1 : count]), axis=1)

    @staticmethod
    def plain_logits(target: Llama, heads: MedusaHeads, contexts_NT: Array, proposed: int) -> Array:
        states_NTD = target.hidden(contexts_NT[:, : contexts_NT.shape[1] - proposed - 1])
        return heads(target, states_NTD)[proposed][:, -1]


def network(spec: Spec, config: LlamaConfig) -> MedusaHeads:
    return MedusaHeads(config, count=spec.max_gamma)


def objective(spec: Spec, target: Llama, head: MedusaHeads, *, share: float, first: MedusaHeads | None, **_) -> Subject:
    """Of Medusa-1, or with the backbone of Medusa-2, which begins with trained heads."""
    if not spec.joint:
        return MedusaTraining(target, head)
    head.load_state_dict(first.state_dict())
    return JointMedusaTraining(target, head, share)


def drafter(spec: Spec, parts: Parts) -> Drafter:
    head, target = parts.heads[spec.name]
    return Drafter.of(spec, MedusaProposer, target, head, vocabulary=target.config.vocabulary)
