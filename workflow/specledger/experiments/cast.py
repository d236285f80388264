"""The models of one seed that the experiments play with: the target and every drafter."""

from dataclasses import dataclass
from pathlib import Path

import torch

from specledger.decoding.drafters import Drafter, DraftModel, MTPDrafter, NGramDrafter
from specledger.models.llama import Llama
from specledger.models.ngram import NGram
from specledger.models.storage import load_model, load_mtp


@dataclass(frozen=True, kw_only=True)
class Cast:
    """The target is the one that was trained with its MTP module; drafters by name."""

    target: Llama
    drafters: dict[str, Drafter]


def load_cast(*, mtp: Path, draft: Path, ngram: Path, device: torch.device) -> Cast:
    """Read the models of one seed from the folders of their models and the n-gram's file."""
    target = load_model(mtp, device)
    drafters = (
        DraftModel(model=load_model(draft, device)),
        NGramDrafter(ngram=NGram.load(ngram)),
        MTPDrafter(target=target, mtp=load_mtp(mtp, target)),
    )
    return Cast(target=target, drafters={drafter.name: drafter for drafter in drafters})
