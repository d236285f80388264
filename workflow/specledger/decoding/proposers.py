"""Proposers: what gives q along a tree of draft tokens, one object for each text that is decoded.

A proposer is asked level by level. `begin` gives q [V] of the tokens after the text; `expand` gives q [K, V] after each
of K nodes, whose parents are the text (-1) or nodes that were expanded before, by their order; `end` forgets the nodes.
What a kind of drafter adds stands in its module under drafters/.
Shapes: B batch, T positions, K nodes, D width, V vocabulary.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from specledger.decoding.proposals import Output
from specledger.models.arrays import Array, cat
from specledger.models.llama import Llama
from specledger.sampling.distributions import Sampling
from specledger.theory.trees import ROOT, Tree


class Proposer:
    """One drafter's state while one text is decoded.

    Attributes:
        states: does it go on from the target's states? Then it proposes nothing in a text's first round.
        certain: does it name tokens, by `follow`, instead of a q? Their q is 1.
        caught_up: how many tokens the last `begin` took in besides the newest.
    """

    states = False
    certain = False
    caught_up = 0

    def __init__(self, *, engine, sampling: Sampling):
        self.engine, self.sampling = engine, sampling
        self.window = engine.context_rule == "window"

    def begin(self, output: Output | None, tokens: Sequence[int]) -> np.ndarray:
        """q [V] after `tokens`; `output` is the target's last forward, whose rows follow those of the one before."""
        raise NotImplementedError

    def expand(self, parents: Sequence[int], tokens: Sequence[int]) -> np.ndarray:
        """q [K, V] after nodes of these parents and tokens, all of one depth."""
        raise NotImplementedError

    def chain(
        self, tokens: Sequence[int], uniforms_G: np.ndarray, threshold: float
    ) -> tuple[Sequence[int], np.ndarray] | None:
        """At most G draft tokens in a line and their rows [G, V], where the engine draws them itself; else None.

        They are those that `begin`, draws and `expand` give with the same uniforms.
        """
        return None

    def end(self, length: int) -> None:
        """The round is over; only the first `length` tokens of the text are final."""

    def follow(self, tokens: Sequence[int]) -> list[int]:
        """The tokens that a `certain` proposer expects after `tokens`; empty where it expects none."""
        raise NotImplementedError

    @staticmethod
    def plain_logits(*parts: Any) -> Array:
        """Logits [N, V] after contexts [N, T] whose last tokens a round has proposed, by forwards without any cache.

        Called with what the proposer is made of, the contexts, and the number of proposed tokens. What decoders are
        held against.
        """
        raise NotImplementedError

    def rows(self, logits_BTV: Array) -> np.ndarray:
        """q [T, V] of the logits of a batch of one."""
        return self.engine.rules.distribution(logits_BTV[0], self.sampling)


class Nodes:
    """The nodes that a proposer has expanded so far in a round; in a cache they lie behind the text."""

    def __init__(self):
        self.parents: list[int] = []
        self.in_line = True

    def seen_from(self, cache: Any, parents: Sequence[int]) -> Any:
        """The cache as new nodes of these parents see it; a tree with one branch is a line."""
        known = len(self.parents)
        self.parents += parents
        self.in_line = self.in_line and len(parents) == 1 and parents[0] == known - 1
        return cache if self.in_line else cache.beside(Tree.of(tuple(self.parents)), known)


class StateProposer(Proposer):
    """A proposer that goes on from the target's states.

    Under the rule `window` every output of the target is a window of its own, whose positions begin at 0, and so
    caches begin empty in every round.
    """

    states = True

    def __init__(self, target: Llama, network: Any, *, engine, sampling: Sampling):
        super().__init__(engine=engine, sampling=sampling)
        self.model, self.target, self.network = target, engine.prepared(target), engine.prepared(network)

    def take(self, output: Output, tokens: Sequence[int], *caches: Any) -> int:
        """How many rows of the output are of final positions that a token follows; the caches end before them."""
        self.length, self.nodes = len(tokens), Nodes()
        for cache in caches if self.window else ():
            cache.rollback(0)
        assert self.window or not caches or output.first == caches[0].length, (
            "the target's states must follow those that are cached"
        )
        count = self.length - 1 - output.first
        self.caught_up = 0 if self.window else count - 1
        return count


class FeatureProposer(StateProposer):
    """A module that goes on from the target's states by its own.

    Its cache holds the pairs (state at i, token at i + 1) of the text; a node is the pair of its parent's state and
    its token. The network has `state(target, states, next tokens, cache)` and `logits(target, states)`.
    """

    def __init__(self, target: Llama, network: Any, *, engine, sampling: Sampling, capacity: int):
        super().__init__(target, network, engine=engine, sampling=sampling)
        self.cache = engine.cache(target, 1, capacity)

    def begin(self, output: Output, tokens: Sequence[int]) -> np.ndarray:
        count = self.take(output, tokens, self.cache)
        next_BT = self.engine.tokens(self.model, tokens[output.first + 1 :])
        state_BTD = self.network.state(self.target, output.hidden_TD[None, :count], next_BT, self.cache)[:, -1:]
        self.states_after = [state_BTD]  # after the text, and after each node
        return self.rows(self.network.logits(self.target, state_BTD))[0]

    def expand(self, parents: Sequence[int], tokens: Sequence[int]) -> np.ndarray:
        before_BTD = cat([self.states_after[parent + 1] for parent in parents], axis=1)
        cache, next_BT = self.nodes.seen_from(self.cache, parents), self.engine.tokens(self.model, tokens)
        state_BTD = self.network.state(self.target, before_BTD, next_BT, cache)
        self.states_after += [state_BTD[:, k : k + 1] for k in range(len(tokens))]
        return self.rows(self.network.logits(self.target, state_BTD))

    def end(self, length: int) -> None:
        self.cache.rollback(min(length, self.length) - 1)

    @staticmethod
    def plain_logits(target: Llama, network: Any, contexts_NT: Array, proposed: int) -> Array:
        """Pairs of the text with the target's states, and of the proposals with the module's own."""
        text = contexts_NT.shape[1] - proposed
        states_NTD = target.hidden(contexts_NT[:, : text - 1])
        for end in range(text, contexts_NT.shape[1] + 1):
            found_NTD = network.state(target, states_NTD, contexts_NT[:, 1:end])
            states_NTD = cat((states_NTD, found_NTD[:, -1:]), axis=1)
        return network.logits(target, states_NTD[:, -1:])[:, -1]


class IndependentProposer(StateProposer):
    """Heads of one position each, whatever stands between: the q of a depth is the same at every node."""

    def begin(self, output: Output, tokens: Sequence[int]) -> np.ndarray:
        self.depths: list[int] = []
        self.rows_KV = self.rows(self.head_logits(output, tokens))
        return self.rows_KV[0]

    def expand(self, parents: Sequence[int], tokens: Sequence[int]) -> np.ndarray:
        depth = 1 + (0 if parents[0] == ROOT else self.depths[parents[0]])
        self.depths += [depth] * len(parents)
        return np.broadcast_to(self.rows_KV[depth], (len(parents), self.rows_KV.shape[-1]))

    def head_logits(self, output: Output, tokens: Sequence[int]) -> Array:
        """Logits [1, heads, V] from the last final state that a token follows."""
        raise NotImplementedError
