"""The heads that are trained on top of a target, by name: what each is, and its file.

Not part of storage.py, so that an edit of one head trains no target anew.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch

from specledger.foundation.drafters import DEPTHS
from specledger.models.features import FeatureDrafter
from specledger.models.llama import Llama, LlamaConfig
from specledger.models.medusa import MedusaHeads
from specledger.models.mtp import MTPChain
from specledger.models.parallel import ParallelHeads
from specledger.models.storage import fill, load_tensors, save_tensors, under

HEAD_PREFIX, TRUNK_PREFIX = "head.", "target."


@dataclass(frozen=True, kw_only=True)
class HeadKind:
    """How a head is built for a target of given sizes.

    Args:
        joint: the trunk is trained with the head, so that the head decodes with a target of its own.
    """

    build: Callable[[LlamaConfig], torch.nn.Module]
    joint: bool = False


HEADS = {
    "mtp2": HeadKind(build=lambda config: MTPChain(config, depth=DEPTHS["mtp2"])),
    "mtp4": HeadKind(build=lambda config: MTPChain(config, depth=DEPTHS["mtp4"])),
    "parallel": HeadKind(build=lambda config: ParallelHeads(config, count=DEPTHS["parallel"]), joint=True),
    "medusa1": HeadKind(build=lambda config: MedusaHeads(config, count=DEPTHS["medusa1"])),
    "medusa2": HeadKind(build=lambda config: MedusaHeads(config, count=DEPTHS["medusa2"]), joint=True),
    "eagle": HeadKind(build=FeatureDrafter),
}


def build_head(name: str, config: LlamaConfig) -> torch.nn.Module:
    """The head `name`, untrained; ValueError for a name that is none."""
    if name not in HEADS:
        raise ValueError(f"head must be one of {', '.join(HEADS)}, got {name}")
    return HEADS[name].build(config)


def save_head(folder: Path, name: str, head: torch.nn.Module, target: Llama | None = None) -> None:
    """Write heads.safetensors of the head `name`; one that was trained jointly brings the `target` it belongs to."""
    assert HEADS[name].joint == (target is not None), f"{name}: a trunk of its own is saved where it is trained jointly"
    tensors = {HEAD_PREFIX + key: tensor for key, tensor in head.state_dict().items()}
    if target is not None:
        tensors |= {TRUNK_PREFIX + key: tensor for key, tensor in target.state_dict().items()}
    save_tensors(folder / "heads.safetensors", tensors)


def load_head(folder: Path, name: str, target: Llama) -> tuple[torch.nn.Module, Llama]:
    """The head `name` of a folder, ready for inference on the target's device, and the target to decode with.

    That target is the given one, and for a head that was trained jointly (parallel, medusa2) its own.
    UserError for a file that is missing, damaged or another head's.
    """
    path = folder / "heads.safetensors"
    tensors, device = load_tensors(path), target.lm_head.weight.device
    head = build_head(name, target.config)
    fill(head, under(HEAD_PREFIX, tensors), path)
    head = head.to(device).eval().requires_grad_(False)
    if not HEADS[name].joint:
        return head, target
    own = Llama(target.config)
    fill(own, under(TRUNK_PREFIX, tensors), path)
    return head, own.to(device).eval().requires_grad_(False)
