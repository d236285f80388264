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
from specledger.sampling.distributions import Sampling
from specledger.sampling.siblings import draw_siblings, likeliest_siblings, rows_of
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
        uniforms = None if drafter.typical else generator.random(len(tree.parents)).tolist()
        rows = [self.proposer.begin(self.output if states else None, tokens)]  # q after the text and expanded nodes
        order = {ROOT: ROOT}  # of the nodes that were expanded
        drawn: dict[int, int] = {}  # the token of each node; one for which q has no symbol left falls away
        self.begun, level, forwards = True, [ROOT], 1
        while True:
            for node in level:
                children, q_V = tree.children[node], rows[order[node] + 1]
                found = draw(q_V, children, uniforms)
                drawn.update(zip(children, found, strict=False))
            level = [
                child
                for node in level
                for child in tree.children[node]
                if tree.children[child] and child in drawn and rows[order[node] + 1][drawn[child]] >= drafter.threshold
            ]
            if not level:
                break
            parents = [order[tree.parents[node]] for node in level]
            order |= {node: len(rows) - 1 + place for place, node in enumerate(level)}
            rows += list(self.proposer.expand(tuple(parents), tuple(drawn[node] for node in level)))
            forwards += 1
        nodes = sorted(drawn)
        draft_tokens, above = [drawn[node] for node in nodes], [order[tree.parents[node]] + 1 for node in nodes]
        tree = tree if len(nodes) == len(tree.parents) else tree.keeping(nodes)
        probs_NV = np.stack([rows[place] for place in above])
        if not drafter.typical:
            probs_NV = rows_of(tree, probs_NV, np.array(draft_tokens))
        return Proposal(
            tokens=draft_tokens,
            probs_GV=probs_NV,
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


def draw(q_V: np.ndarray, children: Sequence[int], uniforms: Sequence[float] | None) -> list[int]:
    """The tokens of a node's children: drawn from its q, or without uniforms the likeliest."""
    if uniforms is None:
        return likeliest_siblings(q_V, len(children))
    return draw_siblings(np.cumsum(q_V).tolist(), [uniforms[child] for child in children])
