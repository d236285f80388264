"""The shape of each drafter's trees: how often siblings of each depth and rank are accepted, and what is best then.

Shapes: N nodes.
"""

from collections.abc import Callable, Iterator

import numpy as np

from specledger.decoding.engines import Engine
from specledger.decoding.loops import speculative
from specledger.experiments.bundle import ModelBundle
from specledger.foundation.drafters import base_of
from specledger.sampling.distributions import Sampling
from specledger.sampling.uniforms import Uniforms
from specledger.theory.trees import ROOT, Tree, best_tree

BRANCHING = (10, 4, 2, 1, 1, 1)  # children of a node by depth, in the trees that siblings are tried in
DEEPEST = 10  # of the trees that are chosen, where the drafter knows no limit
PRIOR = 4.0  # examined siblings' worth of weight on the same rank at all depths


def wide_tree(limit: int, vocabulary: int) -> Tree:
    """The tree that siblings are tried in, at most `limit` deep."""
    parents: list[int] = []
    level = [ROOT]
    for children in BRANCHING[:limit]:
        above, level = level, []
        for parent in above:
            for _ in range(min(children, vocabulary)):
                parents.append(parent)
                level.append(len(parents) - 1)
    return Tree.of(tuple(parents))


def rank_rows(
    bundle: ModelBundle,
    names: list[str],
    prompt: list[int],
    engine: Engine,
    *,
    texts: int,
    tokens: int,
    sampling: Sampling,
    seed: int,
    after_each: Callable[[], None],
) -> Iterator[dict]:
    """One row per drafter, depth and rank: siblings that were judged, and the mean of their acceptance probabilities.

    A sibling is judged where its parent was accepted and those before it were rejected.
    """
    for name in names:
        drafter = bundle.drafters[name]
        tree = wide_tree(drafter.max_gamma or len(BRANCHING), bundle.target.config.vocabulary)
        grown, target = drafter.in_tree(tree), bundle.target_of(name)
        examined, chances = np.zeros(len(tree.parents)), np.zeros(len(tree.parents))
        for number in range(1, texts + 1):
            text = speculative(
                target, grown, prompt,
                gamma=len(tree.parents), count=tokens, engine=engine, sampling=sampling,
                uniforms=Uniforms("shapes", seed, name, number),
            )  # fmt: skip
            for done in text.rounds:
                if done.drafted == len(tree.parents):  # a whole tree, whose nodes have kept their numbers
                    probs_N = np.array(done.accept_probs)
                    examined += np.isfinite(probs_N)
                    chances += np.nan_to_num(probs_N)
        for depth in range(1, tree.depth + 1):
            for rank in range(max(tree.ranks[node] for node in tree.levels[depth - 1]) + 1):
                nodes = [node for node in tree.levels[depth - 1] if tree.ranks[node] == rank]
                count, accepted = examined[nodes].sum(), chances[nodes].sum()
                yield {
                    "seed": seed,
                    "drafter": name,
                    "depth": depth,
                    "rank": rank,
                    "examined": int(count),
                    "acceptance": accepted / count if count else None,
                }
        after_each()


def rates_of(rows: list[dict], deepest: int) -> list[list[float]]:
    """[depth - 1][rank] of one drafter's rows; where observations are few, the same rank at all depths has a say."""
    pooled: dict[int, tuple[float, float]] = {}
    for row in rows:
        count, accepted = pooled.get(row["rank"], (0.0, 0.0))
        found = row["examined"] * (row["acceptance"] or 0.0)
        pooled[row["rank"]] = (count + row["examined"], accepted + found)
    rates: list[list[float]] = []
    for depth in range(1, deepest + 1):
        here = {row["rank"]: row for row in rows if row["depth"] == depth}
        level = []
        for rank, (count, accepted) in sorted(pooled.items()):
            row = here.get(rank, {"examined": 0, "acceptance": 0.0})
            prior = PRIOR * accepted / count if count else 0.0
            weight = row["examined"] + (PRIOR if count else 0.0)
            level.append((row["examined"] * (row["acceptance"] or 0.0) + prior) / weight if weight else 0.0)
        rates.append(level)
    return rates


def shape_rows(bundle: ModelBundle, ranks: list[dict], sizes: dict[str, list[int]], *, seed: int) -> list[dict]:
    """One row per drafter of trees and number of nodes: the best tree's parents, and what it should yield.

    Trees that typical acceptance judges have the shape of the lossless ones.
    """
    rows = []
    for name, counts in sizes.items():
        base = base_of(name)
        rates = rates_of([row for row in ranks if row["drafter"] == base], bundle.drafters[base].max_gamma or DEEPEST)
        for count in counts:
            tree, accepted = best_tree(count, rates)
            rows.append(
                {
                    "seed": seed,
                    "drafter": name,
                    "nodes": count,
                    "used": len(tree.parents),
                    "depth": tree.depth,
                    "parents": " ".join(map(str, tree.parents)),
                    "expected_tokens": 1.0 + accepted,
                }
            )
    return rows
