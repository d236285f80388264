"""Training of parallel heads with their trunk (Gloeckle et al. 2024, arXiv 2404.19737, section 2).

They train from scratch; here trunk and first head begin as the trained target, and the other heads as copies of its
last block, so that a part of the target's own training is enough.

Shapes: N sequences, T = context, D width, V vocabulary.
"""

from collections.abc import Callable

import torch
from torch import Tensor

from specledger.models.cache import causal
from specledger.models.llama import Llama
from specledger.models.parallel import ParallelHeads
from specledger.training.precision import in_precision
from specledger.training.subject import Subject, cross_entropy


class ParallelTraining(Subject):
    """Loss = sum over the heads k = 1 … n of the cross-entropy of token i + k, eq. (2); head 1 is the last block.

    Args:
        target: trunk and first head; it is changed.
        share: of the new heads' learning rate, for the target.
    """

    def __init__(self, target: Llama, head: ParallelHeads, share: float):
        self.target, self.head = target, head
        for block in head.heads:
            block.load_state_dict(target.model.layers[-1].state_dict())
        self.parts, self.shares, self.context = (head, target), (1.0, share), target.config.context
        self.ahead = len(head.heads) + 1
        self.names = ("loss", *(f"ahead{k}_loss" for k in range(1, self.ahead + 1)))

    def _trunk(self, tokens_NT: Tensor) -> Tensor:
        """The stream [N, T, D] before the target's last block."""
        model, seen = self.target.model, self._seen()
        x_NTD = model.embed_tokens(tokens_NT)
        for index, block in enumerate(model.layers[:-1]):
            x_NTD = block(x_NTD, seen, index)
        return x_NTD

    def _seen(self):
        return causal(self.target.cos[: self.context], self.target.sin[: self.context])

    def _of_heads(self) -> list[Callable[[Tensor], Tensor]]:
        """From the trunk's stream to logits [N, T, V], for each head in turn."""
        last = lambda x_NTD: self.target.logits(self.target.model.layers[-1](x_NTD, self._seen(), 0))  # noqa: E731
        others = [lambda x_NTD, n=n: self.head(self.target, x_NTD, n) for n in range(len(self.head.heads))]
        return [last, *others]

    def losses(self, stretch: Tensor) -> tuple[Tensor, ...]:
        x_NTD = self._trunk(stretch[:, : self.context])
        each = [
            cross_entropy(logits_of(x_NTD), stretch[:, k : k + self.context])
            for k, logits_of in enumerate(self._of_heads(), 1)
        ]
        return torch.stack(each).sum(), *each

    def accumulate(self, stretch: Tensor, generator: torch.Generator) -> Tensor:
        """One head after another, so that the logits of one at a time are in memory (figure 2 of the paper).

        Each goes backward down to the trunk's stream, where gradients add up; then the trunk does, once.
        """
        with in_precision(self.precision, stretch.device):
            x_NTD = self._trunk(stretch[:, : self.context])
        cut_NTD, total = x_NTD.detach().requires_grad_(), 0.0
        for k, logits_of in enumerate(self._of_heads(), 1):
            with in_precision(self.precision, stretch.device):
                loss = cross_entropy(logits_of(cut_NTD), stretch[:, k : k + self.context])
            loss.backward()
            total = total + loss.detach()
        x_NTD.backward(cut_NTD.grad)
        return total
