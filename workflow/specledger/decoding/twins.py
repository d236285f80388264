"""What stands in for a module: the forward code of its class over other leaves, so that no network is written twice."""

import types
from collections.abc import Callable
from typing import Any

from torch import nn


class Kept:
    """Weights are shared by all copies of a session."""

    def __deepcopy__(self, memo: dict) -> "Kept":
        return self


class Twin(Kept):
    """A module's methods over the twins of its parts, each of which `twin` makes."""

    def __init__(self, module: nn.Module, twin: Callable[[nn.Module], Any]):
        self._class = type(module)
        for name, child in module.named_children():
            setattr(self, name, twin(child))
        if hasattr(module, "config"):
            self.config = module.config

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        found = getattr(self._class, name)
        return types.MethodType(found, self) if callable(found) else found

    def __call__(self, *arguments: Any) -> Any:
        return self._class.forward(self, *arguments)
