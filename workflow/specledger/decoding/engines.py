"""How a forward is executed, and by which rule of context.

`recompute` (rule `window`): every forward recomputes the last `context` tokens.
`cached` (rule `sliding`): each position looks back at most `context` positions, with a KV cache.
`compiled` (rule `sliding`): the same in compiled code, on a CPU by `native`, on a GPU by `graphs`.
Shapes: T new positions, D width, V vocabulary.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol

import torch
from torch import Tensor

from specledger.decoding.building import NotCompiled
from specledger.decoding.proposals import Output
from specledger.decoding.rules import Rules
from specledger.models.arrays import Array
from specledger.models.cache import Cache, KVCache
from specledger.models.llama import Llama, rope_tables
from specledger.sampling.distributions import Sampling
from specledger.theory.trees import Tree

CONTEXT_RULES = {"recompute": "window", "cached": "sliding", "compiled": "sliding"}


class TargetSession(Protocol):
    """One model's state while one sequence is decoded."""

    def forward(self, tokens: Sequence[int], rows: int) -> Output:
        """Compute the sequence `tokens`, as far as it isn't known, and return the last `rows` logits."""

    def rollback(self, length: int) -> None:
        """Forget what was computed at positions from `length` on."""


def as_batch(tokens: Sequence[int], device: torch.device) -> Tensor:
    """Tokens [T] as a batch of one [1, T]."""
    return torch.tensor([tokens], dtype=torch.int64, device=device)


class RecomputeSession:
    """Nothing is kept: the last `context` tokens are computed each time."""

    def __init__(self, model: Llama):
        self.model = model
        self.device = model.lm_head.weight.device

    def forward(self, tokens: Sequence[int], rows: int) -> Output:
        first = max(0, len(tokens) - self.model.config.context)
        before_BTD, hidden_BTD = self.model.streams(as_batch(tokens[first:], self.device))
        logits_BTV = self.model.logits(hidden_BTD[:, -rows:])
        return Output(logits_TV=logits_BTV[0], hidden_TD=hidden_BTD[0], first=first, before_TD=before_BTD[0])

    def rollback(self, length: int) -> None:
        pass


class CachedSession:
    """Keys and values are kept; a forward pass computes only what the cache lacks."""

    def __init__(self, engine: "Engine", model: Llama, capacity: int):
        self.tokens, self.model = partial(engine.tokens, model), engine.prepared(model)
        self.cache = engine.cache(model, model.config.layers, capacity)

    def forward(self, tokens: Sequence[int], rows: int) -> Output:
        first = self.cache.length
        assert len(tokens) - first >= rows, "the rows asked for were computed before and not rolled back"
        return self._output(tokens[first:], self.cache, rows, first)

    def branch(self, tokens: Sequence[int], proposed: Sequence[int], tree: Tree) -> Output:
        """Compute the sequence as far as it isn't known, and then the nodes of a tree with these tokens after it.

        Returns:
            Logits of the last token and of the nodes; hidden states of all new rows.
        """
        first = self.cache.length
        return self._output([*tokens[first:], *proposed], self.cache.beside(tree), len(proposed) + 1, first)

    def keep(self, path: Sequence[int], nodes: int) -> None:
        """Of the tree's nodes, all computed, only those of `path` stay, as the next tokens of the sequence."""
        self.cache.keep(path, nodes)

    def _output(self, new: Sequence[int], cache, rows: int, first: int) -> Output:
        before_BTD, hidden_BTD, logits_BTV = self.model.outputs(self.tokens(new), cache, rows)
        return Output(logits_TV=logits_BTV[0], hidden_TD=hidden_BTD[0], first=first, before_TD=before_BTD[0])

    def rollback(self, length: int) -> None:
        self.cache.rollback(length)


@dataclass(frozen=True, kw_only=True)
class Engine:
    """A way to run forward passes, by name; `open` starts the session of one sequence.

    Proposers are given it, and have from it tokens, caches and networks as it runs them.
    """

    name: str
    rules: Rules = field(default_factory=Rules, compare=False)
    compile_s: float = 0.0  # seconds that were spent compiling

    def __deepcopy__(self, memo: dict) -> "Engine":
        """Copies of a session share their engine."""
        return self

    @property
    def context_rule(self) -> str:
        return CONTEXT_RULES[self.name]

    @property
    def branches(self) -> bool:
        """Can it verify trees? Under the rule `window` each path would be cut at another place."""
        return self.context_rule == "sliding"

    def open(self, model: Llama, capacity: int) -> TargetSession:
        """A session for a sequence of at most `capacity` tokens, draft tokens included."""
        return CachedSession(self, model, capacity) if self.branches else RecomputeSession(model)

    def open_proposer(self, proposer: Callable[..., Any], *parts: Any, sampling: Sampling, capacity: int) -> Any:
        """A proposer of that class for a text of at most `capacity` tokens, draft tokens included."""
        return proposer(*parts, engine=self, sampling=sampling, capacity=capacity)

    def tokens(self, model: Llama, tokens: Sequence[int]) -> Array:
        """Tokens as a batch of one [1, T], where the model lies."""
        return as_batch(tokens, model.lm_head.weight.device)

    def cache(self, model: Llama, layers: int, capacity: int) -> Cache:
        """An empty cache of `layers` blocks of the model's sizes, for `capacity` positions."""
        config, weight = model.config, model.lm_head.weight
        cos, sin = (t.to(weight) for t in rope_tables(config.head_width, capacity, config.rope_theta))
        return KVCache(layers=layers, kv_heads=config.kv_heads, cos=cos, sin=sin, context=config.context)

    def prepared(self, module: Any) -> Any:
        """The module as the engine runs it."""
        return module


@dataclass(frozen=True, kw_only=True)
class TwinEngine(Engine):
    """An engine that runs a module by a twin of it, made once."""

    name: str = "compiled"
    twins: dict[int, tuple[Any, Any]] = field(default_factory=dict, repr=False, compare=False)

    def twin(self, module: Any) -> Any:
        """What stands in for the module."""
        raise NotImplementedError

    def prepared(self, module: Any) -> Any:
        key = id(module)
        if key not in self.twins:
            self.twins[key] = module, self.twin(module)  # the module is kept, so that its number stays its own
        return self.twins[key][1]


def engine(name: str, device: torch.device | str = "cpu") -> Engine:
    """The engine of that name for models on a device; NotCompiled where `compiled` can't be had."""
    if name not in CONTEXT_RULES:
        raise ValueError(f"engine must be one of {', '.join(CONTEXT_RULES)}, got {name}")
    if name != "compiled":
        return Engine(name=name)
    if torch.device(device).type == "cuda":
        from specledger.decoding.graphs import GraphEngine

        return GraphEngine()
    from specledger.decoding.native import NativeEngine

    return NativeEngine.on(torch.device(device))


def usable(
    names: Sequence[str], device: torch.device, say: Callable[[str], None]
) -> tuple[list[Engine], dict[str, str]]:
    """The engines of these names that can be had here, and why the others can't, which the user is told."""
    found, left_out = [], {}
    for name in names:
        try:
            found.append(engine(name, device))
        except NotCompiled as error:
            left_out[name] = str(error)
            say(f"engine {name} is left out: {error}")
    return found, left_out
