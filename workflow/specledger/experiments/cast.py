"""The models of one seed that the experiments play with: the target and every drafter."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import torch

from specledger.decoding.counted import LookupDrafter, NGramDrafter, NGramSpeaker
from specledger.decoding.drafters import Drafter, DraftModel, MTPDrafter
from specledger.decoding.growing import Growing
from specledger.decoding.speakers import ChainSpeaker, FeatureSpeaker, MedusaSpeaker, ModelSpeaker, ParallelSpeaker
from specledger.foundation.drafters import TREE, TYPICAL, base_of
from specledger.foundation.records import read_rows
from specledger.models.features import FeatureDrafter
from specledger.models.heads import load_head
from specledger.models.llama import Llama
from specledger.models.medusa import MedusaHeads
from specledger.models.mtp import MTPChain, MTPModule
from specledger.models.ngram import NGram
from specledger.models.parallel import ParallelHeads
from specledger.models.storage import load_model, load_mtp
from specledger.theory.trees import Tree

NONE = "none"  # plain decoding


@dataclass(frozen=True, kw_only=True)
class Cast:
    """The target is the one that was trained with its MTP module; drafters by name, and their trees by number of nodes.

    Heads that were trained jointly with their trunk bring a target of their own.
    """

    target: Llama
    drafters: dict[str, Drafter]
    trees: dict[tuple[str, int], Growing] = field(default_factory=dict)

    @property
    def speaking(self) -> dict[str, Drafter]:
        """The drafters whose proposals at a prefix depend on the prefix alone, and never stop early."""
        kinds = (DraftModel, NGramDrafter, MTPDrafter)
        return {
            name: drafter
            for name, drafter in self.drafters.items()
            if isinstance(drafter, kinds) and getattr(drafter, "threshold", None) is None
        }

    @property
    def lossless(self) -> dict[str, Drafter]:
        """The drafters that say q of every proposal that they would make: those above, and all heads."""
        heads = {name: drafter for name, drafter in self.drafters.items() if isinstance(drafter, Growing)}
        return self.speaking | heads

    def drafter(self, name: str, gamma: int) -> Drafter:
        """The drafter of a method; gamma is the number of nodes of one that drafts trees."""
        return self.trees[name, gamma] if (name, gamma) in self.trees else self.drafters[name]

    def target_of(self, name: str) -> Llama:
        """What the drafter `name` drafts for."""
        base = self.drafters.get(base_of(name))
        return getattr(base, "target", None) or self.target

    def branches(self, name: str) -> bool:
        """Can this drafter draft trees? Modules of several depths draft a chain."""
        drafter = self.drafters[name]
        return name in self.lossless and not (isinstance(drafter, Growing) and drafter.kind is ChainSpeaker)


def chained(target: Llama, mtp: MTPModule) -> Growing:
    """The MTP module of depth 1 fed with its own states, beyond the depth that it was trained for."""
    return Growing(
        name="mtp_chained",
        kind=FeatureSpeaker,
        models=(target, mtp),
        vocabulary=target.config.vocabulary,
    )


def growing_heads(name: str, target: Llama, head: torch.nn.Module) -> Growing:
    """The drafter of trained heads; `target` is what they were trained for or with."""
    match head:
        case FeatureDrafter():
            kind, limit = FeatureSpeaker, None
        case MTPChain():
            kind, limit = ChainSpeaker, len(head.depths)
        case MedusaHeads():
            kind, limit = MedusaSpeaker, len(head.outputs)
        case ParallelHeads():
            kind, limit = ParallelSpeaker, len(head.heads)
        case _:
            raise ValueError(f"head {name} must be one of the known kinds, got {type(head).__name__}")
    return Growing(
        name=name,
        kind=kind,
        models=(target, head),
        vocabulary=target.config.vocabulary,
        max_gamma=limit,
    )


def tree_drafter(drafter: Drafter, tree: Tree, *, typical: bool = False) -> Growing:
    """The same drafter with its proposals in this tree.

    ValueError for a tree deeper than the drafter was made for, and for one that drafts no trees.
    """
    if drafter.max_gamma is not None and tree.depth > drafter.max_gamma:
        raise ValueError(f"tree of {drafter.name} must be at most {drafter.max_gamma} deep, got {tree.depth}")
    name = drafter.name + (TYPICAL if typical else TREE)
    shape = {"name": name, "tree": tree, "max_gamma": None, "typical": typical}
    match drafter:
        case Growing() if drafter.kind is not ChainSpeaker:
            return replace(drafter, **shape)
        case DraftModel():
            return Growing(
                kind=ModelSpeaker,
                models=(drafter.model,),
                vocabulary=drafter.model.config.vocabulary,
                **shape,
            )
        case NGramDrafter():
            return Growing(kind=NGramSpeaker, models=(drafter,), vocabulary=drafter.ngram.vocabulary, **shape)
        case MTPDrafter():
            return replace(chained(drafter.target, drafter.mtp), **shape)
    raise ValueError(f"{drafter.name} drafts no trees")


def load_cast(
    *,
    mtp: Path,
    draft: Path,
    ngram: Path,
    device: torch.device,
    drafting: dict | None = None,
    heads: Sequence[Path] = (),
    shapes: Path | None = None,
) -> Cast:
    """Read the models of one seed from the folders of their models and the n-gram's file.

    `drafting`, the configuration's, adds the draft model that stops early and prompt lookup. `heads` are files
    <head>/<seed>/heads.safetensors; `shapes` is the file of trees that were chosen for this seed.
    """
    target, model = load_model(mtp, device), load_model(draft, device)
    module = load_mtp(mtp, target)
    drafters: list[Drafter] = [
        DraftModel(model=model),
        NGramDrafter(ngram=NGram.load(ngram)),
        MTPDrafter(target=target, mtp=module),
        chained(target, module),
    ]
    if drafting is not None:
        longest, shortest = drafting["lookup_longest"], drafting["lookup_shortest"]
        drafters += [
            DraftModel(model=model, name="draft_dynamic", threshold=drafting["threshold"]),
            LookupDrafter(vocabulary=target.config.vocabulary, longest=longest, shortest=shortest),
        ]
    for path in heads:
        name = path.parent.parent.name
        head, own = load_head(path.parent, name, target)
        drafters.append(growing_heads(name, own, head))
    found = Cast(target=target, drafters={drafter.name: drafter for drafter in drafters})
    return found if shapes is None else with_trees(found, shapes)


def with_trees(cast: Cast, shapes: Path) -> Cast:
    """The cast with the trees of a file: rows of drafter, nodes and parents."""
    trees = {}
    for row in read_rows(shapes):
        tree = Tree.of(tuple(map(int, row["parents"].split())))
        drafter = cast.drafters[base_of(row["drafter"])]
        grown = tree_drafter(drafter, tree, typical=row["drafter"].endswith(TYPICAL))
        trees[row["drafter"], int(row["nodes"])] = grown
    return replace(cast, trees=trees)
