"""What the target and each drafter say after given contexts, by plain forwards: no cache, no session, no loop.

Decoders are held against these rows, so they share nothing with what they judge but the models.
Shapes: N contexts of T tokens each, V vocabulary, G proposals.
"""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import torch

from specledger.decoding.drafters import Drafter, DraftModel, MTPDrafter, NGramDrafter
from specledger.experiments.cast import Cast
from specledger.models.llama import Llama
from specledger.sampling.distributions import Sampling, distribution

TARGET = "target"
CHUNK_TOKENS = 16_384
MOST_CELLS = 5_000_000


def _llama_logits(model: Llama, contexts_NT: torch.Tensor) -> torch.Tensor:
    return model.logits(model.hidden(contexts_NT)[:, -1:])[:, -1]


def _mtp_logits(drafter: MTPDrafter, contexts_NT: torch.Tensor) -> torch.Tensor:
    hidden_NTD = drafter.target.hidden(contexts_NT[:, :-1])
    return drafter.mtp(drafter.target, hidden_NTD, contexts_NT[:, 1:])[:, -1]


@torch.inference_mode()
def _forwards(compute, contexts_NT: np.ndarray, device: torch.device) -> np.ndarray:
    count = max(1, CHUNK_TOKENS // contexts_NT.shape[1])
    chunks = [contexts_NT[start : start + count] for start in range(0, len(contexts_NT), count)]
    return np.concatenate([compute(torch.as_tensor(chunk, device=device)).cpu().numpy() for chunk in chunks])


def next_logits(speaker: Llama | Drafter, contexts_NT: np.ndarray) -> np.ndarray:
    """Logits [N, V] of the token after each context [N, T], from the model or from a drafter.

    T is at most the model's context, and at least 2 for an MTP module, which needs a hidden state
    and the token after it. Of an n-gram these are log probabilities.
    """
    match speaker:
        case Llama():
            return _forwards(lambda c: _llama_logits(speaker, c), contexts_NT, speaker.lm_head.weight.device)
        case DraftModel():
            return next_logits(speaker.model, contexts_NT)
        case MTPDrafter():
            device = speaker.target.lm_head.weight.device
            return _forwards(lambda c: _mtp_logits(speaker, c), contexts_NT, device)
        case NGramDrafter():
            return np.log(np.stack([speaker.ngram.probabilities(context) for context in contexts_NT]))
    raise ValueError(f"speaker must be a model or a drafter, got {type(speaker).__name__}")


def speaker_of(cast: Cast, name: str) -> Llama | Drafter:
    return cast.target if name == TARGET else cast.drafters[name]


def sequences_of(vocabulary: int, length: int) -> np.ndarray:
    """Every sequence of `length` symbols [V^length, length], in order."""
    found = list(itertools.product(range(vocabulary), repeat=length))
    return np.array(found, dtype=np.int64).reshape(vocabulary**length, length)


def depth_for(vocabulary: int, wanted: int = 2) -> int:
    """How deep a tree of `vocabulary` symbols is enumerated: as wanted while its cells number at most 5 million.

    At least 1, since the bonus token shows only in pairs.
    """
    return max(1, max((d for d in range(wanted + 1) if vocabulary ** (d + 1) <= MOST_CELLS), default=1))


def tree_logits(speaker: Llama | Drafter, prompt: Sequence[int], depth: int, vocabulary: int) -> list[np.ndarray]:
    """Logits after the prompt and every continuation of it: entry d is [V] * d + [V], d from 0 to `depth`."""
    found = []
    for d in range(depth + 1):
        tails = sequences_of(vocabulary, d)
        contexts_NT = np.concatenate([np.tile(np.asarray(prompt, dtype=np.int64), (len(tails), 1)), tails], axis=1)
        found.append(next_logits(speaker, contexts_NT).reshape((vocabulary,) * (d + 1)))
    return found


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

    cast: Cast
    _known: dict[tuple[str, tuple[int, ...]], np.ndarray] = field(default_factory=dict, repr=False)

    def logits(self, name: str, prefixes: Sequence[tuple[int, ...]]) -> np.ndarray:
        """Logits [N, V] after each prefix, of "target" or of the drafter `name`."""
        missing: dict[int, list[tuple[int, ...]]] = {}
        for prefix in dict.fromkeys(prefixes):
            if (name, prefix) not in self._known:
                missing.setdefault(len(prefix), []).append(prefix)
        for found in missing.values():
            rows = next_logits(speaker_of(self.cast, name), np.array(found, dtype=np.int64))
            self._known.update({(name, prefix): row for prefix, row in zip(found, rows, strict=True)})
        return np.stack([self._known[name, prefix] for prefix in prefixes])
