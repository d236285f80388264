"""EAGLE: autoregression on the target's features (Li et al. 2024, arXiv 2401.15077, section 4).

Shapes: B batch, N sequences, T time, D width, V vocabulary.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from specledger.decoding.drafter import Drafter, Parts
from specledger.decoding.proposers import FeatureProposer
from specledger.foundation.drafters import Spec
from specledger.models.arrays import as_kind, cat
from specledger.models.cache import KVCache, causal
from specledger.models.llama import Block, Llama, LlamaConfig, initialise
from specledger.training.loop import DRAFTER, stream
from specledger.training.precision import in_precision
from specledger.training.subject import OnFrozenTarget, Subject, cross_entropy

SPECS = (
    Spec(
        name="eagle",
        order=120,
        title={"en": "EAGLE", "zh": "EAGLE"},
        tree_title={"en": "EAGLE tree", "zh": "EAGLE 树"},
        colour="#6a51a3",
        dark="#a797e0",
        marker=">",
        group="apart",
        states=True,
        trained=True,
        training_cost=0.45,
    ),
)

CLASSES_WEIGHT = 0.1  # w_cls of the paper
NOISE = 0.1  # added to features is U(-0.1, 0.1), against the drafter's own errors as it goes on from its guesses


class FeatureDrafter(nn.Module):
    """Predicts the target's feature at i + 1 from its feature at i and the embedding of the token at i + 1.

    A feature is the trunk's last stream, before the final norm; embedding, norm and output head are the
    target's own and stay as they are.
    """

    def __init__(self, config: LlamaConfig):
        super().__init__()
        self.projection = nn.Linear(2 * config.width, config.width)
        nn.init.zeros_(self.projection.bias)  # PyTorch would draw it from its global generator
        self.block = Block(config)

    def state(self, target: Llama, feature_BTD: Tensor, next_tokens_BT: Tensor, cache: KVCache | None = None) -> Tensor:
        """Predicted features [B, T, D] at positions i + 1.

        Args:
            feature_BTD: features at positions i, the target's or predicted ones.
            next_tokens_BT: the tokens at positions i + 1.
            cache: the module's own keys and values, for positions that follow cached ones.
        """
        T = next_tokens_BT.shape[1]
        seen = cache.extend(T) if cache is not None else causal(target.cos[:T], target.sin[:T])
        joined = cat((target.model.embed_tokens(next_tokens_BT), feature_BTD))
        return self.block(as_kind(self.projection(joined), feature_BTD), seen, 0)

    def logits(self, target: Llama, state_BTD: Tensor) -> Tensor:
        """Logits [B, T, V] of the token after `next_tokens_BT`."""
        return target.logits(state_BTD)


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


def network(spec: Spec, config: LlamaConfig) -> FeatureDrafter:
    return FeatureDrafter(config)


def objective(spec: Spec, target: Llama, head: FeatureDrafter, *, seed: int, **_) -> Subject:
    return FeatureTraining(target, head, stream(seed, DRAFTER))


def drafter(spec: Spec, parts: Parts) -> Drafter:
    head, target = parts.heads[spec.name]
    return Drafter.of(spec, FeatureProposer, target, head, vocabulary=target.config.vocabulary)
