"""The systems whose decoders are audited: one module each.

The upper half of a module says what the system is called, what it needs and which modes it has; the lower half,
`System`, runs in its environment, in a process of its own that speaks the protocol of `worker`.
"""

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
    return importlib.import_module(f"{__name__}.{MODULES[name]}")
