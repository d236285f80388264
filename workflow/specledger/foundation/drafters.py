"""The drafters by name, as the `SPECS` of the modules in drafters/ declare them; nothing of those is imported.

The report and the Snakefile need what is said of each drafter, and no PyTorch: so each module is parsed, and its
`SPECS` alone, which are literals, are evaluated.
"""

import ast
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from specledger.foundation.errors import UserError

FOLDER = Path(__file__).resolve().parents[1] / "drafters"
ENGINES = ("recompute", "cached", "compiled")  # from slow to fast
EAGER = ("recompute", "cached")  # engines that every machine has


def fastest(engines: Iterable[str]) -> str:
    """Of these engines the fastest."""
    return max(engines, key=ENGINES.index)


TREE, TYPICAL = "_tree", "_typical"  # of a drafter that drafts trees, and of one that typical acceptance judges
NONE = "none"  # plain decoding


@dataclass(frozen=True, kw_only=True)
class Spec:
    """All that is said of one drafter outside of its module.

    Args:
        order: where it stands in tables, figures and legends, from small to large.
        title: its name by language; `tree_title` and `typical_title` those of its trees and of typical acceptance,
            None where it drafts no trees or where typical acceptance isn't offered.
        colour, dark: in figures, and on a dark page; `marker` is matplotlib's.
        group: "main" stands in the figures of all engines, "apart" in figures of its own.
        max_gamma: the longest proposal that it was made for; None is any.
        states: does it go on from the target's hidden states?
        prefix_alone: does its q at a prefix depend on the prefix alone, and does it propose as much as it is asked?
        chooses: does it choose how much it proposes?
        required: must the sweep name gammas of it, since other parts of the study use it?
        trained: is it trained on top of the target, by a job of its own?
        joint: trunk and head are trained together, so that it brings a target of its own.
        begins_with: the trained drafter whose weights its own training begins with.
        training_cost: seconds of a token of its training over those of the target with MTP.
        uses: what it is made of besides the target, for its size and training: a model, another drafter, or nothing.
        costs_of: the drafter whose timed proposals stand for its own, where it may stop anywhere.
        searches: it searches once, whatever it finds.
    """

    name: str
    order: int
    title: dict[str, str]
    colour: str
    dark: str
    marker: str
    group: str = "main"
    tree_title: dict[str, str] | None = None
    typical_title: dict[str, str] | None = None
    max_gamma: int | None = None
    states: bool = False
    prefix_alone: bool = False
    chooses: bool = False
    required: bool = False
    trained: bool = False
    joint: bool = False
    begins_with: str | None = None
    training_cost: float | None = None
    uses: str | None = None
    costs_of: str | None = None
    searches: bool = False

    @property
    def trees(self) -> bool:
        return self.tree_title is not None

    @property
    def typical(self) -> bool:
        return self.typical_title is not None

    @property
    def titles(self) -> dict[str, dict[str, str]]:
        """Its names by language, also those of its trees, by the names that they have in results."""
        return {self.name: self.title} | {
            self.name + ending: title
            for ending, title in ((TREE, self.tree_title), (TYPICAL, self.typical_title))
            if title is not None
        }


def specs_in(path: Path) -> tuple[Spec, ...]:
    """The `SPECS` of one module, () for one that declares none; UserError where they are not literals."""
    for node in ast.parse(path.read_text(encoding="utf-8"), filename=str(path)).body:
        if isinstance(node, ast.Assign) and any(isinstance(to, ast.Name) and to.id == "SPECS" for to in node.targets):
            try:
                return eval(compile(ast.Expression(node.value), str(path), "eval"), {"__builtins__": {}, "Spec": Spec})
            except (NameError, TypeError) as error:
                raise UserError(f"{path}: SPECS must be a tuple of Spec(...) of literals ({error})") from None
    return ()


def collect(folder: Path = FOLDER) -> dict[str, tuple[Spec, ...]]:
    """The specs of each module in the folder, by the module's name."""
    found = {path.stem: specs_in(path) for path in sorted(folder.glob("*.py"))}
    return {module: specs for module, specs in found.items() if specs}


MODULES = collect()
SPECS = {spec.name: spec for spec in sorted((s for specs in MODULES.values() for s in specs), key=lambda s: s.order)}


def _those(asked) -> tuple[str, ...]:
    return tuple(name for name, spec in SPECS.items() if asked(spec))


SPEAKING = _those(lambda spec: spec.prefix_alone)  # drafters that give q after any prefix
CHOOSERS = _those(lambda spec: spec.chooses)  # drafters that choose how much they propose, up to gamma
HEADS = _those(lambda spec: spec.trained)  # what is trained on top of the target
JOINT = _those(lambda spec: spec.joint)  # heads that train the target's trunk with them
DEPTHS = {name: spec.max_gamma for name, spec in SPECS.items() if spec.max_gamma is not None}  # longest proposals
IN_ORDER = (NONE, *(name for spec in SPECS.values() for name in spec.titles))  # of tables, figures and legends


def methods(config: dict) -> dict[str, list[int]]:
    """Each drafter of the sweep with its gammas: proposals of a chain, nodes of a tree. Empty lists are left out."""
    found = config["sweep"]["gammas"] | trees_of(config)
    return {name: gammas for name, gammas in found.items() if gammas}


def trees_of(config: dict) -> dict[str, list[int]]:
    """The numbers of nodes of each drafter's trees, by the name that they have in the ledger."""
    sizes = config["sweep"]["trees"].items()
    return {name if name.endswith(TYPICAL) else name + TREE: found for name, found in sizes if found}


def branched(name: str) -> bool:
    """Does this drafter propose trees?"""
    return name.endswith((TREE, TYPICAL))


def base_of(name: str) -> str:
    """The drafter whose trees `name` drafts, or the name itself."""
    return name.removesuffix(TREE).removesuffix(TYPICAL)


def heads_of(config: dict) -> list[str]:
    """The heads that the drafters of the sweep use, and that those begin with, in the order of `HEADS`."""
    asked = set(map(base_of, methods(config)))
    for name in reversed(HEADS):
        if name in asked and SPECS[name].begins_with is not None:
            asked.add(SPECS[name].begins_with)
    return [name for name in HEADS if name in asked]
