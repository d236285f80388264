"""A tiny model that decodes speculatively, right or with one of six faults: the audit is tried on it.

It draws many texts at once, so that hundreds of audits take seconds; `standin_server` serves it over HTTP.
Shapes: N texts, L tokens, G draft tokens of a round, V vocabulary; a table is [V, V, V]: the two tokens
before, and the next.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from specledger.audit.settings import ENDED, Batch, SamplingSettings
from specledger.audit.warpers import warped

FAULTS = {
    "residual": "after a rejection the token is drawn from p, not from the residual",
    "always": "each draft token is kept",
    "one-seed": "each request starts from the same seed",
    "cut-drafts": "a draft that ends early is discarded whole: drafts are selected by what they say",
    "top-k": "the draft model draws from its top tokens only, and its distribution is declared whole",
    "twice": "the first token comes twice",
}
LETTERS = " etaoinshrdlucmfwypvbgkqjxz"


@dataclass(frozen=True, kw_only=True)
class TinyModel:
    """Target and draft tables of logits; a token's letter is LETTERS[token], and `end` ends a text."""

    target_VVV: NDArray[np.float64]
    draft_VVV: NDArray[np.float64]
    end: int | None = None

    @classmethod
    def made(cls, seed: int = 0, *, vocabulary: int = 16, sharpness: float = 1.5, end: int | None = None):
        """Random tables; the draft is the target with noise, as a smaller model would be."""
        random = np.random.default_rng(seed)
        near = random.normal(size=(1, vocabulary, vocabulary))
        far = random.normal(size=(vocabulary, vocabulary, vocabulary))
        target = sharpness * (near + 0.5 * far)
        draft = sharpness * (near + 0.25 * far) + 0.6 * random.normal(size=target.shape)
        return cls(target_VVV=target, draft_VVV=draft, end=end)

    def next_logits(self, ids_NT: NDArray[np.int64]) -> NDArray[np.float64]:
        """The target's [N, V] after the last two ids."""
        return self.target_VVV[ids_NT[:, -2], ids_NT[:, -1]]

    def draft_logits(self, ids_NT: NDArray[np.int64]) -> NDArray[np.float64]:
        return self.draft_VVV[ids_NT[:, -2], ids_NT[:, -1]]

    def ids(self, text: str) -> list[int]:
        """The tokens of a prompt; letters that there are not count as the space. At least two."""
        size = self.target_VVV.shape[0]
        known = [LETTERS.find(letter) for letter in text.lower()]
        return [0, 0, *(one if 0 <= one < size else 0 for one in known)]

    def text(self, ids: Sequence[int]) -> str:
        return "".join(LETTERS[one] for one in ids if one not in (ENDED, self.end) and one < len(LETTERS))


class TinyDecoder:
    """A system of the audit: plain where `gamma` is 0, else speculative, with a fault of `FAULTS` or none."""

    version = "1"

    def __init__(self, model: TinyModel, *, gamma: int = 3, fault: str | None = None, per_request: int = 64):
        if fault is not None and fault not in FAULTS:
            raise ValueError(f"fault must be one of {', '.join(FAULTS)}, got {fault}")
        self.name = f"stand-in, {fault or ('right' if gamma else 'plain')}"
        self.model, self.gamma, self.fault, self.per_request = model, gamma, fault, per_request
        self._tables: dict = {}

    def close(self) -> None:
        pass

    def sample(self, prompt_ids: Sequence[int], count: int, settings: SamplingSettings) -> Batch:
        if self.fault == "one-seed":  # as a server would: request by request
            sizes = [self.per_request] * (count // self.per_request) + [count % self.per_request]
            parts = [self._drawn(prompt_ids, n, settings, np.random.default_rng(7)) for n in sizes if n]
            ids_NL = np.concatenate(parts)
        else:
            ids_NL = self._drawn(prompt_ids, count, settings, np.random.default_rng(settings.seed))
        return Batch(ids=ids_NL, seconds=0.0, texts=[self.model.text(row) for row in ids_NL])

    def _drawn(self, prompt_ids, count: int, settings: SamplingSettings, random) -> NDArray[np.int64]:
        p, q, cut = self._warped(settings)
        L, size = settings.tokens, max(settings.tokens, 2)
        out = np.zeros((count, 2 + size + self.gamma + 2), dtype=np.int64)
        out[:, :2] = list(prompt_ids)[-2:]
        filled = np.full(count, 2)
        if self.fault == "twice":
            out[:, 2] = out[:, 3] = drawn(p[out[:, 0], out[:, 1]], random)
            filled[:] = 4
        while (filled < 2 + L).any():
            rows = np.nonzero(filled < 2 + L)[0]
            out, filled = self._round(out, filled, rows, p, q, cut, random)
        ids_NL = out[:, 2 : 2 + L]
        return ids_NL if self.model.end is None else cut_at_end(ids_NL, self.model.end)

    def _warped(self, settings: SamplingSettings):
        """Target and draft under the settings, and what the draft draws from: [V, V, V] each."""
        key = (settings.temperature, settings.top_k, settings.top_p, settings.min_p)
        if settings.repetition_penalty is not None:
            raise ValueError("the stand-in has no repetition_penalty")
        if key not in self._tables:
            shape = self.model.target_VVV.shape
            flat = [table.reshape(-1, shape[-1]) for table in (self.model.target_VVV, self.model.draft_VVV)]
            p, q = (warped(table, settings).reshape(shape) for table in flat)
            cut = q
            if self.fault == "top-k":
                kept = q >= np.partition(q, -4, axis=-1)[..., -4, None]
                cut = np.where(kept, q, 0) / np.where(kept, q, 0).sum(axis=-1, keepdims=True)
            self._tables[key] = p, q, cut
        return self._tables[key]

    def _round(self, out, filled, rows, p, q, cut, random):
        """One round of the texts `rows`: draft, verify, and one token more."""
        before, last = out[rows, filled[rows] - 2], out[rows, filled[rows] - 1]
        drafts, lengths = self._draft(before, last, cut, random)
        alive = np.ones(len(rows), dtype=bool)
        at = filled[rows].copy()
        for g in range(self.gamma):
            proposed = alive & (g < lengths)
            token = drafts[:, g]
            p_row, q_row = p[before, last], q[before, last]
            each = np.arange(len(rows))
            keep = random.random(len(rows)) * q_row[each, token] < p_row[each, token]
            if self.fault == "always":
                keep[:] = True
            residual = p_row if self.fault == "residual" else np.maximum(p_row - q_row, 0)
            other = drawn(np.where(residual.sum(axis=1, keepdims=True) > 0, residual, p_row), random)
            token = np.where(keep, token, other)
            out[rows[proposed], at[proposed]] = token[proposed]
            at[proposed] += 1
            before, last = np.where(proposed, last, before), np.where(proposed, token, last)
            alive &= ~proposed | keep
        token = drawn(p[before, last], random)
        out[rows[alive], at[alive]] = token[alive]
        at[alive] += 1
        filled = filled.copy()
        filled[rows] = at
        return out, filled

    def _draft(self, before, last, cut, random):
        """[N, G] draft tokens and how many of them are proposed; the draft stops where it is unsure."""
        drafts = np.zeros((len(before), max(self.gamma, 1)), dtype=np.int64)
        lengths = np.full(len(before), self.gamma)
        for g in range(self.gamma):
            row = cut[before, last]
            if self.fault == "cut-drafts":
                lengths = np.where((row.max(axis=1) < 0.35) & (lengths > g), g, lengths)
            drafts[:, g] = drawn(row, random)
            before, last = last, drafts[:, g]
        if self.fault == "cut-drafts":
            lengths = np.where(lengths < 2, 0, lengths)
        return drafts, lengths


def drawn(weights_NV: NDArray, random: np.random.Generator) -> NDArray[np.int64]:
    """[N] tokens, each in proportion to its row of weights."""
    cumulative = np.cumsum(weights_NV, axis=1)
    aim = random.random(len(weights_NV)) * cumulative[:, -1]
    token = (cumulative <= aim[:, None]).sum(axis=1)
    return np.minimum(token, (cumulative < cumulative[:, -1:]).sum(axis=1))


def cut_at_end(ids_NL: NDArray[np.int64], end: int) -> NDArray[np.int64]:
    """The texts with nothing after their first `end`."""
    ended = np.cumsum(ids_NL == end, axis=1)
    return np.where((ended > 0) & ~((ended == 1) & (ids_NL == end)), ENDED, ids_NL)
