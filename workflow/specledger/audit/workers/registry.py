"""The audited systems by name."""

import importlib
from types import ModuleType

MODULES = {
    "specledger": "ours",
    "transformers": "huggingface",
    "llama.cpp": "llamacpp",
    "vllm": "vllm_cpu",
}


def adapter(name: str) -> ModuleType:
    """The module of a system; ValueError for a name that none has."""
    if name not in MODULES:
        raise ValueError(f"system must be one of {', '.join(MODULES)}, got {name}")
    return importlib.import_module(f"{__package__}.{MODULES[name]}")
