"""Parallel heads on a shared trunk (Gloeckle et al. 2024, arXiv 2404.19737).

They train from scratch; here trunk and first head begin as the trained target, and the other heads as copies of its
last block, so that a part of the target's own training is enough.
Shapes: B batch, N sequences, T time, D width, V vocabulary.
"""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn

from specledger.decoding.drafter import Drafter, Parts
from specledger.decoding.proposals import Output
from specledger.decoding.proposers import IndependentProposer
from specledger.foundation.drafters import Spec
from specledger.models.arrays import Array, cat
from specledger.models.cache import Attended, causal
from specledger.models.llama import Block, Llama, LlamaConfig
from specledger.training.precision import in_precision
from specledger.training.subject import Subject, cross_entropy

SPECS = (
    Spec(
        name="parallel",
        order=90,
        title={"en": "parallel heads", "zh": "并行头"},
        tree_title={"en": "parallel heads tree", "zh": "并行头树"},
        colour="#00798c",
        dark="#2cb3c4",
        marker="s",
        group="apart",
        max_gamma=3,
        states=True,
        trained=True,
        joint=True,
        training_cost=1.32,
    ),
)


class ParallelHeads(nn.Module):
    """n = count + 1 heads of one block each predict the next n tokens from the same trunk state.

    The trunk is the target without its last block, and that block is the first head, so that the target
    stays as large as it was (section 2: "we remove layers from the shared trunk"). Head k reads the state at
    position i and predicts token i + k; all share the target's final norm and output head.
    """

    def __init__(self, config: LlamaConfig, count: int):
        super().__init__()
        self.heads = nn.ModuleList(Block(config) for _ in range(count))

    def forward(self, target: Llama, trunk_BTD: Tensor, number: int, seen: Attended | None = None) -> Tensor:
        """Logits [B, T, V] of token i + 2 + number at each position i, from head `number` (from 0).

        Args:
            trunk_BTD: the stream before the target's last block, at positions i.
            seen: what the positions see where they follow cached ones, of a cache with a layer for each head.
        """
        T = trunk_BTD.shape[1]
        seen = seen if seen is not None else causal(target.cos[:T], target.sin[:T])
        return target.logits(self.heads[number](trunk_BTD, seen, number))


class ParallelTraining(Subject):
    """Loss = sum over the heads k = 1 … n of the cross-entropy of token i + k, eq. (2); head 1 is the last block.

    Args:
        target: trunk and first head; it is changed.
        share: of the new heads' learning rate, for the target.
    """

    def __init__(self, target: Llama, head: ParallelHeads, share: float):
        self.target, self.head = target, head
        for block in head.heads:
            block.load_state_dict(target.model.layers[-1].state_dict())
        self.parts, self.shares, self.context = (head, target), (1.0, share), target.config.context
        self.ahead = len(head.heads) + 1
        self.names = ("loss", *(f"ahead{k}_loss" for k in range(1, self.ahead + 1)))

    def _trunk(self, tokens_NT: Tensor) -> Tensor:
        """The stream [N, T, D] before the target's last block."""
        model, seen = self.target.model, self._seen()
        x_NTD = model.embed_tokens(tokens_NT)
        for index, block in enumerate(model.layers[:-1]):
            x_NTD = block(x_NTD, seen, index)
        return x_NTD

    def _seen(self):
        return causal(self.target.cos[: self.context], self.target.sin[: self.context])

    def _of_heads(self) -> list[Callable[[Tensor], Tensor]]:
        """From the trunk's stream to logits [N, T, V], for each head in turn."""
        last = lambda x_NTD: self.target.logits(self.target.model.layers[-1](x_NTD, self._seen(), 0))  # noqa: E731
        others = [lambda x_NTD, n=n: self.head(self.target, x_NTD, n) for n in range(len(self.head.heads))]
        return [last, *others]

    def losses(self, stretch: Tensor) -> tuple[Tensor, ...]:
        x_NTD = self._trunk(stretch[:, : self.context])
        each = [
            cross_entropy(logits_of(x_NTD), stretch[:, k : k + self.context])
            for k, logits_of in enumerate(self._of_heads(), 1)
        ]
        return torch.stack(each).sum(), *each

    def accumulate(self, stretch: Tensor, generator: torch.Generator) -> Tensor:
        """One head after another, so that the logits of one at a time are in memory (figure 2 of the paper).

        Each goes backward down to the trunk's stream, where gradients add up; then the trunk does, once.
        """
        with in_precision(self.precision, stretch.device):
            x_NTD = self._trunk(stretch[:, : self.context])
        cut_NTD, total = x_NTD.detach().requires_grad_(), 0.0
        for k, logits_of in enumerate(self._of_heads(), 1):
            with in_precision(self.precision, stretch.device):
                loss = cross_entropy(logits_of(cut_NTD), stretch[:, k : k + self.context])
            loss.backward()
            total = total + loss.detach()
        x_NTD.backward(cut_NTD.grad)
        return total


class ParallelProposer(IndependentProposer):
    """One-block heads on the trunk, each with keys and values of its own."""

    def __init__(self, target: Llama, heads: ParallelHeads, *, engine, sampling, capacity: int):
        super().__init__(target, heads, engine=engine, sampling=sampling)
        self.cache = engine.cache(target, len(heads.heads), capacity)

    def head_logits(self, output: Output, tokens: Sequence[int]) -> Array:
        count = self.take(output, tokens, self.cache)
        seen, trunk_BTD = self.cache.extend(count), output.before_TD[None, :count]
        numbers = range(len(self.network.heads))
        return cat([self.network(self.target, trunk_BTD, number, seen)[:, -1:] for number in numbers], axis=1)

    def end(self, length: int) -> None:
        self.cache.rollback(min(length, self.length) - 1)

    @staticmethod
    def plain_logits(target: Llama, heads: ParallelHeads, contexts_NT: Array, proposed: int) -> Array:
        before_NTD = target.streams(contexts_NT[:, : contexts_NT.shape[1] - proposed - 1])[0]
        return heads(target, before_NTD, proposed)[:, -1]


def network(spec: Spec, config: LlamaConfig) -> ParallelHeads:
    return ParallelHeads(config, count=spec.max_gamma)


def objective(spec: Spec, target: Llama, head: ParallelHeads, *, share: float, **_) -> Subject:
    return ParallelTraining(target, head, share)


def drafter(spec: Spec, parts: Parts) -> Drafter:
    head, target = parts.heads[spec.name]
    return Drafter.of(spec, ParallelProposer, target, head, vocabulary=target.config.vocabulary)
