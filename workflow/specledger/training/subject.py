"""What is trained, as the loop sees it: some modules, and losses of a stretch of text that improve them.

Shapes: N sequences, T = context, A tokens ahead of it, V vocabulary.
"""

from abc import ABC, abstractmethod

import torch
import torch.nn.functional as F
from torch import Tensor

from specledger.models.llama import Llama
from specledger.training.precision import in_precision


class Subject(ABC):
    """One model or head under training.

    Attributes:
        parts: the modules that are trained; what they hold is kept in checkpoints, and nothing else.
        shares: of the learning rate, one for each part.
        context: positions of a stretch that losses are taken at.
        ahead: how many tokens beyond the context the losses look.
        names: of its losses; the first is what the training is followed by, and what the best checkpoint is best in.
        precision: of the matrix products of a step; evaluations are in float32.
    """

    parts: tuple[torch.nn.Module, ...]
    shares: tuple[float, ...]
    context: int
    ahead: int
    names: tuple[str, ...]
    precision: torch.dtype = torch.float32

    def prepare(self, device: torch.device, precision: torch.dtype) -> None:
        """Move to the device; called once, before anything else."""
        self.precision = precision
        for part in self.parts:
            part.to(device)

    @property
    def device(self) -> torch.device:
        return next(self.parts[0].parameters()).device

    @abstractmethod
    def losses(self, stretch: Tensor) -> tuple[Tensor, ...]:
        """The losses of `names` for a stretch [N, T + A], each a mean over its tokens."""

    def accumulate(self, stretch: Tensor, generator: torch.Generator) -> Tensor:
        """Add the gradients of a step to the parts; returns the first loss, still on the device.

        Args:
            generator: for what a step draws besides its stretch; its state is kept in checkpoints.
        """
        with in_precision(self.precision, stretch.device):
            first, *_ = self.losses(stretch)
        first.backward()
        return first.detach()


def cross_entropy(logits_NTV: Tensor, tokens_NT: Tensor) -> Tensor:
    """Mean nats a character."""
    return F.cross_entropy(logits_NTV.flatten(0, 1), tokens_NT.flatten())


class OnFrozenTarget(Subject):
    """A head whose target stays as it is: its trunk runs without gradients."""

    def __init__(self, target: Llama, head: torch.nn.Module):
        self.target, self.head = target.eval().requires_grad_(False), head
        self.parts, self.shares, self.context = (head,), (1.0,), target.config.context

    def prepare(self, device: torch.device, precision: torch.dtype) -> None:
        super().prepare(device, precision)
        self.target.to(device)

    def hidden(self, tokens_NT: Tensor) -> Tensor:
        """The trunk's last stream [N, T, D], a constant."""
        with torch.no_grad():
            return self.target.hidden(tokens_NT)
