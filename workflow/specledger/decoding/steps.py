"""Functions of static tensors, compiled once: by the compiler on the CPU, as a captured graph on a GPU.

A step is called again and again with the same tensors, whose contents change. Compiling is clocked apart.
"""

import time
from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor

from specledger.foundation.errors import UserError

OPTIONS = {"cpp_wrapper": True}  # the calls between kernels in C++ too: at these sizes they cost as much as the kernels
WARM_UPS = 3


class NotCompiled(UserError):
    """The compiler is missing or failed; the study can go on without the engine."""


def why_not(device: torch.device) -> str | None:
    """Why nothing can be compiled for `device`, or None."""
    if device.type == "cuda":
        return None
    from torch._inductor.cpp_builder import get_cpp_compiler

    try:
        get_cpp_compiler()
    except Exception:  # whatever it raises, it found none
        return "no C++ compiler found; install one (Debian: apt install g++), or set CXX"
    if any(letter.isspace() for letter in torch.__file__):
        # PyTorch calls the compiler with this path unquoted.
        return f"PyTorch lies in a folder whose name has a space ({Path(torch.__file__).parent}); install it in another"
    return None


class Step:
    """A function of tensors on one device that runs compiled from its first call on.

    Its arguments must be the same tensors each time, and so it returns: on a GPU the same tensors again.
    """

    def __init__(self, function: Callable, device: torch.device):
        self.function, self.device = function, device
        self.run: Callable | None = None
        self.compile_s = 0.0

    def __call__(self, *tensors: Tensor):
        if self.run is None:
            begun = time.perf_counter()
            self.run = (
                captured(self.function, tensors) if self.device.type == "cuda" else compiled(self.function, tensors)
            )
            self.compile_s = time.perf_counter() - begun
        return self.run(*tensors)


def compiled(function: Callable, tensors: tuple[Tensor, ...]) -> Callable:
    """`function` compiled ahead of time for tensors of these shapes, without checks at each call."""
    try:
        ahead = torch.compile(function, fullgraph=True, dynamic=False, options=OPTIONS).aot_compile((tensors, {}))
    except Exception as error:
        raise NotCompiled(f"engine compiled: the compiler failed ({_first_line(error)})") from error
    ahead.disable_guard_check()
    return ahead


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:200]


def captured(function: Callable, tensors: tuple[Tensor, ...]) -> Callable:
    """`function` as a CUDA graph over these very tensors: one launch for all its kernels, no wait."""
    try:
        return _capture(function, tensors)
    except RuntimeError as error:
        raise NotCompiled(f"engine compiled: no CUDA graph could be captured ({_first_line(error)})") from error


def _capture(function: Callable, tensors: tuple[Tensor, ...]) -> Callable:
    side = torch.cuda.Stream(tensors[0].device)
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(WARM_UPS):
            function(*tensors)
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        outputs = function(*tensors)
    places = [tensor.data_ptr() for tensor in tensors]

    def replay(*same: Tensor):
        assert [tensor.data_ptr() for tensor in same] == places, "a graph reads the tensors that it was captured with"
        graph.replay()
        return outputs

    return replay


class Box:
    """Numbers that the host fills and the device reads; on the CPU they are one."""

    def __init__(self, size: int | tuple[int, ...], dtype: torch.dtype, device: torch.device):
        on_gpu = device.type == "cuda"
        self.host = torch.zeros(size, dtype=dtype, pin_memory=on_gpu)
        self.numbers = self.host.numpy()
        self.device = torch.zeros_like(self.host, device=device) if on_gpu else self.host

    def send(self) -> None:
        """Queue the copy to the device; the host must not write again before the round's wait."""
        if self.device is not self.host:
            self.device.copy_(self.host, non_blocking=True)
