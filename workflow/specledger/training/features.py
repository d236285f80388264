"""Training of a feature drafter (EAGLE: Li et al. 2024, arXiv 2401.15077, section 4.2).

Shapes: N sequences, T = context, D width, V vocabulary.
"""

import torch
import torch.nn.functional as F
from torch import Tensor

from specledger.models.features import FeatureDrafter
from specledger.models.llama import Llama, initialise
from specledger.training.precision import in_precision
from specledger.training.subject import OnFrozenTarget, cross_entropy

CLASSES_WEIGHT = 0.1  # w_cls of the paper
NOISE = 0.1  # added to features is U(-0.1, 0.1), against the drafter's own errors as it goes on from its guesses


class FeatureTraining(OnFrozenTarget):
    """Loss = smooth L1 between predicted and true feature of i + 1, + 0.1 of the cross-entropy of their distributions.

    Features, and the noise on them, are measured in units of the true feature's root mean square, by which the
    target's final norm divides it: the streams of small models are of other sizes than those of the paper.
    There is no true feature behind the context, so a stretch gives T - 1 positions.

    Args:
        generator: for the drafter's first weights.
    """

    head: FeatureDrafter
    ahead = 1
    names = ("loss", "feature_loss", "soft_loss", "ahead2_loss")

    def __init__(self, target: Llama, head: FeatureDrafter, generator: torch.Generator):
        super().__init__(target, head)
        initialise(head, generator)

    def losses(self, stretch: Tensor, noise_NTD: Tensor | None = None) -> tuple[Tensor, ...]:
        """The whole, its two parts, and the cross-entropy of token i + 2 itself; `noise_NTD` in [-1, 1]."""
        feature_NTD = self.hidden(stretch[:, :-1])
        unit_NT1 = feature_NTD.square().mean(dim=-1, keepdim=True).sqrt()
        given_NTD, wanted_NTD = feature_NTD[:, :-1], feature_NTD[:, 1:]
        if noise_NTD is not None:
            given_NTD = given_NTD + NOISE * noise_NTD * unit_NT1[:, :-1]
        state_NTD = self.head.state(self.target, given_NTD, stretch[:, 1:-1])
        features = F.smooth_l1_loss(state_NTD / unit_NT1[:, 1:], wanted_NTD / unit_NT1[:, 1:])
        logits_NTV = self.head.logits(self.target, state_NTD).float()
        with torch.no_grad():
            target_probs_NTV = self.target.logits(wanted_NTD).float().softmax(dim=-1)
        classes = F.cross_entropy(logits_NTV.flatten(0, 1), target_probs_NTV.flatten(0, 1))
        hard = cross_entropy(logits_NTV, stretch[:, 2:])
        return features + CLASSES_WEIGHT * classes, features, classes, hard

    def accumulate(self, stretch: Tensor, generator: torch.Generator) -> Tensor:
        shape = (len(stretch), self.context - 1, self.target.config.width)
        noise_NTD = torch.empty(shape).uniform_(-1, 1, generator=generator).to(stretch.device)
        with in_precision(self.precision, stretch.device):
            first, *_ = self.losses(stretch, noise_NTD)
        first.backward()
        return first.detach()
