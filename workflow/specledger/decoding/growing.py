"""Drafters that grow trees of proposals, level by level; a chain is a tree with one branch.

Shapes: N nodes, K siblings, V vocabulary.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from specledger.decoding.engines import Engine
from specledger.decoding.proposals import Output, Proposal, no_proposal
from specledger.decoding.speakers import Speaker
from specledger.models.llama import Llama
from specledger.sampling.distributions import Sampling
from specledger.sampling.siblings import draw_siblings, likeliest_siblings
from specledger.theory.trees import ROOT, Tree


@dataclass(frozen=True, kw_only=True)
class Growing:
    """A drafter that asks `kind`, made of `models`, for the q of each level of a tree, and draws its nodes from it.

    `tree` None drafts a chain of gamma. `typical` proposes the likeliest tokens, for typical acceptance, which is
    lossy.
    """

    name: str
    kind: Any
    models: tuple
    vocabulary: int
    max_gamma: int | None = None
    tree: Tree | None = None
    typical: bool = False

    @property
    def hears(self) -> bool:
        """Does it go on from the target's states? It drafts nothing in a text's first round then."""
        return self.kind.hears

    @property
    def target(self) -> Llama | None:
        """The target that it was trained for or with; None for one that drafts for any."""
        return self.models[0] if self.hears else None

    def open(self, engine: Engine, sampling: Sampling, capacity: int) -> "GrowingSession":
        room = capacity + (len(self.tree.parents) if self.tree is not None else 0)
        return GrowingSession(self, engine.open_speaker(self.kind, *self.models, sampling=sampling, capacity=room))


class GrowingSession:
    """One text's speaker, and the target's last output where it hears that."""

    def __init__(self, drafter: Growing, speaker: Speaker):
        self.drafter, self.speaker = drafter, speaker
        self.output: Output | None = None
        self.known = 0

    def propose(self, tokens: Sequence[int], gamma: int, generator: np.random.Generator) -> Proposal:
        drafter = self.drafter
        if gamma == 0 or (drafter.hears and self.output is None):
            return no_proposal(drafter.vocabulary)
        tree = Tree.chain(gamma) if drafter.tree is None else drafter.tree.down_to(gamma)
        behind = max(0, len(tokens) - 1 - self.known) if self.known else 0
        self.known = len(tokens)
        grown = _Grown(tree, None if drafter.typical else generator.random(len(tree.parents)))
        probs_KV = self.speaker.begin(self.output if drafter.hears else None, tokens)[None]
        nodes: list[int] = [ROOT]
        while True:
            for node, probs_V in zip(nodes, probs_KV, strict=True):
                grown.put_children(node, probs_V)
            nodes = grown.next_level(nodes)
            if not nodes:
                break
            parents, level = grown.fed(nodes)
            probs_KV = self.speaker.expand(parents, level)
        return grown.proposal(drafter, behind)

    def observe(self, output: Output, length: int) -> None:
        self.output = output
        if self.known:
            self.speaker.end(length)


class _Grown:
    """A tree whose nodes get their tokens; a node for which q has no symbol left falls away with all below it."""

    def __init__(self, tree: Tree, uniforms: np.ndarray | None):
        self.tree, self.uniforms = tree, uniforms
        self.tokens: dict[int, int] = {}
        self.rows: dict[int, np.ndarray] = {}  # what each token was drawn from
        self.order: dict[int, int] = {ROOT: ROOT}  # of those nodes
        self.forwards = 1

    def put_children(self, node: int, probs_V: np.ndarray) -> None:
        children = list(self.tree.children[node])
        if self.uniforms is None:
            drawn = likeliest_siblings(probs_V, len(children))
        else:
            drawn = draw_siblings(probs_V, self.uniforms[children])
        found = range(int(drawn.there.sum()))
        self.tokens.update((children[k], int(drawn.tokens[k])) for k in found)
        self.rows.update((children[k], drawn.rows[k]) for k in found)

    def next_level(self, nodes: list[int]) -> list[int]:
        """The children of these nodes that have children of their own."""
        below = (child for node in nodes for child in self.tree.children[node])
        return [child for child in below if child in self.tokens and self.tree.children[child]]

    def fed(self, nodes: list[int]) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """What the speaker hears of these nodes: the places of their parents, and their tokens."""
        parents = tuple(self.order[self.tree.parents[node]] for node in nodes)
        for node in nodes:
            self.order[node] = len(self.order) - 1
        self.forwards += 1
        return parents, tuple(self.tokens[node] for node in nodes)

    def proposal(self, drafter: Growing, behind: int) -> Proposal:
        nodes = sorted(self.tokens)
        tree = self.tree if len(nodes) == len(self.tree.parents) else self.tree.keeping(nodes)
        tokens = [self.tokens[node] for node in nodes]
        return Proposal(
            tokens=tokens,
            probs_GV=np.stack([self.rows[node] for node in nodes]),
            forwards=self.forwards,
            caught_up=behind,
            tree=None if tree.is_chain and not drafter.typical else tree,
            typical=drafter.typical,
        )
