"""Small random heads and every drafter that grows trees, for tests."""

import torch
from small import drafters_of
from specledger.decoding.growing import Growing
from specledger.experiments.cast import Cast, chained, growing_heads, tree_drafter
from specledger.models.heads import HEADS, build_head
from specledger.models.llama import Llama, initialise
from specledger.theory.trees import Tree

TREE = Tree.of((-1, -1, -1, 0, 0, 1, 3, 3, 6))  # siblings at two depths, four deep
HEAD_NAMES = tuple(HEADS)


def grown_cast(target: Llama, seed: int = 200, std: float = 0.4) -> Cast:
    """The drafters of `drafters_of`, and random heads for the same target."""
    device = target.lm_head.weight.device
    drafters = dict(drafters_of(target))
    drafters["draft"].model.to(device)
    drafters["mtp"].mtp.to(device)
    drafters["mtp_chained"] = chained(target, drafters["mtp"].mtp)
    for number, name in enumerate(HEADS):
        head = build_head(name, target.config)
        generator = torch.Generator().manual_seed(seed + number)
        initialise(head, generator, std=std)
        for key, parameter in head.named_parameters():
            if key.endswith("bias"):  # PyTorch drew it from its global generator
                torch.nn.init.normal_(parameter, std=std, generator=generator)
        drafters[name] = growing_heads(name, target, head.to(device).eval().requires_grad_(False))
    return Cast(target=target, drafters=drafters)


def trees_in(cast: Cast, tree: Tree = TREE) -> dict[str, Growing]:
    """Every drafter that drafts trees, with this tree as deep as it can."""
    names = [name for name in cast.lossless if cast.branches(name)]
    return {
        name: tree_drafter(cast.drafters[name], tree.down_to(cast.drafters[name].max_gamma or 99)) for name in names
    }
