"""The models of one seed that the experiments play with: the target and every drafter."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import torch

from specledger.decoding.drafter import Drafter, Parts
from specledger.drafters.mtp import load_mtp
from specledger.drafters.ngram import NGram
from specledger.drafters.registry import drafters_of, load_head
from specledger.foundation.drafters import CHOOSERS, TYPICAL, base_of
from specledger.foundation.errors import UserError
from specledger.foundation.records import read_rows
from specledger.models.llama import Llama, fuse
from specledger.models.storage import load_model, of_one_vocabulary
from specledger.theory.trees import Tree


@dataclass(frozen=True, kw_only=True)
class ModelBundle:
    """The target is the one that was trained with its MTP module; drafters by name, and their trees by number of nodes.

    Heads that were trained jointly with their trunk bring a target of their own.
    """

    target: Llama
    drafters: dict[str, Drafter]
    trees: dict[tuple[str, int], Drafter] = field(default_factory=dict)

    def __post_init__(self):
        for name, drafter in self.drafters.items():
            if drafter is not None and drafter.vocabulary != self.target.config.vocabulary:
                raise ValueError(
                    f"target and drafter {name} must be of one vocabulary, got {self.target.config.vocabulary} and "
                    f"{drafter.vocabulary} symbols"
                )

    @property
    def speaking(self) -> dict[str, Drafter]:
        """The drafters whose q at a prefix depends on the prefix alone, and that never stop early."""
        return {name: drafter for name, drafter in self.drafters.items() if drafter.prefix_alone}

    @property
    def lossless(self) -> dict[str, Drafter]:
        """The drafters that give q of every proposal that they would make: those that don't choose how much."""
        return {name: drafter for name, drafter in self.drafters.items() if name not in CHOOSERS}

    def drafter(self, name: str, gamma: int) -> Drafter:
        """The drafter of a method; gamma is the number of nodes of one that drafts trees."""
        return self.trees[name, gamma] if (name, gamma) in self.trees else self.drafters[name]

    def target_of(self, name: str) -> Llama:
        """What the drafter `name` drafts for."""
        base = self.drafters.get(base_of(name))
        return getattr(base, "target", None) or self.target

    def branches(self, name: str) -> bool:
        """Can this drafter draft trees?"""
        return self.drafters[name].branches


def load_bundle(
    *,
    mtp: Path,
    draft: Path,
    ngram: Path,
    device: torch.device,
    drafting: dict | None = None,
    heads: Sequence[Path] = (),
    shapes: Path | None = None,
    symbols: int | None = None,
) -> ModelBundle:
    """Read the models of one seed from the folders of their models and the n-gram's file.

    `drafting` is the configuration's, for drafters that choose how much they propose. `heads` are files
    <head>/<seed>/heads.safetensors; `shapes` is the file of trees that were chosen for this seed.
    `symbols` is how many the text has, where that is known. UserError names a file that is of another vocabulary.
    """
    target, drafting_model, counts = load_model(mtp, device), load_model(draft, device), NGram.load(ngram)
    symbols = target.config.vocabulary if symbols is None else symbols
    of_one_vocabulary(symbols, {mtp: target.config, draft: drafting_model.config, ngram: counts})
    trained = {path.parent.parent.name: load_head(path.parent, path.parent.parent.name, target) for path in heads}
    parts = Parts(
        target=target,
        mtp=load_mtp(mtp, target),
        draft=drafting_model,
        ngram=counts,
        drafting=drafting,
        heads=trained,
    )
    fuse(target, parts.mtp, parts.draft, *(one for head, own in trained.values() for one in (head, own)))
    found = ModelBundle(target=target, drafters=drafters_of(parts))
    return found if shapes is None else with_trees(found, shapes)


def with_trees(bundle: ModelBundle, shapes: Path) -> ModelBundle:
    """The bundle with the trees of a file: rows of drafter, nodes and parents."""
    trees = {}
    for number, row in enumerate(read_rows(shapes), start=1):
        try:
            tree, drafter = Tree.of(tuple(map(int, row["parents"].split()))), bundle.drafters[base_of(row["drafter"])]
            grown = drafter.in_tree(tree, typical=row["drafter"].endswith(TYPICAL))
            trees[row["drafter"], int(row["nodes"])] = grown
        except (KeyError, ValueError, AttributeError, TypeError) as error:
            why = f"no column or drafter {error}" if isinstance(error, KeyError) else error
            raise UserError(
                f"{shapes}: row {number}: no tree of a drafter ({why}); delete it and run snakemake again"
            ) from error
    return replace(bundle, trees=trees)
