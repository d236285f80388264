"""A small model of its own that drafts token by token (Leviathan et al. 2023, arXiv 2211.17192, section 2.3).

Shapes: B batch, N contexts, T time, D width, K nodes, V vocabulary.
"""

from collections.abc import Sequence

import numpy as np

from specledger.decoding.drafter import Drafter, Parts
from specledger.decoding.proposals import Output
from specledger.decoding.proposers import Nodes, Proposer
from specledger.foundation.drafters import Spec
from specledger.models.arrays import Array, to_host
from specledger.models.llama import Llama

SPECS = (
    Spec(
        name="draft",
        order=10,
        title={"en": "draft model", "zh": "草稿模型"},
        tree_title={"en": "draft model tree", "zh": "草稿模型树"},
        colour="#0072b2",
        dark="#3d9bd8",
        marker="o",
        prefix_alone=True,
        required=True,
        uses="draft",
    ),
    Spec(
        name="draft_dynamic",
        order=20,
        title={"en": "self-stopping draft", "zh": "自停草稿模型"},
        colour="#56b4e9",
        dark="#56b4e9",
        marker="P",
        chooses=True,
        uses="draft",
        costs_of="draft",
    ),
)


class ModelProposer(Proposer):
    """The model's cache follows the text; under the rule `window` the last positions are computed each time."""

    def __init__(self, model: Llama, *, engine, sampling, capacity: int):
        super().__init__(engine=engine, sampling=sampling)
        self.model, self.network, self.context = model, engine.prepared(model), model.config.context
        self.cache = None if self.window else engine.cache(model, model.config.layers, capacity)
        self.begun = False

    def begin(self, output: Output | None, tokens: Sequence[int]) -> np.ndarray:
        self.length, self.nodes = len(tokens), Nodes()
        if self.window:
            self.text = list(tokens)
            return self._of_the_window()[0]
        return self.rows(self.network.outputs(self._new(tokens), self.cache, 1)[2])[0]

    def chain(
        self, tokens: Sequence[int], uniforms_G: np.ndarray, threshold: float
    ) -> tuple[Sequence[int], np.ndarray] | None:
        if self.window or self.network.chain is None:
            return None
        self.length, self.nodes = len(tokens), Nodes()
        return self.network.chain(self._new(tokens), self.cache, self.sampling, uniforms_G, threshold)

    def _new(self, tokens: Sequence[int]) -> Array:
        """The tokens that the cache lacks; all but one of them are caught up."""
        new = tokens[self.cache.length :]
        self.caught_up, self.begun = (len(new) - 1 if self.begun else 0), True
        return self.engine.tokens(self.model, new)

    def expand(self, parents: Sequence[int], tokens: Sequence[int]) -> np.ndarray:
        if self.window:
            assert len(tokens) == 1, "under the rule window a draft model drafts a chain"
            self.text.append(tokens[0])
            return self._of_the_window()
        cache = self.nodes.seen_from(self.cache, parents)
        return self.rows(self.network.logits(self.network.hidden(self.engine.tokens(self.model, tokens), cache)))

    def _of_the_window(self) -> np.ndarray:
        hidden_BTD = self.network.hidden(self.engine.tokens(self.model, self.text[-self.context :]))
        return self.rows(self.network.logits(hidden_BTD[:, -1:]))

    def end(self, length: int) -> None:
        """Nodes in a line that became final stay in the cache; those of a tree lie between others."""
        if not self.window:
            self.cache.rollback(length if self.nodes.in_line else min(length, self.length))

    @staticmethod
    def plain_logits(model: Llama, contexts_NT: Array, proposed: int) -> Array:
        return model.logits(model.hidden(contexts_NT)[:, -1:])[:, -1]

    @staticmethod
    def logits_along(model: Llama, engine, tokens: list[int]) -> np.ndarray:
        """Logits [T - 1, V] of tokens[1:], each from all before it, in one forward."""
        return to_host(engine.open(model, len(tokens)).forward(tokens[:-1], rows=len(tokens) - 1).logits_TV)


def drafter(spec: Spec, parts: Parts) -> Drafter | None:
    """None for the one that stops early where nothing says when."""
    if spec.chooses and parts.drafting is None:
        return None
    threshold = parts.drafting["threshold"] if spec.chooses else 0.0
    return Drafter.of(spec, ModelProposer, parts.draft, vocabulary=parts.draft.config.vocabulary, threshold=threshold)
