"""What the target and each drafter say after given contexts, by plain forwards: no cache, no session, no loop.

Decoders are held against these rows, so they share nothing with what they judge but the models.
Shapes: N contexts of T tokens each, V vocabulary, G proposals.
"""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import torch

from specledger.decoding.drafter import Drafter
from specledger.experiments.bundle import ModelBundle
from specledger.models.arrays import to_host
from specledger.models.llama import Llama
from specledger.sampling.distributions import Sampling, distribution

TARGET = "target"
CHUNK_TOKENS = 16_384
MOST_SYMBOLS = 170  # 170^3 is 5 million cells, and 170^2 contexts
LIKELIEST = 64


def _llama_logits(model: Llama, contexts_NT: torch.Tensor) -> torch.Tensor:
    return model.logits(model.hidden(contexts_NT)[:, -1:])[:, -1]


@torch.inference_mode()
def _forwards(compute, contexts_NT: np.ndarray, device: torch.device) -> np.ndarray:
    count = max(1, CHUNK_TOKENS // contexts_NT.shape[1])
    chunks = [contexts_NT[start : start + count] for start in range(0, len(contexts_NT), count)]
    return np.concatenate([to_host(compute(torch.as_tensor(chunk, device=device))) for chunk in chunks])


def next_logits(speaker: Llama | Drafter, contexts_NT: np.ndarray) -> np.ndarray:
    """Logits [N, V] of the token after each context [N, T], from the model or from a drafter.

    T is at most the model's context, and at least 2 for an MTP module, which needs a hidden state
    and the token after it. Of an n-gram these are log probabilities.
    """
    if isinstance(speaker, Llama):
        return _forwards(lambda c: _llama_logits(speaker, c), contexts_NT, speaker.lm_head.weight.device)
    return proposed_logits(speaker, contexts_NT, 0)


def proposed_logits(drafter: Drafter, contexts_NT: np.ndarray, proposed: int) -> np.ndarray:
    """Logits [N, V] of a drafter's next proposal, after contexts whose last `proposed` tokens its round has proposed.

    A head knows the target's states of the text alone: what it gives depends on
    where the round began.
    """
    compute = drafter.proposer.plain_logits
    devices = [part.lm_head.weight.device for part in drafter.parts if isinstance(part, Llama)]
    return _forwards(lambda c: compute(*drafter.parts, c, proposed), contexts_NT, (devices or [torch.device("cpu")])[0])


def sequences_of(vocabulary: int, length: int) -> np.ndarray:
    """Every sequence of `length` symbols [V^length, length], in order."""
    found = list(itertools.product(range(vocabulary), repeat=length))
    return np.array(found, dtype=np.int64).reshape(vocabulary**length, length)


def alphabet(target: Llama, prompt: Sequence[int]) -> np.ndarray:
    """The symbols [K] that are enumerated after `prompt`: all, or of more than 170 the 64 likeliest there."""
    V = target.config.vocabulary
    if V <= MOST_SYMBOLS:
        return np.arange(V)
    logits_V = next_logits(target, np.array([prompt], dtype=np.int64))[0]
    return np.sort(np.argsort(-logits_V, kind="stable")[:LIKELIEST])


def tree_logits(speaker: Llama | Drafter, prompt: Sequence[int], depth: int, symbols_K: np.ndarray) -> list[np.ndarray]:
    """Logits after the prompt and every continuation in the alphabet: entry d is [K] * d + [V], d from 0 to `depth`.

    Of a drafter those of its proposals in a round that begins after the prompt.
    """
    found, K = [], len(symbols_K)
    for d in range(depth + 1):
        tails = symbols_K[sequences_of(K, d)]
        contexts_NT = np.concatenate([np.tile(np.asarray(prompt, dtype=np.int64), (len(tails), 1)), tails], axis=1)
        rows = (
            next_logits(speaker, contexts_NT)
            if isinstance(speaker, Llama)
            else proposed_logits(speaker, contexts_NT, d)
        )
        found.append(rows.reshape((K,) * d + (-1,)))
    return found


def within(logits: list[np.ndarray], symbols_K: np.ndarray) -> list[np.ndarray]:
    """A tree of logits of the alphabet alone, [K] * d + [K]: a smaller problem made of the same rows."""
    return [rows[..., symbols_K] for rows in logits]


def lumped(rows: list[np.ndarray], symbols_K: np.ndarray) -> list[np.ndarray]:
    """A tree of distributions with all other symbols as one more, [K + 1] * d + [K + 1], which nothing follows.

    Where the alphabet is whole there are no others, and the tree stays as it is.
    """
    K = len(symbols_K)
    if rows[0].shape[-1] == K:
        return rows
    found = []
    for d, full in enumerate(rows):
        inside = full[..., symbols_K]
        known = np.concatenate([inside, np.maximum(1 - inside.sum(axis=-1, keepdims=True), 0.0)], axis=-1)
        tree = np.zeros((K + 1,) * (d + 1))
        tree[..., K] = 1.0
        tree[(slice(K),) * d] = known
        found.append(tree)
    return found


def cells_of(tokens_NL: np.ndarray, symbols_K: np.ndarray, vocabulary: int) -> np.ndarray:
    """Texts in the symbols of a lumped tree [N, L]: from the first other symbol on, all are "other"."""
    place_V = np.full(vocabulary, len(symbols_K))
    place_V[symbols_K] = np.arange(len(symbols_K))
    found_NL = place_V[tokens_NL]
    other_NL = np.maximum.accumulate(found_NL == len(symbols_K), axis=1)
    return np.where(other_NL, len(symbols_K), found_NL)


def laws(logits: list[np.ndarray], sampling: Sampling) -> list[np.ndarray]:
    """The distributions of a tree of logits."""
    return [distribution(rows, sampling) for rows in logits]


def joint(rows: list[np.ndarray], length: int) -> np.ndarray:
    """The law [V] * length of `length` tokens drawn one after another from a tree of distributions."""
    law = rows[0]
    for d in range(1, length):
        law = law[..., None] * rows[d]
    return law


@dataclass(frozen=True, kw_only=True)
class Reference:
    """Rows of the target and of drafters after prefixes, each computed once."""

    bundle: ModelBundle
    _known: dict[tuple[str, tuple[int, ...], int], np.ndarray] = field(default_factory=dict, repr=False)

    def logits(
        self, name: str, prefixes: Sequence[tuple[int, ...]], proposed: Sequence[int] | None = None
    ) -> np.ndarray:
        """Logits [N, V] after each prefix, of "target" or of the drafter `name`.

        `proposed` tells how many of each prefix's last tokens are proposals of the same round, which matters to heads.
        """
        speaker = self.bundle.target if name == TARGET else self.bundle.drafters[name]
        alone = proposed is None or isinstance(speaker, Llama) or speaker.prefix_alone
        since = [0] * len(prefixes) if alone else proposed
        keys = [(name, *pair) for pair in zip(prefixes, since, strict=True)]
        missing: dict[tuple[int, int], list[tuple[int, ...]]] = {}
        for _, prefix, count in dict.fromkeys(key for key in keys if key not in self._known):
            missing.setdefault((len(prefix), count), []).append(prefix)
        for (_, count), found in missing.items():
            contexts_NT = np.array(found, dtype=np.int64)
            rows = proposed_logits(speaker, contexts_NT, count) if count else next_logits(speaker, contexts_NT)
            self._known.update({(name, prefix, count): row for prefix, row in zip(found, rows, strict=True)})
        return np.stack([self._known[key] for key in keys])
