"""Which GPU a job takes where there are several: one that no other job of this user holds.

Snakemake's `--resources gpu=N` says how many jobs use a GPU at once, and not which. A job holds the lock of its GPU
until it ends, and sees no other; a cluster's scheduler that shows a job one GPU has decided already.
"""

import contextlib
import fcntl
import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from specledger.foundation.devices import cuda_count
from specledger.foundation.errors import UserError

VISIBLE = "CUDA_VISIBLE_DEVICES"
DRIVER = Path("/proc/driver/nvidia/gpus")


def visible_gpus() -> list[str]:
    """The names of the GPUs that this process may use, as CUDA_VISIBLE_DEVICES takes them."""
    if VISIBLE in os.environ:
        return [name.strip() for name in os.environ[VISIBLE].split(",") if name.strip()]
    return [str(index) for index in range(_driven())]


def _driven() -> int:
    """How many GPUs the driver knows."""
    with contextlib.suppress(OSError):
        return sum(1 for _ in DRIVER.iterdir())
    return 0


@contextlib.contextmanager
def gpu_of_its_own(device: str, say: Callable[[str], None]) -> Iterator[str | None]:
    """Show this process one GPU that is free, as its only one; None where there is nothing to choose.

    Args:
        device: of the configuration; `cuda:N` names a GPU itself.
        say: is told when every GPU is held; the first is shared then.
    """
    gpus = visible_gpus() if device in ("auto", "cuda") else []
    if len(gpus) < 2:
        yield None
        return
    before = os.environ.get(VISIBLE)
    with contextlib.ExitStack() as held:
        taken = next((gpu for gpu in gpus if _hold(gpu, held)), None)
        if taken is None:
            say(f"all {len(gpus)} GPUs are held by other jobs; this one shares the first (--resources gpu={len(gpus)})")
        os.environ[VISIBLE] = taken or gpus[0]
        try:
            yield taken
        finally:
            os.environ.update({VISIBLE: before}) if before is not None else os.environ.pop(VISIBLE)


def check_seen(gpu: str) -> None:
    """UserError where the driver has GPUs and PyTorch is made for them, but doesn't see the one that was taken.

    `device: auto` would compute on the CPU then: a container may show the driver's GPUs and have only some of them.
    """
    if not _driven():
        return
    import torch

    if torch.backends.cuda.is_built() and not cuda_count():
        raise UserError(
            f"GPU {gpu} was taken for this job, and PyTorch sees no GPU there; set {VISIBLE} to those that it may use, "
            "or device: cpu"
        )


def _hold(gpu: str, held: contextlib.ExitStack) -> bool:
    name = gpu.replace("/", "-")
    lock = (Path(tempfile.gettempdir()) / f"specledger-gpu-{os.getuid()}-{name}.lock").open("w")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        lock.close()
        return False
    held.enter_context(lock)
    return True
