"""Trees of proposals: their shape, and the shape that yields most for a number of nodes.

A node is a proposed token; its parent is another node, or the root -1, which stands for the text so far. Nodes
are numbered level by level, siblings in the order in which they are drawn and judged. A chain has one branch.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache

ROOT = -1


@dataclass(frozen=True)
class Tree:
    """The parent of each node; `Tree.of` returns the same object for the same parents.

    Raises ValueError unless every parent comes before its children and no level after a deeper one.
    """

    parents: tuple[int, ...]

    def __post_init__(self):
        for node, parent in enumerate(self.parents):
            if not ROOT <= parent < node:
                raise ValueError(f"parent of node {node} must be from {ROOT} to {node - 1}, got {parent}")
        if list(self.depths) != sorted(self.depths):
            raise ValueError(f"nodes must be numbered level by level, got depths {self.depths}")

    @staticmethod
    @lru_cache(maxsize=4096)
    def of(parents: tuple[int, ...]) -> "Tree":
        return Tree(parents)

    @staticmethod
    def chain(gamma: int) -> "Tree":
        """`gamma` proposals, one after another."""
        return Tree.of(tuple(range(ROOT, gamma - 1)))

    @cached_property
    def depths(self) -> tuple[int, ...]:
        """Of each node: 1 for a child of the root."""
        found: list[int] = []
        for parent in self.parents:
            found.append(1 if parent == ROOT else found[parent] + 1)
        return tuple(found)

    @cached_property
    def depth(self) -> int:
        return max(self.depths, default=0)

    @cached_property
    def children(self) -> dict[int, tuple[int, ...]]:
        """The children of the root and of each node, in order; nodes without any are there too."""
        found: dict[int, list[int]] = {node: [] for node in range(ROOT, len(self.parents))}
        for node, parent in enumerate(self.parents):
            found[parent].append(node)
        return {node: tuple(nodes) for node, nodes in found.items()}

    @cached_property
    def ranks(self) -> tuple[int, ...]:
        """Of each node: how many siblings come before it."""
        return tuple(self.children[parent].index(node) for node, parent in enumerate(self.parents))

    @cached_property
    def earlier(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Every pair of a node and a sibling before it, as two rows of numbers."""
        pairs = [
            (node, sibling)
            for node, parent in enumerate(self.parents)
            for sibling in self.children[parent][: self.ranks[node]]
        ]
        return tuple(node for node, _ in pairs), tuple(sibling for _, sibling in pairs)

    @cached_property
    def is_chain(self) -> bool:
        return self.parents == tuple(range(ROOT, len(self.parents) - 1))

    @cached_property
    def levels(self) -> tuple[tuple[int, ...], ...]:
        """The nodes of each depth, from 1 on."""
        return tuple(
            tuple(node for node, at in enumerate(self.depths) if at == depth) for depth in range(1, self.depth + 1)
        )

    def path(self, node: int) -> tuple[int, ...]:
        """The nodes from the root's child down to `node`; empty for the root."""
        found: list[int] = []
        while node != ROOT:
            found.append(node)
            node = self.parents[node]
        return tuple(reversed(found))

    @lru_cache(maxsize=65536)  # noqa: B019 (trees of the same parents are one object)
    def examined(self, last: int) -> tuple[bool, ...]:
        """Of each node: was it judged, where `last` is the last one that was accepted? Siblings are judged in order."""
        path = self.path(last)
        taken = {self.parents[node]: self.ranks[node] for node in path}
        return tuple(
            parent in (ROOT, *path) and rank <= taken.get(parent, rank)
            for parent, rank in zip(self.parents, self.ranks, strict=True)
        )

    def down_to(self, depth: int) -> "Tree":
        """The tree without what lies deeper; its nodes keep their numbers."""
        if depth >= self.depth:
            return self
        return Tree.of(self.parents[: sum(at <= depth for at in self.depths)])

    def keeping(self, nodes: Sequence[int]) -> "Tree":
        """The tree of these nodes alone, in order, each with its parent among them."""
        number = {ROOT: ROOT} | {node: place for place, node in enumerate(nodes)}
        return Tree.of(tuple(number[self.parents[node]] for node in nodes))


def expected_accepted(tree: Tree, acceptance: Sequence[Sequence[float]]) -> float:
    """Expected accepted nodes of a round: the sum over nodes of the probability that each is accepted.

    Args:
        acceptance: [depth - 1][rank]: how likely a node is accepted, given that its parent was and that
            its earlier siblings were rejected. The same at every node of that depth and rank
            (Chen et al. 2024, Sequoia, arXiv 2402.12374, definition 3.1).
    """
    reached: dict[int, float] = {ROOT: 1.0}
    left: dict[int, float] = {}
    for node, parent in enumerate(tree.parents):
        rest = left.get(parent, reached[parent])
        rates = acceptance[tree.depths[node] - 1]
        rank = tree.ranks[node]
        rate = rates[rank] if rank < len(rates) else 0.0
        reached[node], left[parent] = rest * rate, rest * (1 - rate)
    return sum(reached.values()) - 1.0


def best_tree(nodes: int, acceptance: Sequence[Sequence[float]]) -> tuple[Tree, float]:
    """The tree of at most `nodes` nodes that yields most accepted ones, and how many it yields.

    A dynamic programme over depth, rank and number of nodes (Sequoia, section 3.1, here with an acceptance by
    depth too). Ties go to fewer nodes.
    """
    if nodes < 1:
        raise ValueError(f"nodes must be at least 1, got {nodes}")

    @cache
    def best(depth: int, rank: int, count: int) -> tuple[float, int]:
        """Yield of `count` nodes among the children of rank `rank` on at `depth`, and how many the first gets.

        Given that the parent was accepted and the earlier children rejected.
        """
        if count == 0 or depth >= len(acceptance) or rank >= len(acceptance[depth]):
            return 0.0, 0
        rate = acceptance[depth][rank]
        found = (0.0, 0)
        for own in range(1, count + 1):
            below = best(depth + 1, 0, own - 1)[0]
            gain = rate * (1.0 + below) + (1.0 - rate) * best(depth, rank + 1, count - own)[0]
            if gain > found[0] + 1e-15:
                found = (gain, own)
        return found

    return _built(best, nodes), best(0, 0, nodes)[0]


def _built(best, nodes: int) -> Tree:
    """The tree that the programme's choices describe, numbered level by level."""
    parents: list[int] = []
    waiting = [(ROOT, 0, nodes)]  # a parent, the depth of its children, and how many nodes they share
    while waiting:
        later = []
        for parent, depth, count in waiting:
            rank = 0
            while (own := best(depth, rank, count)[1]) > 0:
                parents.append(parent)
                later.append((len(parents) - 1, depth + 1, own - 1))
                count, rank = count - own, rank + 1
        waiting = later
    return Tree.of(tuple(parents))
