"""The multi-token prediction module of DeepSeek-V3 (arXiv 2412.19437, section 2.2), at one depth and in a chain.

Shapes: B batch, N sequences, T time, D width, V vocabulary.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from specledger.decoding.drafter import Drafter, Parts
from specledger.decoding.proposals import Output
from specledger.decoding.proposers import FeatureProposer, StateProposer
from specledger.foundation.drafters import Spec
from specledger.foundation.errors import UserError
from specledger.models.arrays import Array, as_kind, cat, to_host
from specledger.models.cache import KVCache, causal
from specledger.models.llama import Block, Linear, Llama, LlamaConfig, RMSNorm
from specledger.models.storage import MTP_PREFIX, fill, load_tensors, under
from specledger.training.subject import OnFrozenTarget, Subject, cross_entropy

SPECS = (
    Spec(
        name="mtp",
        order=30,
        title={"en": "MTP module", "zh": "MTP 模块"},
        colour="#d55e00",
        dark="#ee7d28",
        marker="D",
        states=True,
        tree_title={"en": "MTP tree", "zh": "MTP 树"},
        max_gamma=1,
        prefix_alone=True,
        required=True,
        uses="mtp",
    ),
    Spec(
        name="mtp_chained",
        order=40,
        title={"en": "chained MTP", "zh": "MTP 连用"},
        colour="#9a7108",
        dark="#d6a22b",
        marker="d",
        states=True,
        tree_title={"en": "chained MTP tree", "zh": "MTP 连用树"},
        group="apart",
        uses="mtp",
    ),
    Spec(
        name="mtp2",
        order=50,
        title={"en": "MTP of depth 2", "zh": "两级 MTP"},
        colour="#8c564b",
        dark="#c08f84",
        marker="D",
        states=True,
        group="apart",
        max_gamma=2,
        trained=True,
        training_cost=0.65,
    ),
    Spec(
        name="mtp4",
        order=60,
        title={"en": "MTP of depth 4", "zh": "四级 MTP"},
        colour="#5d4037",
        dark="#a98a7f",
        marker="D",
        states=True,
        group="apart",
        max_gamma=4,
        trained=True,
        training_cost=1.15,
    ),
)


class MTPModule(nn.Module):
    """Predicts token i + 2 from the trunk's hidden state at i and the embedding of token i + 1.

    h' = Block(W [RMSNorm(h_i); RMSNorm(Emb(x_{i+1}))]), eq. (21) and (22); the target's embedding
    and output head are shared (eq. 23), so they are arguments and not parameters of the module.
    """

    def __init__(self, config: LlamaConfig):
        super().__init__()
        self.hidden_norm = RMSNorm(config.width, config.norm_eps)
        self.embedding_norm = RMSNorm(config.width, config.norm_eps)
        self.projection = Linear(2 * config.width, config.width)
        self.block = Block(config)
        self.norm = RMSNorm(config.width, config.norm_eps)

    def state(self, target: Llama, hidden_BTD: Tensor, next_tokens_BT: Tensor, cache: KVCache | None = None) -> Tensor:
        """The module's stream [B, T, D]: what the module of the next depth takes for `hidden_BTD`.

        Args:
            target: whose embedding and output head are shared.
            hidden_BTD: states at positions i: the trunk's, before the final norm, or those of the depth before.
            next_tokens_BT: the tokens at positions i + k at depth k.
            cache: the module's own keys and values, for positions that follow cached ones.
        """
        T = next_tokens_BT.shape[1]
        seen = cache.extend(T) if cache is not None else causal(target.cos[:T], target.sin[:T])
        embedded_BTD = self.embedding_norm(target.model.embed_tokens(next_tokens_BT))
        joined = cat((self.hidden_norm(hidden_BTD), embedded_BTD))
        return self.block(as_kind(self.projection(joined), hidden_BTD), seen, 0)

    def logits(self, target: Llama, state_BTD: Tensor) -> Tensor:
        """Logits [B, T, V] of the token after `next_tokens_BT`."""
        return target.lm_head(self.norm(state_BTD))

    def forward(
        self, target: Llama, hidden_BTD: Tensor, next_tokens_BT: Tensor, cache: KVCache | None = None
    ) -> Tensor:
        """Logits [B, T, V] of the token after `next_tokens_BT`; arguments as of `state`."""
        return self.logits(target, self.state(target, hidden_BTD, next_tokens_BT, cache))


class MTPChain(nn.Module):
    """Sequential modules of depth D: module k takes the states of module k - 1 and the tokens at i + k.

    The complete causal chain of section 2.2: every depth sees all tokens before the one that it predicts.
    """

    def __init__(self, config: LlamaConfig, depth: int):
        super().__init__()
        self.depths = nn.ModuleList(MTPModule(config) for _ in range(depth))

    def forward(self, target: Llama, hidden_BTD: Tensor, following: list[Tensor]) -> list[Tensor]:
        """Logits [B, T, V] of each depth; `following[k - 1]` [B, T] are the tokens at positions i + k."""
        found, state_BTD = [], hidden_BTD
        for module, next_tokens_BT in zip(self.depths, following, strict=True):
            state_BTD = module.state(target, state_BTD, next_tokens_BT)
            found.append(module.logits(target, state_BTD))
        return found


class ChainTraining(OnFrozenTarget):
    """Loss = mean over depths k of the cross-entropy of token i + 1 + k, eq. (24) and (25) with lambda 1.

    DeepSeek trains trunk and modules together, from scratch. Here the trunk is frozen, so that all drafters guess for
    one and the same target, and every depth begins as the target's own module of depth 1.
    """

    head: MTPChain

    def __init__(self, target: Llama, head: MTPChain, mtp: MTPModule):
        super().__init__(target, head)
        for module in head.depths:
            module.load_state_dict(mtp.state_dict())
        depth = len(head.depths)
        self.ahead = depth + 1
        self.names = ("loss", *(f"ahead{k + 1}_loss" for k in range(1, depth + 1)))

    def losses(self, stretch: Tensor) -> tuple[Tensor, ...]:
        shifted = [stretch[:, k : k + self.context] for k in range(self.ahead + 1)]
        logits = self.head(self.target, self.hidden(shifted[0]), shifted[1:-1])
        each = [cross_entropy(of_depth, tokens) for of_depth, tokens in zip(logits, shifted[2:], strict=True)]
        return torch.stack(each).mean(), *each


class MTPProposer(FeatureProposer):
    """The target's own module: by its depth one draft token, or fed with its own states beyond that."""

    @staticmethod
    def logits_along(target: Llama, module: MTPModule, engine, tokens: list[int]) -> np.ndarray:
        """Logits [T - 1, V] of tokens[1:]; the module gives none of tokens[1], so that its first row is its second."""
        known = engine.open(target, len(tokens)).forward(tokens[:-2], rows=1)
        next_BT, cache = engine.tokens(target, tokens[1:-1]), engine.cache(target, 1, len(tokens))
        rows_TV = to_host(module(target, known.hidden_TD[None], next_BT, cache)[0])
        return np.concatenate([rows_TV[:1], rows_TV])


class ChainProposer(StateProposer):
    """Sequential modules, one for each depth, in a chain: module k takes the states of module k - 1.

    Module k's pair at position i is final once the token at i + k is, so that its cache ends k - 1 pairs before that
    of module 1. `states_of[k]` are those of depth k, the target's at depth 0, from `firsts[k]` on: the positions that
    module k + 1 has not taken in for good.
    """

    def __init__(self, target: Llama, chain: MTPChain, *, engine, sampling, capacity: int):
        super().__init__(target, chain, engine=engine, sampling=sampling)
        self.modules = [engine.prepared(module) for module in chain.depths]
        self.caches = [engine.cache(target, 1, capacity) for _ in self.modules]
        self.states_of: list[Array | None] = [None] * len(self.modules)
        self.firsts = [0] * len(self.modules)

    def begin(self, output: Output, tokens: Sequence[int]) -> np.ndarray:
        count = self.take(output, tokens, *self.caches)
        first = 0 if self.window else output.first
        self.base = output.first - first  # the position at which those of the caches begin
        self.tokens, self.depth = list(tokens[self.base :]), 0
        self.last = first + count
        self._put(0, first, output.hidden_TD[None, :count])
        return self._rows()[0]

    def expand(self, parents: Sequence[int], tokens: Sequence[int]) -> np.ndarray:
        assert len(tokens) == 1, "modules of several depths draft a chain"
        self.tokens.append(tokens[0])
        self.depth += 1
        return self._rows()

    def _put(self, depth: int, first: int, states_BTD: Array) -> None:
        """States of a depth from position `first` on follow those that are kept of it."""
        kept_BTD = self.states_of[depth]
        if kept_BTD is not None and first > self.firsts[depth]:
            self.states_of[depth] = cat((kept_BTD[:, : first - self.firsts[depth]], states_BTD), axis=1)
        else:
            self.states_of[depth], self.firsts[depth] = states_BTD, first

    def _rows(self) -> np.ndarray:
        """q [1, V] of the module of this depth, over all of its pairs up to the last position that has a state."""
        module, cache, k = self.modules[self.depth], self.caches[self.depth], self.depth + 1
        first, known_BTD = cache.length, self.states_of[self.depth]
        next_BT = self.engine.tokens(self.model, self.tokens[first + k : self.last + k])
        known_BTD = known_BTD[:, first - self.firsts[self.depth] :]
        state_BTD = module.state(self.target, known_BTD, next_BT, cache)
        if k < len(self.modules):
            self._put(k, first, state_BTD)
        return self.rows(module.logits(self.target, state_BTD[:, -1:]))

    def end(self, length: int) -> None:
        """Forget what isn't final, of each depth; states that the next depth has taken in for good go too."""
        final = min(length, self.length) - self.base
        for k, cache in enumerate(self.caches):
            cache.rollback(max(0, final - k - 1))
            if self.states_of[k] is not None and cache.length > self.firsts[k]:
                self.states_of[k] = self.states_of[k][:, cache.length - self.firsts[k] :]
                self.firsts[k] = cache.length

    @staticmethod
    def plain_logits(target: Llama, chain: MTPChain, contexts_NT: Array, proposed: int) -> Array:
        """Module k over the text's states, each with the token k places on."""
        text = contexts_NT.shape[1] - proposed
        states_NTD = target.hidden(contexts_NT[:, : text - 1])
        for k, module in enumerate(chain.depths[: proposed + 1], start=1):
            states_NTD = module.state(target, states_NTD, contexts_NT[:, k : k + text - 1])
        return module.logits(target, states_NTD[:, -1:])[:, -1]


def load_mtp(folder: Path, target: Llama) -> MTPModule:
    """The MTP module beside `target`; UserError where the folder has none."""
    path = folder / "heads.safetensors"
    tensors = under(MTP_PREFIX, load_tensors(path))
    if not tensors:
        raise UserError(f"{path}: holds no MTP module; the model 'mtp' has one")
    mtp = MTPModule(target.config)
    fill(mtp, tensors, path)
    return mtp.to(target.lm_head.weight.device).eval().requires_grad_(False)


def network(spec: Spec, config: LlamaConfig) -> MTPChain:
    return MTPChain(config, depth=spec.max_gamma)


def objective(spec: Spec, target: Llama, head: MTPChain, *, mtp: MTPModule, **_) -> Subject:
    return ChainTraining(target, head, mtp)


def drafter(spec: Spec, parts: Parts) -> Drafter:
    if spec.trained:
        head, target = parts.heads[spec.name]
        return Drafter.of(spec, ChainProposer, target, head, vocabulary=target.config.vocabulary)
    proposer = MTPProposer if spec.max_gamma == 1 else FeatureProposer
    return Drafter.of(spec, proposer, parts.target, parts.mtp, vocabulary=parts.target.config.vocabulary)
