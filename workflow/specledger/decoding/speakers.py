"""What says q along a tree of proposals: one class for each kind of model that drafts, with caches of its own.

A speaker is asked level by level. `begin` says q [V] of the tokens after the text; `expand` says q [K, V] after each
of K nodes, whose parents are the text (-1) or nodes that were expanded before, by their order; `end` forgets the nodes.
Shapes: K nodes, V vocabulary, D width, T positions.
"""

from collections.abc import Sequence
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from specledger.decoding.engines import CachedSession, as_batch, new_cache
from specledger.decoding.proposals import Output
from specledger.models.features import FeatureDrafter
from specledger.models.llama import Llama
from specledger.models.medusa import MedusaHeads
from specledger.models.mtp import MTPChain, MTPModule
from specledger.models.parallel import ParallelHeads
from specledger.sampling.distributions import Sampling, distribution
from specledger.theory.trees import ROOT, Tree


class Speaker(Protocol):
    """One drafter's state while one text is decoded; `hears` tells whether it goes on from the target's states."""

    hears: bool

    def begin(self, output: Output | None, tokens: Sequence[int]) -> np.ndarray:
        """q [V] after `tokens`; `output` is the target's last forward, whose rows follow what was heard before."""

    def expand(self, parents: Sequence[int], tokens: Sequence[int]) -> np.ndarray:
        """q [K, V] after nodes of these parents and tokens, all of one depth."""

    def end(self, length: int) -> None:
        """The round is over; only the first `length` tokens of the text are final."""


class Branching:
    """The nodes that a speaker has expanded so far in a round."""

    def __init__(self):
        self.parents: list[int] = []

    def add(self, parents: Sequence[int]) -> tuple[Tree, int]:
        """The tree with new nodes, and how many nodes it had."""
        known = len(self.parents)
        self.parents += parents
        return Tree.of(tuple(self.parents)), known


class ModelSpeaker:
    """A draft model of its own, with a cache that follows the text."""

    hears = False

    def __init__(self, model: Llama, *, sampling: Sampling, capacity: int):
        self.session, self.sampling = CachedSession(model, capacity), sampling

    def begin(self, output: Output | None, tokens: Sequence[int]) -> np.ndarray:
        self.branching, self.length = Branching(), len(tokens)
        return _distribution(self.session.forward(tokens, rows=1).logits_TV, self.sampling)[0]

    def expand(self, parents: Sequence[int], tokens: Sequence[int]) -> np.ndarray:
        cache = self.session.cache.beside(*self.branching.add(parents))
        hidden_BTD = self.session.model.hidden(as_batch(tokens, self.session.device), cache)
        return _distribution(self.session.model.logits(hidden_BTD)[0], self.sampling)

    def end(self, length: int) -> None:
        self.session.rollback(min(length, self.length))


class FeatureSpeaker:
    """A module that goes on from the target's states by its own: EAGLE, or an MTP module beyond its depth.

    Its cache holds the pairs (state at i, token at i + 1) of the text; a node is the pair of its parent's state and
    its token.
    """

    hears = True

    def __init__(self, target: Llama, module: FeatureDrafter | MTPModule, *, sampling: Sampling, capacity: int):
        self.target, self.module, self.sampling = target, module, sampling
        self.device, self.cache = target.lm_head.weight.device, new_cache(target, 1, capacity)

    def begin(self, output: Output, tokens: Sequence[int]) -> np.ndarray:
        assert output.first == self.cache.length, "the target's states must follow those that are cached"
        self.branching, self.length = Branching(), len(tokens)
        count = self.length - 1 - output.first
        hidden_BTD, next_BT = output.hidden_TD[None, :count], as_batch(tokens[output.first + 1 :], self.device)
        state_BTD = self.module.state(self.target, hidden_BTD, next_BT, self.cache)[:, -1:]
        self.text_BTD, self.states = state_BTD, []
        return self._said(state_BTD)[0]

    def expand(self, parents: Sequence[int], tokens: Sequence[int]) -> np.ndarray:
        before = [self.text_BTD if parent == ROOT else self.states[parent] for parent in parents]
        cache = self.cache.beside(*self.branching.add(parents))
        state_BTD = self.module.state(self.target, torch.cat(before, dim=1), as_batch(tokens, self.device), cache)
        self.states += state_BTD.split(1, dim=1)
        return self._said(state_BTD)

    def end(self, length: int) -> None:
        self.cache.rollback(min(length, self.length) - 1)

    def _said(self, state_BTD: Tensor) -> np.ndarray:
        return _distribution(self.module.logits(self.target, state_BTD)[0], self.sampling)


class Independent:
    """Heads that speak of one position each, whatever stands between: the q of a depth is the same at every node."""

    hears = True

    def __init__(self, target: Llama, heads: MedusaHeads | ParallelHeads, *, sampling: Sampling, capacity: int):
        self.target, self.heads, self.sampling = target, heads, sampling

    def begin(self, output: Output, tokens: Sequence[int]) -> np.ndarray:
        self.length, self.depths = len(tokens), []
        self.rows_KV = _distribution(self._logits(output, self.length - 1 - output.first), self.sampling)
        return self.rows_KV[0]

    def expand(self, parents: Sequence[int], tokens: Sequence[int]) -> np.ndarray:
        depth = 1 + (0 if parents[0] == ROOT else self.depths[parents[0]])
        self.depths += [depth] * len(parents)
        return np.broadcast_to(self.rows_KV[depth], (len(parents), self.rows_KV.shape[-1]))

    def end(self, length: int) -> None:
        pass

    def _logits(self, output: Output, count: int) -> Tensor:
        """Logits [heads, V] from the last of the first `count` rows of the target's output."""
        raise NotImplementedError


class MedusaSpeaker(Independent):
    """Heads on the target's last state."""

    def _logits(self, output: Output, count: int) -> Tensor:
        return torch.cat([logits[0] for logits in self.heads(self.target, output.hidden_TD[None, count - 1 : count])])


class ParallelSpeaker(Independent):
    """One-block heads on the trunk, each with keys and values of its own."""

    def __init__(self, target: Llama, heads: ParallelHeads, *, sampling: Sampling, capacity: int):
        super().__init__(target, heads, sampling=sampling, capacity=capacity)
        self.cache = new_cache(target, len(heads.heads), capacity)

    def _logits(self, output: Output, count: int) -> Tensor:
        assert output.first == self.cache.length, "the target's states must follow those that are cached"
        seen, trunk_BTD = self.cache.extend(count), output.before_TD[None, :count]
        numbers = range(len(self.heads.heads))
        return torch.cat([self.heads(self.target, trunk_BTD, number, seen)[0, -1:] for number in numbers])

    def end(self, length: int) -> None:
        self.cache.rollback(min(length, self.length) - 1)


class ChainSpeaker:
    """Sequential MTP modules, one for each depth, in a chain: module k takes the states of module k - 1.

    Module k's pair at position i is final once the token at i + k is, so that its cache ends k - 1 pairs before that
    of module 1. `states[k]` are those of depth k at every position, the target's at depth 0.
    """

    hears = True

    def __init__(self, target: Llama, chain: MTPChain, *, sampling: Sampling, capacity: int):
        self.target, self.chain, self.sampling = target, chain, sampling
        self.device = target.lm_head.weight.device
        self.caches = [new_cache(target, 1, capacity) for _ in chain.depths]
        self.states = [torch.zeros(capacity, target.config.width, device=self.device) for _ in chain.depths]

    def begin(self, output: Output, tokens: Sequence[int]) -> np.ndarray:
        assert output.first == self.caches[0].length, "the target's states must follow those that are cached"
        self.tokens, self.length, self.depth = list(tokens), len(tokens), 0
        last = self.length - 1
        self.states[0][output.first : last] = output.hidden_TD[: last - output.first]
        return self._speak()

    def expand(self, parents: Sequence[int], tokens: Sequence[int]) -> np.ndarray:
        assert len(tokens) == 1, "modules of several depths draft a chain"
        self.tokens.append(tokens[0])
        self.depth += 1
        return self._speak()[None]

    def _speak(self) -> np.ndarray:
        """q [V] of the module of this depth, over all of its pairs up to the last position that has a state."""
        module, cache, k = self.chain.depths[self.depth], self.caches[self.depth], self.depth + 1
        first, last = cache.length, self.length - 1
        next_BT = as_batch(self.tokens[first + k : last + k], self.device)
        said_TD = module.state(self.target, self.states[self.depth][None, first:last], next_BT, cache)[0]
        if k < len(self.states):
            self.states[k][first:last] = said_TD
        return _distribution(module.logits(self.target, said_TD[None, -1:])[0], self.sampling)[0]

    def end(self, length: int) -> None:
        final = min(length, self.length)
        for k, cache in enumerate(self.caches, start=1):
            cache.rollback(max(0, final - k))


def _distribution(logits_KV: Tensor, sampling: Sampling) -> np.ndarray:
    return distribution(logits_KV.cpu().numpy(), sampling)
