"""Small random heads and every drafter that grows trees, for tests."""

import torch
from small import drafters_of
from specledger.decoding.drafter import Drafter, Parts
from specledger.drafters.registry import build_head, make
from specledger.experiments.bundle import ModelBundle
from specledger.foundation.drafters import HEADS
from specledger.models.llama import Llama, initialise
from specledger.theory.trees import Tree

TREE = Tree.of((-1, -1, -1, 0, 0, 1, 3, 3, 6))  # siblings at two depths, four deep
HEAD_NAMES = HEADS


def grown_bundle(target: Llama, seed: int = 200, std: float = 0.4) -> ModelBundle:
    """The drafters of `drafters_of`, and random heads for the same target."""
    device = target.lm_head.weight.device
    drafters = dict(drafters_of(target))
    mtp = drafters["mtp"].parts[1].to(device)
    drafters["draft"].parts[0].to(device)
    drafters["mtp_chained"] = make("mtp_chained", Parts(target=target, mtp=mtp))
    for number, name in enumerate(HEADS):
        head = build_head(name, target.config)
        generator = torch.Generator().manual_seed(seed + number)
        initialise(head, generator, std=std)
        for key, parameter in head.named_parameters():
            if key.endswith("bias"):  # PyTorch drew it from its global generator
                torch.nn.init.normal_(parameter, std=std, generator=generator)
        head = head.to(device).eval().requires_grad_(False)
        drafters[name] = make(name, Parts(target=target, heads={name: (head, target)}))
    return ModelBundle(target=target, drafters=drafters)


def trees_in(bundle: ModelBundle, tree: Tree = TREE) -> dict[str, Drafter]:
    """Every drafter that drafts trees, with this tree as deep as it can."""
    names = [name for name in bundle.lossless if bundle.branches(name)]
    return {name: bundle.drafters[name].in_tree(tree.down_to(bundle.drafters[name].max_gamma or 99)) for name in names}
