"""The prompts of the workflow's audit, the exact distributions after them, and the worker of a row.

Shapes: N prefixes, T tokens of each, V vocabulary.
"""

import pickle
from dataclasses import replace
from pathlib import Path

import numpy as np

from specledger.audit.exact import ExactTree
from specledger.audit.matrix import LONG
from specledger.foundation.records import written_whole


def prompt_ids(name: str, start: list[int], validation: np.ndarray) -> list[int]:
    """`start` itself, or as the prompt `long` the first `LONG` tokens of the text that no model was trained on."""
    return list(map(int, {"start": start, "long": validation[:LONG]}[name]))


def keep_tree(path: Path, tree: ExactTree) -> None:
    with written_whole(path) as temporary:
        temporary.write_bytes(pickle.dumps(tree))


def kept_tree(path: Path) -> ExactTree:
    """A tree that `keep_tree` wrote: a file of this workflow's own making, as every pickle must be."""
    return pickle.loads(path.read_bytes())


def without_draft(tree: ExactTree) -> ExactTree:
    """The same distribution for a row whose proposals don't come from the draft model: no score is tested."""
    levels = [replace(level, draft_N=None, score_N=None) for level in tree.levels]
    return replace(tree, levels=levels)
