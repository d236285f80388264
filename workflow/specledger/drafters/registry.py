"""The drafters' modules, found by the names of their drafters: what each builds, learns, and proposes with.

A module of drafters has `SPECS` and `drafter(spec, parts)`; one whose drafters are trained on top of the target has
`network(spec, config)` and `objective(spec, target, head, ...)` too.
"""

import copy
import importlib
from pathlib import Path
from types import ModuleType

import torch

from specledger.decoding.drafter import Drafter, Parts
from specledger.foundation.drafters import HEADS, MODULES, SPECS
from specledger.models.llama import Llama, LlamaConfig
from specledger.models.storage import fill, load_tensors, save_tensors, under
from specledger.training.subject import Subject

HEAD_PREFIX, TRUNK_PREFIX = "head.", "target."
MODULE_OF = {spec.name: module for module, specs in MODULES.items() for spec in specs}


def module_of(name: str) -> ModuleType:
    """The module that declares the drafter `name`."""
    return importlib.import_module(f"{__package__}.{MODULE_OF[name]}")


def drafters_of(parts: Parts) -> dict[str, Drafter]:
    """Every drafter that can be made of these parts, in order."""
    asked = [spec for name, spec in SPECS.items() if not spec.trained or name in parts.heads]
    made = (module_of(spec.name).drafter(spec, parts) for spec in asked)
    return {drafter.name: drafter for drafter in made if drafter is not None}


def make(name: str, parts: Parts) -> Drafter:
    """The drafter `name` made of these parts."""
    return module_of(name).drafter(SPECS[name], parts)


def build_head(name: str, config: LlamaConfig) -> torch.nn.Module:
    """The trained drafter `name`, untrained; ValueError for a name that is none."""
    if name not in HEADS:
        raise ValueError(f"head must be one of {', '.join(HEADS)}, got {name}")
    return module_of(name).network(SPECS[name], config)


def begin(
    name: str,
    target: Llama,
    mtp: torch.nn.Module,
    *,
    seed: int,
    trunk_share: float,
    first: torch.nn.Module | None = None,
) -> Subject:
    """The head `name` at its first step; the given target is never changed.

    Args:
        mtp: the target's own module of depth 1.
        seed: for weights that begin at random.
        trunk_share: of the heads' learning rate, for a trunk that is trained with them.
        first: the trained head that it begins with, where its spec names one.
    """
    own = copy.deepcopy(target).train().requires_grad_() if SPECS[name].joint else target
    head = build_head(name, target.config)
    return module_of(name).objective(SPECS[name], own, head, mtp=mtp, seed=seed, share=trunk_share, first=first)


def save_head(folder: Path, name: str, head: torch.nn.Module, target: Llama | None = None) -> None:
    """Write heads.safetensors of the head `name`; one that was trained jointly brings the `target` it belongs to."""
    assert SPECS[name].joint == (target is not None), f"{name}: a trunk of its own is saved where it is trained jointly"
    tensors = {HEAD_PREFIX + key: tensor for key, tensor in head.state_dict().items()}
    if target is not None:
        tensors |= {TRUNK_PREFIX + key: tensor for key, tensor in target.state_dict().items()}
    save_tensors(folder / "heads.safetensors", tensors)


def load_head(folder: Path, name: str, target: Llama) -> tuple[torch.nn.Module, Llama]:
    """The head `name` of a folder, ready for inference on the target's device, and the target to decode with.

    That target is the given one, and for a head that was trained jointly its own.
    UserError for a file that is missing, damaged or another head's.
    """
    path = folder / "heads.safetensors"
    tensors, device = load_tensors(path), target.lm_head.weight.device
    head = build_head(name, target.config)
    fill(head, under(HEAD_PREFIX, tensors), path)
    head = head.to(device).eval().requires_grad_(False)
    if not SPECS[name].joint:
        return head, target
    own = Llama(target.config)
    fill(own, under(TRUNK_PREFIX, tensors), path)
    return head, own.to(device).eval().requires_grad_(False)
