"""A drafter: proposes draft tokens in a tree and declares exactly the q that it drew them from.

A chain is a tree with one branch. A drafter is fixed; `open` starts its state for one text.
Shapes: N nodes, K siblings, G draft tokens, V vocabulary.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from specledger.decoding.proposals import Output, Proposal, no_proposal
from specledger.decoding.rules import Rules
from specledger.foundation.drafters import TREE, TYPICAL, Spec
from specledger.models.llama import Llama
from specledger.sampling.distributions import Sampling
from specledger.sampling.siblings import likeliest_siblings
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
        room = capacity + (len(self.tree.parents) if self.tree is not None else 0)
        proposer = engine.open_proposer(self.proposer, *self.parts, sampling=sampling, capacity=room)
        return DrafterSession(self, proposer, engine.rules)


class DrafterSession:
    """One text's proposer, and the target's last output where it goes on from that."""

    def __init__(self, drafter: Drafter, proposer: Any, rules: Rules):
        self.drafter, self.proposer, self.rules = drafter, proposer, rules
        self.output: Output | None = None
        self.begun = False

    def propose(self, tokens: Sequence[int], gamma: int, generator: np.random.Generator) -> Proposal:
        """At most `gamma` draft tokens to follow `tokens`, or a tree at most `gamma` deep."""
        drafter, states = self.drafter, self.drafter.proposer.states
        if gamma == 0 or (states and self.output is None):
            return no_proposal(drafter.vocabulary)
        if drafter.proposer.certain:
            return self._certain(self.proposer.follow(tokens)[:gamma])
        tree = Tree.chain(gamma) if drafter.tree is None else drafter.tree.down_to(gamma)
        self.begun, proposer = True, self.proposer
        uniforms_N = None if drafter.typical else generator.random(len(tree.parents))
        if drafter.tree is None and (found := proposer.chain(tokens, uniforms_N, drafter.threshold)):
            drawn, probs_GV = found
            return Proposal(tokens=drawn, probs_GV=probs_GV, forwards=len(drawn), caught_up=proposer.caught_up)
        return self._grown(tree, uniforms_N, proposer.begin(self.output if states else None, tokens))

    def _grown(self, tree: Tree, uniforms_N: np.ndarray | None, probs_V: np.ndarray) -> Proposal:
        """The tree's tokens, level by level, from q after the text [V]; a node without a symbol left falls away."""
        drafter, children = self.drafter, tree.children
        drawn: dict[int, int] = {}  # the token of each node
        declared: dict[int, np.ndarray] = {}  # the row that it was drawn from
        order = {ROOT: ROOT}  # of the nodes that were expanded
        level, rows, forwards = [ROOT], [probs_V], 1
        while True:
            below = []  # nodes with children of their own
            for node, row_V in zip(level, rows, strict=True):
                found = self._children(row_V, children[node], uniforms_N)
                for child, token, declared_V in zip(children[node], *found, strict=False):
                    drawn[child], declared[child] = token, declared_V
                    if children[child] and row_V[token] >= drafter.threshold:
                        below.append(child)
            if not below:
                break
            parents = tuple(order[tree.parents[node]] for node in below)
            for node in below:
                order[node] = len(order) - 1
            level, forwards = below, forwards + 1
            rows = self.proposer.expand(parents, tuple(drawn[node] for node in below))
        if len(drawn) < len(tree.parents):
            tree = tree.keeping(sorted(drawn))
        nodes = sorted(drawn)
        return Proposal(
            tokens=[drawn[node] for node in nodes],
            probs_GV=np.array([declared[node] for node in nodes]),
            forwards=forwards,
            caught_up=self.proposer.caught_up,
            tree=None if tree.is_chain and not drafter.typical else tree,
            typical=drafter.typical,
        )

    def _children(
        self, probs_V: np.ndarray, nodes: Sequence[int], uniforms_N: np.ndarray | None
    ) -> tuple[Sequence[int], Sequence[np.ndarray]]:
        """Tokens of a node's children and the row that each is drawn from; without uniforms the likeliest."""
        if uniforms_N is None:
            found = likeliest_siblings(probs_V, len(nodes))
            return found.tokens[found.there].tolist(), [probs_V] * len(nodes)
        if len(nodes) == 1:
            return (self.rules.draw(probs_V, uniforms_N[nodes[0]]),), (probs_V,)
        return self.rules.siblings(probs_V, uniforms_N[list(nodes)])

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
