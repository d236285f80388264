"""One step of a training: its losses, in which precision they are computed, and the update.

Nothing in a step waits for a GPU: the loss stays on the device, and whoever shows it asks for it.
Shapes: N sequences, T = context, D width, V vocabulary.
"""

import shutil
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from importlib.util import find_spec

import torch
import torch.nn.functional as F
from torch import Tensor

from specledger.models.llama import Llama
from specledger.models.mtp import MTPModule
from specledger.training.batches import sample_batch
from specledger.training.settings import TrainingSettings
from specledger.training.state import State

Losses = Callable[[Llama, MTPModule | None, Tensor], tuple[Tensor, Tensor | None]]


def losses(model: Llama, mtp: MTPModule | None, stretch: Tensor) -> tuple[Tensor, Tensor | None]:
    """Mean next-token loss and, with a module, mean loss of the token after it, of stretches [N, T + 2]."""
    tokens_NT, next_NT, after_NT = stretch[:, :-2], stretch[:, 1:-1], stretch[:, 2:]
    hidden_NTD = model.hidden(tokens_NT)
    main = F.cross_entropy(model.logits(hidden_NTD).flatten(0, 1), next_NT.flatten())
    if mtp is None:
        return main, None
    return main, F.cross_entropy(mtp(model, hidden_NTD, next_NT).flatten(0, 1), after_NT.flatten())


def precision_of(name: str, device: torch.device) -> torch.dtype:
    """The dtype of a step's matrix products: `auto` is bfloat16 where the device multiplies it in hardware."""
    if name != "auto":
        return {"float32": torch.float32, "bfloat16": torch.bfloat16}[name]
    if device.type == "cuda":
        native = torch.cuda.is_bf16_supported(including_emulation=False)
    else:
        able = torch.cpu.get_capabilities()
        native = any(able.get(name) for name in ("avx512_bf16", "amx_bf16", "bf16"))
    return torch.bfloat16 if native else torch.float32


def _in(precision: torch.dtype, device: torch.device) -> AbstractContextManager:
    """Weights, gradients, moments and losses stay in float32; autocast lowers the matrix products alone."""
    if precision == torch.float32:
        return nullcontext()
    return torch.autocast(device.type, dtype=precision)


def _compiles(device: torch.device) -> bool:
    """Whether the step is compiled: on a GPU, where there is what compiles it.

    On a CPU the matrix products are most of a step: compiling it saves less than it takes in a short training.
    """
    return device.type == "cuda" and find_spec("triton") is not None and bool(shutil.which("cc") or shutil.which("gcc"))


def losses_on(device: torch.device, precision: torch.dtype) -> Losses:
    """`losses` as a step computes them."""
    compute = torch.compile(losses, dynamic=False) if _compiles(device) else losses

    def in_precision(model: Llama, mtp: MTPModule | None, stretch: Tensor) -> tuple[Tensor, Tensor | None]:
        with _in(precision, device):
            return compute(model, mtp, stretch)

    return in_precision


def make_optimizer(modules: torch.nn.ModuleList, settings: TrainingSettings) -> torch.optim.AdamW:
    """AdamW (Loshchilov & Hutter 2019) that decays matrices and leaves gains of norms alone."""
    matrices = [p for p in modules.parameters() if p.dim() > 1]
    gains = [p for p in modules.parameters() if p.dim() <= 1]
    groups = [{"params": matrices, "weight_decay": settings.weight_decay}, {"params": gains, "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, lr=settings.learning_rate, betas=tuple(settings.betas), fused=True)


def update(
    compute: Losses, model, mtp, state: State, rate: float, settings: TrainingSettings, tokens: Tensor
) -> Tensor:
    """One optimisation step; returns the next-token loss, still on the device."""
    for group in state.optimizer.param_groups:
        group["lr"] = rate
    stretch = sample_batch(tokens, batch=settings.batch, context=model.config.context, generator=state.order)
    main, after = compute(model, mtp, stretch)
    (main if after is None else main + settings.mtp_weight * after).backward()
    torch.nn.utils.clip_grad_norm_(state.modules.parameters(), settings.clip_norm)
    state.optimizer.step()
    state.optimizer.zero_grad()
    return main.detach()
