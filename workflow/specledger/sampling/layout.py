"""A tree as arrays of indices, so that all of its nodes are judged by a fixed number of operations.

Shapes: G nodes, R rows (before the first node, and after each: R = G + 1), D depths.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import torch

from specledger.sampling.arrays import Array
from specledger.theory.trees import ROOT, Tree


@dataclass(frozen=True, kw_only=True)
class Rank:
    """The nodes that have the same number of siblings before them."""

    nodes: Array | slice
    held: Array | slice  # what each is held against: of first siblings a row of p, of others a place in the rank before


@dataclass(frozen=True, kw_only=True, eq=False)
class Layout:
    """A tree of at least one node, as NumPy's arrays or as PyTorch's on a device; made once for each.

    Places that follow one another are a slice, which costs no copy.
    """

    tree: Tree
    ranks: tuple[Rank, ...]
    order: Array | slice  # of each node its place where nodes are lined up rank by rank [G]
    above_GG: Array  # is the column's node the row's node or above it?
    earlier_GG: Array  # is the column's node an earlier sibling of the row's node?
    parents_G: Array | slice  # of each node the row of p that its parent leads to
    numbers_G: Array
    left_R: Array  # of each row of p, where what its rejected children have left lies: behind p, rank by rank
    depths_R: Array  # of each row, how many tokens lead to it
    paths_RD: Array  # of each row, the nodes that lead to it, and ROOT behind them
    examined_RG: Array  # where the last accepted node leads to this row, which nodes were examined
    levels: tuple[
        tuple[Array | slice, Array | slice], ...
    ]  # of each depth: nodes, and their parents' places in the last

    @staticmethod
    @lru_cache(maxsize=4096)
    def of(tree: Tree, device: torch.device | None = None) -> "Layout":
        """The layout of NumPy's arrays, or of PyTorch's on `device`."""

        def array(numbers, dtype=np.int64) -> Array:
            made = np.asarray(numbers, dtype=dtype)
            return made if device is None else torch.from_numpy(made).to(device)

        def places(numbers: Sequence[int]) -> Array | slice:
            first, count = numbers[0], len(numbers)
            return slice(first, first + count) if list(numbers) == [*range(first, first + count)] else array(numbers)

        nodes, (later, before) = range(len(tree.parents)), tree.earlier
        earlier, paths = set(zip(later, before, strict=True)), [tree.path(node) for node in (ROOT, *nodes)]
        lined_up, of_last, left, ranks = [], [], [*range(len(paths))], []
        for rank in range(max(tree.ranks) + 1):
            of_rank = [node for node in nodes if tree.ranks[node] == rank]
            parents, known = [tree.parents[node] for node in of_rank], len(paths) + len(lined_up)
            held = [of_last.index(tree.children[parent][rank - 1]) if rank else parent + 1 for parent in parents]
            ranks.append(Rank(nodes=places(of_rank), held=places(held)))
            for place, parent in enumerate(parents):
                left[parent + 1] = known + place
            lined_up, of_last = lined_up + of_rank, of_rank
        steps = [
            (level, [above.index(tree.parents[node]) for node in level])
            for above, level in zip(((ROOT,), *tree.levels), tree.levels, strict=False)
        ]
        examined = [
            [
                tree.parents[node] in (ROOT, *path) and not any((node, other) in earlier for other in path)
                for node in nodes
            ]
            for path in paths
        ]
        return Layout(
            tree=tree,
            ranks=tuple(ranks),
            order=places([lined_up.index(node) for node in nodes]),
            above_GG=array([[other in paths[node + 1] for other in nodes] for node in nodes], bool),
            earlier_GG=array([[(node, other) in earlier for other in nodes] for node in nodes], bool),
            parents_G=places([parent + 1 for parent in tree.parents]),
            numbers_G=array(nodes),
            left_R=array(left),
            depths_R=array([len(path) for path in paths]),
            paths_RD=array([[*path, *[ROOT] * (tree.depth - len(path))] for path in paths]),
            examined_RG=array(examined, bool),
            levels=tuple((places(level), places(above)) for level, above in steps),
        )
