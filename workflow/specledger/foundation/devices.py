"""Which device a stage computes on."""

import os
import shutil
from pathlib import Path

from specledger.foundation.errors import UserError


def cuda_count() -> int:
    """How many CUDA devices PyTorch can use; PyTorch is imported only where a driver is installed."""
    drivers = ("/proc/driver/nvidia", "/dev/dxg", "/dev/nvhost-ctrl")
    if not shutil.which("nvidia-smi") and not any(Path(path).exists() for path in drivers):
        return 0
    import torch

    return torch.cuda.device_count() if torch.cuda.is_available() else 0


def resolve(name: str) -> str:
    """'auto', 'cpu', 'cuda' or 'cuda:N' to the device that is used; UserError if it isn't there."""
    if name == "cpu":
        return "cpu"
    count = cuda_count()
    if name == "auto":
        return "cuda" if count else "cpu"
    index = int(name.partition(":")[2] or 0)
    if index >= count:
        there = f"{count} CUDA device(s), numbered from 0" if count else "no CUDA device"
        raise UserError(f"config device: {name} — this machine has {there} for PyTorch; allowed: auto, cpu")
    return name


def prepare(name: str, threads: int):
    """Fix PyTorch's threads and precision, and return the torch.device of `name`."""
    import torch

    torch.set_num_threads(threads)
    torch.set_float32_matmul_precision("highest")
    # cuBLAS reads this when it starts; without it, its sums may come in another order each run.
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    torch.set_deterministic_debug_mode("warn")  # use_deterministic_algorithms imports a compiler too, for a second
    torch.utils.deterministic.fill_uninitialized_memory = False  # costs 3% of a step; nothing reads it unwritten
    device = torch.device(resolve(name))
    if device.type == "cuda":
        # Graphs are captured and events recorded on the current device, whatever device the tensors are on.
        torch.cuda.set_device(device.index or 0)
    return device


def describe(device) -> str:
    """The device in words: the GPU's name, or the processor's."""
    if device.type == "cuda":
        import torch

        return torch.cuda.get_device_name(device)
    try:
        with Path("/proc/cpuinfo").open(encoding="utf-8") as lines:
            return next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        import platform

        return platform.processor() or platform.machine()


def synchronize(device) -> None:
    """Wait for the device, so that the next clock reading counts its work."""
    if device.type == "cuda":
        import torch

        torch.cuda.synchronize(device)
