"""In which precision the matrix products of a training step are computed, and whether a step is compiled."""

import shutil
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from importlib.util import find_spec

import torch


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


def in_precision(precision: torch.dtype, device: torch.device) -> AbstractContextManager:
    """Weights, gradients, moments and losses stay in float32; autocast lowers the matrix products alone."""
    if precision == torch.float32:
        return nullcontext()
    return torch.autocast(device.type, dtype=precision)


def _compiles(device: torch.device) -> bool:
    """Whether the step is compiled: on a GPU, where there is what compiles it.

    On a CPU the matrix products are most of a step: compiling it saves less than it takes in a short training.
    """
    return device.type == "cuda" and find_spec("triton") is not None and bool(shutil.which("cc") or shutil.which("gcc"))


def compiled_where_it_pays(function: Callable, device: torch.device) -> Callable:
    return torch.compile(function, dynamic=False) if _compiles(device) else function
