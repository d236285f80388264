"""A drafter: proposes draft tokens in a tree and declares exactly the q that it drew them from.

A chain is a tree with one branch. A drafter is fixed; `open` starts its state for one text.
Shapes: N nodes, K siblings, G draft tokens, V vocabulary.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from specledger.decoding.proposals import LaidOut, Output, Proposal, no_proposal
from specledger.foundation.drafters import TREE, TYPICAL, Spec
from specledger.models.llama import Llama
from specledger.sampling.distributions import Sampling, draw
from specledger.sampling.siblings import draw_siblings, likeliest_siblings
from specledger.theory.trees import ROOT, Tree


@dataclass(frozen=True, kw_only=True)
class Parts:
    """What the drafters of one seed are made of; `heads` are the trained ones, each with the target it drafts for."""

    target: Llama
    mtp: Any = None
    draft: Llama | None = None
    ngram: Any = None
    drafting: dict | None = None  # the configuration's
    heads: dict[str, tuple[Any, Llama]] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Drafter:
    """Asks a proposer for the q of each level of a tree and draws its nodes from it.

    Args:
        proposer: the class of its proposers; `parts` is what they are made of.
        max_gamma: the longest proposal that it was made for, None for any.
        threshold: no node follows one that q gave less than this. What is proposed before decides how much is
            proposed, never a token's own fate, so this stays lossless.
        branches: can it draft trees? `tree` is the tree that it drafts, None a chain of gamma.
        typical: it proposes the likeliest tokens, for typical acceptance, which is lossy.
        prefix_alone: does its q at a prefix depend on the prefix alone?
    """

    name: str
    proposer: Any
    parts: tuple
    vocabulary: int
    max_gamma: int | None = None
    threshold: float = 0.0
    branches: bool = True
    prefix_alone: bool = False
    tree: Tree | None = None
    typical: bool = False

    @classmethod
    def of(cls, spec: Spec, proposer: Any, *parts: Any, vocabulary: int, threshold: float = 0.0) -> "Drafter":
        """The drafter that a spec declares."""
        return cls(
            name=spec.name,
            proposer=proposer,
            parts=parts,
            vocabulary=vocabulary,
            max_gamma=spec.max_gamma,
            threshold=threshold,
            branches=spec.trees,
            prefix_alone=spec.prefix_alone,
        )

    @property
    def target(self) -> Llama | None:
        """The target that it was trained for or with; None for one that drafts for any."""
        return self.parts[0] if self.proposer.states else None

    def in_tree(self, tree: Tree, *, typical: bool = False) -> "Drafter":
        """The same drafter with its draft tokens in this tree.

        ValueError for a tree deeper than the drafter was made for, and for one that drafts no trees.
        """
        if not self.branches:
            raise ValueError(f"{self.name} drafts no trees")
        if self.max_gamma is not None and tree.depth > self.max_gamma:
            raise ValueError(f"tree of {self.name} must be at most {self.max_gamma} deep, got {tree.depth}")
        name = self.name + (TYPICAL if typical else TREE)
        return replace(self, name=name, tree=tree, max_gamma=None, typical=typical)

    def open(self, engine: Any, sampling: Sampling, capacity: int) -> Any:
        """Its state for one text of at most `capacity` tokens, without those that it proposes in a tree."""
        if engine.static and self.tree is None and self.proposer.static is not None:
            return self.proposer.static(engine, self, sampling)
        room = capacity + (len(self.tree.parents) if self.tree is not None else 0)
        return DrafterSession(self, engine.open_proposer(self.proposer, *self.parts, sampling=sampling, capacity=room))


class DrafterSession:
    """One text's proposer, and the target's last output where it goes on from that."""

    def __init__(self, drafter: Drafter, proposer: Any):
        self.drafter, self.proposer = drafter, proposer
        self.output: Output | None = None
        self.begun = False

    def propose(self, tokens: Sequence[int], gamma: int, generator: np.random.Generator) -> Proposal | LaidOut:
        """At most `gamma` draft tokens to follow `tokens`, or a tree at most `gamma` deep."""
        drafter, states = self.drafter, self.drafter.proposer.states
        if gamma == 0 or (states and self.output is None):
            return no_proposal(drafter.vocabulary)
        if drafter.proposer.certain:
            return self._certain(self.proposer.follow(tokens)[:gamma])
        tree = Tree.chain(gamma) if drafter.tree is None else drafter.tree.down_to(gamma)
        uniforms = None if drafter.typical else generator.random(len(tree.parents))
        q_KV = self.proposer.begin(self.output if states else None, tokens)[None]
        drawn: dict[int, int] = {}  # the token of each node; one for which q has no symbol left falls away
        rows: dict[int, np.ndarray] = {}  # and what it was drawn from
        order = {ROOT: ROOT}  # of the nodes that were expanded
        self.begun, level, forwards = True, [ROOT], 1
        while True:
            families = [tree.children[node] for node in level]
            draw_level(q_KV, families, uniforms, drawn, rows)
            below = [child for family in families for child in family if tree.children[child] and child in drawn]
            level = [child for child in below if rows[child][drawn[child]] >= drafter.threshold]
            if not level:
                break
            parents, fed = tuple(order[tree.parents[node]] for node in level), tuple(drawn[node] for node in level)
            known = len(order) - 1
            order |= {node: known + place for place, node in enumerate(level)}
            q_KV = self.proposer.expand(parents, fed)
            forwards += 1
        nodes = sorted(drawn)
        tree = tree if len(nodes) == len(tree.parents) else tree.keeping(nodes)
        return Proposal(
            tokens=[drawn[node] for node in nodes],
            probs_GV=np.stack([rows[node] for node in nodes]),
            forwards=forwards,
            caught_up=self.proposer.caught_up,
            tree=None if tree.is_chain and not drafter.typical else tree,
            typical=drafter.typical,
        )

    def observe(self, output: Output, length: int) -> None:
        """Take the target's forward; only the first `length` tokens of the text are final."""
        self.output = output
        if self.begun:
            self.proposer.end(length)

    def _certain(self, found: list[int]) -> Proposal:
        """q is 1 at each token, so that it is accepted with p and a rejection draws from the rest of p."""
        probs_GV = np.zeros((len(found), self.drafter.vocabulary))
        probs_GV[np.arange(len(found)), found] = 1.0
        return Proposal(tokens=found, probs_GV=probs_GV, forwards=0)


def draw_level(
    q_KV: np.ndarray,
    families: Sequence[Sequence[int]],
    uniforms: np.ndarray | None,
    drawn: dict[int, int],
    rows: dict[int, np.ndarray],
) -> None:
    """Draw the children of K nodes from the q after each, without uniforms the likeliest, into `drawn` and `rows`."""
    width = max(map(len, families))
    if uniforms is None:
        tokens_KS, rows_KSV, there_KS = likeliest_siblings(q_KV, min(width, q_KV.shape[-1]))
    elif width == 1:  # `draw_siblings` would draw the same
        tokens_KS, rows_KSV = draw(q_KV, uniforms[[child for (child,) in families]])[:, None], q_KV[:, None]
        there_KS = np.ones(tokens_KS.shape, dtype=bool)
    else:  # of smaller families the first child's uniform fills what is not looked at
        padded = [[*family, *family[:1] * (width - len(family))] for family in families]
        tokens_KS, rows_KSV, there_KS = draw_siblings(q_KV, uniforms[padded])
    for k, (family, tokens, there) in enumerate(zip(families, tokens_KS.tolist(), there_KS.tolist(), strict=True)):
        for place in range(min(len(family), sum(there))):
            drawn[family[place]], rows[family[place]] = tokens[place], rows_KSV[k, place]
