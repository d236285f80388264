"""How each head begins: what of the trained target it takes over, and what it is trained with."""

import copy

import torch

from specledger.models.heads import HEADS, build_head
from specledger.models.llama import Llama
from specledger.models.mtp import MTPModule
from specledger.training.chain import ChainTraining
from specledger.training.features import FeatureTraining
from specledger.training.loop import DRAFTER, stream
from specledger.training.medusa import JointMedusaTraining, MedusaTraining
from specledger.training.parallel import ParallelTraining
from specledger.training.subject import Subject


def begin(
    name: str,
    target: Llama,
    mtp: MTPModule,
    *,
    seed: int,
    trunk_share: float,
    medusa1: torch.nn.Module | None = None,
) -> Subject:
    """The head `name` at its first step; the given target is never changed.

    Args:
        mtp: the target's own module of depth 1.
        seed: for the weights that begin at random (those of eagle).
        trunk_share: of the heads' learning rate, for a trunk that is trained with them.
        medusa1: trained heads that medusa2 begins with.
    """
    head = build_head(name, target.config)
    own = copy.deepcopy(target).train().requires_grad_() if HEADS[name].joint else target
    match name:
        case "mtp2" | "mtp4":
            return ChainTraining(own, head, mtp)
        case "parallel":
            return ParallelTraining(own, head, trunk_share)
        case "medusa1":
            return MedusaTraining(own, head)
        case "medusa2":
            head.load_state_dict(medusa1.state_dict())
            return JointMedusaTraining(own, head, trunk_share)
        case _:
            return FeatureTraining(own, head, stream(seed, DRAFTER))
