"""Medusa heads: residual blocks on the target's last hidden state (Cai et al. 2024, arXiv 2401.10774, section 2.1.1).

Shapes: B batch, T time, K heads, D width, V vocabulary.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from specledger.models.llama import Linear, Llama, LlamaConfig


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
            output(normed_BTD + F.silu(residual(normed_BTD)))
            for residual, output in zip(self.residuals, self.outputs, strict=True)
        ]
