"""What typical acceptance costs: how far the next token's law lies from the target's, at real positions.

Shapes: C contexts of T tokens each, N nodes, V vocabulary.
"""

from collections.abc import Callable, Iterator

import numpy as np
import torch

from specledger.decoding.drafter import Drafter
from specledger.decoding.engines import Engine
from specledger.experiments.bundle import ModelBundle
from specledger.models.arrays import to_host
from specledger.sampling.distributions import Sampling, distribution
from specledger.sampling.typical import typical


@torch.inference_mode()
def accepted_path(
    drafter: Drafter, tokens: list[int], engine: Engine, sampling: Sampling
) -> tuple[list[int], np.ndarray]:
    """The proposals that typical acceptance takes after `tokens`, and p [V] there; the same whatever is drawn."""
    capacity = len(tokens) + 1
    target = engine.open(drafter.target, capacity + len(drafter.tree.parents))
    session = drafter.open(engine, sampling, capacity)
    session.observe(target.forward(tokens[:-1], rows=1), len(tokens) - 1)
    proposal = session.propose(tokens, drafter.tree.depth, np.random.default_rng(0))
    logits_NV = to_host(target.branch(tokens, proposal.tokens, proposal.tree).logits_TV)
    probs_NV = distribution(logits_NV, sampling)
    found = typical(probs_NV[None], np.array([proposal.tokens]), np.zeros(1), proposal.tree)
    path = proposal.tree.path(int(found.last_N[0]))
    return [proposal.tokens[node] for node in path], probs_NV[0]


def lossy_rows(
    bundle: ModelBundle,
    methods: dict[str, list[int]],
    contexts_CT: np.ndarray,
    positions: list[int],
    engine: Engine,
    *,
    sampling: Sampling,
    seed: int,
    after_each: Callable[[], None],
) -> Iterator[dict]:
    """One row per drafter, number of nodes and context: the TV of the first token that the round yields from p.

    An accepted proposal comes out with probability 1 where p gave it p(x): the distance is 1 - p(x). Where none is
    accepted the token is drawn from p, and the distance is 0. It is exact, and nothing is drawn.
    """
    for name, sizes in methods.items():
        for nodes in sizes:
            for position, context_T in zip(positions, contexts_CT, strict=True):
                path, p_V = accepted_path(bundle.trees[name, nodes], context_T.tolist(), engine, sampling)
                yield {
                    "seed": seed,
                    "drafter": name,
                    "gamma": nodes,
                    "position": position,
                    "accept_len": len(path),
                    "tv": 1.0 - float(p_V[path[0]]) if path else 0.0,
                }
        after_each()
