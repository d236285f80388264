"""The exact oracle: how far the law of a block lies from the target's, for each drafter and shape of its proposals.

Shapes: V vocabulary, K of its symbols that are enumerated.
"""

from collections.abc import Sequence

import numpy as np
import torch

from specledger.decoding.drafter import Parts
from specledger.drafters.mtp import MTPModule
from specledger.drafters.ngram import NGram
from specledger.drafters.registry import build_head, drafters_of
from specledger.experiments.block_law import deviation
from specledger.experiments.bundle import ModelBundle
from specledger.experiments.reference import alphabet, laws, tree_logits, within
from specledger.foundation.drafters import MODULES
from specledger.models.llama import Llama, LlamaConfig, initialise
from specledger.sampling.distributions import Sampling
from specledger.theory.trees import Tree

SIBLINGS = Tree.of((-1, -1))
SMALL_TREES = (SIBLINGS, Tree.of((-1, -1, 0, 0, 1)))


def random_bundle(vocabulary: int, seed: int) -> ModelBundle:
    """Small models and heads with random weights, so large that their rows differ, and an n-gram of random text."""
    generator = torch.Generator().manual_seed(seed)

    def ready(module: torch.nn.Module) -> torch.nn.Module:
        initialise(module, generator, std=0.4)
        for name, parameter in module.named_parameters():
            if name.endswith("bias"):  # PyTorch drew it from its global generator
                torch.nn.init.normal_(parameter, std=0.4, generator=generator)
        return module.eval().requires_grad_(False)

    def model(layers: int, width: int) -> Llama:
        sizes = {"layers": layers, "width": width, "heads": 4, "kv_heads": 2, "context": 16}
        return ready(Llama(LlamaConfig(vocabulary=vocabulary, **sizes)))

    target = model(2, 16)
    mtp = ready(MTPModule(target.config))
    text = np.random.default_rng(seed).integers(vocabulary, size=200)
    ngram, heads = NGram.count(text, vocabulary=vocabulary, order=3, discount=0.75), {}
    for specs in MODULES.values():  # of each kind of head the deepest
        trained = [spec for spec in specs if spec.trained]
        if trained:
            name = max(trained, key=lambda spec: spec.max_gamma or 0).name
            heads[name] = ready(build_head(name, target.config)), target
    parts = Parts(target=target, mtp=mtp, draft=model(1, 8), ngram=ngram, heads=heads)
    return ModelBundle(target=target, drafters=drafters_of(parts))


def oracle_rows(
    bundle: ModelBundle,
    prompt: list[int],
    gammas: Sequence[int],
    trees: Sequence[Tree],
    *,
    model: str,
    sampling: Sampling,
    drafters: Sequence[str] | None = None,
) -> list[dict]:
    """One row per drafter and shape: chains of every gamma that it was made for, and trees as deep as it can.

    Of a large vocabulary the rows are those of its likeliest symbols alone. `drafters` None is all that are
    lossless.
    """
    rows = []
    for name, drafter in bundle.lossless.items():
        if drafters is not None and name not in drafters:
            continue
        target, limit = bundle.target_of(name), drafter.max_gamma or bundle.target.config.context
        symbols_K = alphabet(target, prompt)
        chains = [Tree.chain(gamma) for gamma in gammas if gamma <= limit] or [Tree.chain(1)] * bool(gammas)
        branched = [tree for tree in trees if tree.depth <= limit] if bundle.branches(name) else []
        depth = max(tree.depth for tree in (*chains, *branched))
        p = laws(within(tree_logits(target, prompt, depth, symbols_K), symbols_K), sampling)
        q = laws(within(tree_logits(drafter, prompt, depth - 1, symbols_K), symbols_K), sampling)
        for tree in (*chains, *branched):
            V, nodes = len(symbols_K), len(tree.parents)
            row = {"drafter": name, "gamma": nodes, "tree": "" if tree.is_chain else " ".join(map(str, tree.parents))}
            row |= {"vocabulary": V, "model": model, "blocks": V ** (tree.depth + 1)}
            rows.append({**row, "max_abs_deviation": deviation(p, q, tree)})
    return rows
