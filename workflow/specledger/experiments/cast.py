"""The models of one seed that the experiments play with: the target and every drafter."""

from dataclasses import dataclass
from pathlib import Path

import torch

from specledger.decoding.counted import LookupDrafter, NGramDrafter
from specledger.decoding.drafters import Drafter, DraftModel, MTPDrafter
from specledger.models.llama import Llama
from specledger.models.ngram import NGram
from specledger.models.storage import load_model, load_mtp


@dataclass(frozen=True, kw_only=True)
class Cast:
    """The target is the one that was trained with its MTP module; drafters by name."""

    target: Llama
    drafters: dict[str, Drafter]

    @property
    def speaking(self) -> dict[str, Drafter]:
        """The drafters whose proposals at a prefix depend on the prefix alone, and never stop early."""
        kinds = (DraftModel, NGramDrafter, MTPDrafter)
        return {
            name: drafter
            for name, drafter in self.drafters.items()
            if isinstance(drafter, kinds) and getattr(drafter, "threshold", None) is None
        }


def load_cast(*, mtp: Path, draft: Path, ngram: Path, device: torch.device, drafting: dict | None = None) -> Cast:
    """Read the models of one seed from the folders of their models and the n-gram's file.

    `drafting`, the configuration's, adds the draft model that stops early and prompt lookup.
    """
    target, model = load_model(mtp, device), load_model(draft, device)
    drafters: list[Drafter] = [
        DraftModel(model=model),
        NGramDrafter(ngram=NGram.load(ngram)),
        MTPDrafter(target=target, mtp=load_mtp(mtp, target)),
    ]
    if drafting is not None:
        longest, shortest = drafting["lookup_longest"], drafting["lookup_shortest"]
        drafters += [
            DraftModel(model=model, name="draft_dynamic", threshold=drafting["threshold"]),
            LookupDrafter(vocabulary=target.config.vocabulary, longest=longest, shortest=shortest),
        ]
    return Cast(target=target, drafters={drafter.name: drafter for drafter in drafters})
