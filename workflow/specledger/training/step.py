"""One step of a training: the optimiser, and the update.

Nothing in a step waits for a GPU: the loss stays on the device, and whoever shows it asks for it.
"""

import torch
from torch import Tensor

from specledger.training.batches import sample_batch
from specledger.training.settings import TrainingSettings
from specledger.training.state import State
from specledger.training.subject import Subject


def make_optimizer(subject: Subject, settings: TrainingSettings) -> torch.optim.AdamW:
    """AdamW (Loshchilov & Hutter 2019) that decays matrices and leaves biases and gains of norms alone."""
    groups = []
    for part, share in zip(subject.parts, subject.shares, strict=True):
        matrices = [p for p in part.parameters() if p.dim() > 1]
        others = [p for p in part.parameters() if p.dim() <= 1]
        for parameters, decay in ((matrices, settings.weight_decay), (others, 0.0)):
            groups += [{"params": parameters, "weight_decay": decay, "share": share}] if parameters else []
    return torch.optim.AdamW(groups, lr=settings.learning_rate, betas=tuple(settings.betas), fused=True)


def update(subject: Subject, state: State, rate: float, settings: TrainingSettings, tokens: Tensor) -> Tensor:
    """One optimisation step; returns the first of the subject's losses, still on the device."""
    for group in state.optimizer.param_groups:
        group["lr"] = rate * group["share"]
    stretch = sample_batch(
        tokens, batch=settings.batch, context=subject.context, ahead=subject.ahead, generator=state.order
    )
    loss = subject.accumulate(stretch, state.order)
    torch.nn.utils.clip_grad_norm_(state.modules.parameters(), settings.clip_norm)
    state.optimizer.step()
    state.optimizer.zero_grad()
    return loss
