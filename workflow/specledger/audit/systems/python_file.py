"""A decoder of one's own in a Python file: `sample(prompt_ids, count, settings) -> ids[count, tokens]`.

Beside it the file may have: `baseline`, the same without speculation; `next_logits(ids[N, T]) -> [N, V]`, the
target's logits, which make the exact test possible; `draft_logits`, the draft's; `encode(text)` and
`decode(ids)`; `NAME`, `VERSION`, `END_IDS`, and `WARPERS`, an order of `warpers.ORDERS`.
"""

import importlib.util
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType

from specledger.audit.settings import Batch, SamplingSettings
from specledger.foundation.errors import UserError


def loaded(path: Path) -> ModuleType:
    """The module of a file; UserError where there is none, it fails, or it has no sample()."""
    if not path.is_file():
        raise UserError(f"--system {path}: no such file")
    spec = importlib.util.spec_from_file_location("specledger_audited", path)
    if spec is None or spec.loader is None:
        raise UserError(f"--system {path}: not a Python file; wanted is one with sample(prompt_ids, count, settings)")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    sys.path.insert(0, str(path.resolve().parent))  # what lies beside the file can be imported
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise UserError(f"--system {path}: {type(error).__name__}: {_line(error)}") from error
    if not callable(getattr(module, "sample", None)):
        raise UserError(f"--system {path}: it has no sample(prompt_ids, count, settings)")
    if not any(callable(getattr(module, name, None)) for name in ("next_logits", "baseline")):
        raise UserError(
            f"--system {path}: to be compared with, it must also have next_logits(ids[N, T]) -> [N, V] or "
            "baseline(prompt_ids, count, settings)"
        )
    return module


class PythonFile:
    """One function of the file as a system."""

    def __init__(self, path: Path, module: ModuleType, function: str = "sample"):
        self.name = str(getattr(module, "NAME", path.stem)) + ("" if function == "sample" else ", plain")
        self.version = str(getattr(module, "VERSION", "not told"))
        self.path, self.function = path, function
        self._draw: Callable = getattr(module, function)

    def sample(self, prompt_ids: Sequence[int], count: int, settings: SamplingSettings) -> Batch:
        import numpy as np

        start, cpu = time.monotonic(), time.process_time()
        try:
            found = self._draw(prompt_ids, count, settings)
        except Exception as error:
            raise UserError(f"{self.path}: {self.function}() fails: {type(error).__name__}: {_line(error)}") from error
        if isinstance(found, Batch):
            return found
        seconds, cpu = time.monotonic() - start, time.process_time() - cpu
        try:
            ids = np.asarray(found)
        except ValueError as error:
            raise UserError(f"{self.path}: {self.function}() gives rows of unequal length; fill with -1") from error
        return Batch(ids=ids, seconds=seconds, cpu_seconds=cpu)

    def close(self) -> None:
        pass


def _line(error: BaseException) -> str:
    return " ".join(str(error).split()) or "no message"
