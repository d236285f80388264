"""The engine `batched`: several texts of different accepted lengths in one forward pass of the target.

Each row is decoded by its own rounds with its own uniforms, through the same proposals and the same rule as a text
alone; only the forward passes are shared. So a row's distribution is that of the row alone.
Shapes: B rows, T positions, V vocabulary.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from specledger.decoding.counts import Generated, Round
from specledger.decoding.drafter import Drafter, DrafterSession
from specledger.decoding.engines import Engine
from specledger.decoding.loops import check_gamma, prompted
from specledger.decoding.proposals import Output, Proposal, no_proposal
from specledger.decoding.verification import judged
from specledger.foundation.devices import synchronize
from specledger.models.arrays import to_host
from specledger.models.llama import rope_tables
from specledger.models.rows import RowCache
from specledger.sampling.distributions import Sampling
from specledger.sampling.uniforms import Uniforms
from specledger.theory.trees import Tree


def row_cache(model: Any, rows: int, capacity: int) -> RowCache:
    """An empty cache for that many texts of at most `capacity` tokens each."""
    config, weight, angles = model.config, model.lm_head.weight, None
    if hasattr(config, "rope_theta"):  # a model of the study, whose blocks are told the angles
        angles = tuple(table.to(weight) for table in rope_tables(config.head_width, capacity, config.rope_theta))
    return RowCache(rows=rows, capacity=capacity, context=config.context, device=weight.device, angles=angles)


class ModelRows:
    """A model of several texts: `logits` takes each row's new tokens, of which there may be unequally many."""

    def __init__(self, model: Any, texts: Sequence[Sequence[int]], capacity: int):
        self.model, self.cache = model, row_cache(model, len(texts), capacity)
        self.device = model.lm_head.weight.device
        before = [text[:-1] for text in texts]
        if max(map(len, before)):
            width = max(map(len, before))
            model.outputs(self._batch(before, width), self.cache, 1)
            self.cache.rollback([len(text) for text in before])

    def _batch(self, new: Sequence[Sequence[int]], width: int) -> torch.Tensor:
        padded = [[*tokens, *[0] * (width - len(tokens))] for tokens in new]
        return torch.tensor(padded, dtype=torch.int64, device=self.device)

    def logits(self, new: Sequence[Sequence[int]]) -> np.ndarray:
        """Logits [B, T, V] of the new tokens; rows with fewer than T hold what means nothing at their end.

        Of the cache each row keeps what it was given and nothing of what filled it up.
        """
        width, lengths_B = max(map(len, new)), self.cache.lengths_B
        found_BTV = self.model.outputs(self._batch(new, width), self.cache, width)[2]
        self.cache.rollback(lengths_B + [len(tokens) for tokens in new])
        return to_host(found_BTV)


class RowsOfModel:
    """The draft model of several texts, which drafts a chain for each at once; by the draws of `DrafterSession`."""

    def __init__(self, drafter: Drafter, engine: Engine, sampling: Sampling, texts, capacity: int):
        self.rules, self.sampling, self.vocabulary = engine.rules, sampling, drafter.vocabulary
        self.threshold = drafter.threshold
        self.rows = ModelRows(drafter.parts[0], texts, capacity)

    def propose(self, texts: list[list[int]], gammas: list[int], uniforms: list[Uniforms]) -> list[Proposal]:
        drawn = [each.draft.random(gamma) if gamma else None for gamma, each in zip(gammas, uniforms, strict=True)]
        tokens: list[list[int]] = [[] for _ in texts]
        declared: list[list[np.ndarray]] = [[] for _ in texts]
        cached_B = self.rows.cache.lengths_B
        going = [gamma > 0 for gamma in gammas]
        new = [text[length:] if on else [] for text, length, on in zip(texts, cached_B, going, strict=True)]
        caught_up = [max(len(one) - 1, 0) for one in new]
        for place in range(max(gammas)):
            if not any(going):
                break
            logits_BTV = self.rows.logits(new)
            for row, on in enumerate(going):
                if not on:
                    new[row] = []
                    continue
                probs_V = self.rules.distribution(logits_BTV[row, len(new[row]) - 1][None], self.sampling)[0]
                token = self.rules.draw(probs_V, drawn[row][place])
                tokens[row].append(token)
                declared[row].append(probs_V)
                going[row] = place + 1 < gammas[row] and probs_V[token] >= self.threshold
                new[row] = [token] if going[row] else []
        return [
            Proposal(tokens=found, probs_GV=np.array(rows), forwards=len(found), caught_up=late)
            if found
            else no_proposal(self.vocabulary)
            for found, rows, late in zip(tokens, declared, caught_up, strict=True)
        ]

    def observe(self, lengths: list[int]) -> None:
        self.rows.cache.rollback(lengths)

    def select(self, rows: list[int]) -> None:
        self.rows.cache.select(rows)


class RowsApart:
    """Drafters that run no model: each row has its own, as a text alone has."""

    def __init__(self, drafter: Drafter, engine: Engine, sampling: Sampling, texts, capacity: int):
        self.sessions: list[DrafterSession] = [drafter.open(engine, sampling, capacity) for _ in texts]

    def propose(self, texts: list[list[int]], gammas: list[int], uniforms: list[Uniforms]) -> list[Proposal]:
        every = zip(self.sessions, texts, gammas, uniforms, strict=True)
        return [session.propose(text, gamma, each.draft) for session, text, gamma, each in every]

    def observe(self, lengths: list[int]) -> None:
        for session, length in zip(self.sessions, lengths, strict=True):
            session.observe(NO_OUTPUT, length)

    def select(self, rows: list[int]) -> None:
        self.sessions = [self.sessions[row] for row in rows]


NO_OUTPUT = Output(logits_TV=None, hidden_TD=np.empty((0, 1)), first=0)


@dataclass(kw_only=True)
class _Text:
    """One row while it is decoded; `number` is its place among all prompts."""

    number: int
    tokens: list[int]
    end: int
    uniforms: Uniforms
    rounds: list[Round] = field(default_factory=list)


@torch.inference_mode()
def speculative_rows(
    target: Any,
    drafter: Drafter | None,
    prompts: Sequence[Sequence[int]],
    *,
    gamma: int,
    count: int,
    engine: Engine,
    sampling: Sampling,
    uniforms: Sequence[Uniforms],
) -> list[Generated]:
    """Decode `count` tokens after each prompt together, with each row's own uniforms; without a drafter plainly.

    Rows that are done leave the batch. `wall_s` of every text is that of all. ValueError for a gamma out of range,
    for a drafter of trees or of the target's states, and for an empty prompt.
    """
    if drafter is not None:
        check_gamma(gamma, drafter, target.config.context)
        if drafter.tree is not None or drafter.proposer.states:
            raise ValueError(
                f"{drafter.name}: the engine batched decodes chains of drafters without the target's states"
            )
    device = target.lm_head.weight.device
    texts = [
        _Text(number=number, tokens=prompted(prompt), end=len(prompt) + count, uniforms=each)
        for number, (prompt, each) in enumerate(zip(prompts, uniforms, strict=True))
    ]
    synchronize(device)
    begun = time.perf_counter()
    capacity = max(text.end for text in texts) + gamma + 1
    whole = [text.tokens for text in texts]
    verifier, drafting = ModelRows(target, whole, capacity), None
    if drafter is not None:
        kind = RowsOfModel if hasattr(drafter.parts[0], "lm_head") else RowsApart
        drafting = kind(drafter, engine, sampling, whole, capacity)
    done: dict[int, tuple[list[int], list[Round]]] = {}
    while texts:
        proposals = _proposals(drafting, texts, gamma, target.config.vocabulary)
        given = [[text.tokens[-1], *one.tokens] for text, one in zip(texts, proposals, strict=True)]
        logits_BTV = verifier.logits(given)
        for row, (text, proposal) in enumerate(zip(texts, proposals, strict=True)):
            _verify(text, proposal, logits_BTV[row], engine, sampling)
        lengths = [len(text.tokens) - 1 for text in texts]
        verifier.cache.rollback(lengths)
        if drafting is not None:
            drafting.observe(lengths)
        left = [row for row, text in enumerate(texts) if len(text.tokens) < text.end]
        if len(left) < len(texts):
            done |= {t.number: (t.tokens, t.rounds) for t in texts if len(t.tokens) >= t.end}
            texts = [texts[row] for row in left]
            for part in (verifier.cache, drafting) if left else ():
                if part is not None:
                    part.select(left)
    synchronize(device)
    wall_s = time.perf_counter() - begun
    return [
        Generated(tokens=done[number][0][len(prompt) :], rounds=done[number][1], wall_s=wall_s)
        for number, prompt in enumerate(prompts)
    ]


def _proposals(drafting, texts: list[_Text], gamma: int, vocabulary: int) -> list[Proposal]:
    if drafting is None:
        return [no_proposal(vocabulary)] * len(texts)
    gammas = [min(gamma, text.end - len(text.tokens) - 1) for text in texts]
    if not any(gammas):
        return [no_proposal(vocabulary)] * len(texts)
    return drafting.propose([text.tokens for text in texts], gammas, [text.uniforms for text in texts])


def _verify(text: _Text, proposal: Proposal, logits_TV: np.ndarray, engine: Engine, sampling: Sampling) -> None:
    """The verdict for one row."""
    drafted = len(proposal.tokens)
    tree, logits_TV = Tree.chain(drafted), logits_TV[: drafted + 1]
    found = judged(engine.rules, sampling, logits_TV, proposal, tree, text.uniforms)
    taken = found.last + 1
    text.tokens += [*proposal.tokens[:taken], found.token]
    accept_probs = tuple(map(float, found.accept_probs))
    text.rounds.append(Round(drafted, taken, proposal.forwards, accept_probs))
