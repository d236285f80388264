"""Do two engines of one rule of context write the same text from the same uniforms? If not, where, and how narrowly?

Their sums round differently, so that a uniform that falls on a cut to within a rounding may part them.
Shapes: G proposals, V vocabulary.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from specledger.decoding.counts import Generated
from specledger.decoding.engines import CONTEXT_RULES
from specledger.decoding.proposals import Proposal
from specledger.experiments.bundle import ModelBundle
from specledger.experiments.sweep import PLAIN, Method, text_uniforms
from specledger.models.arrays import to_host
from specledger.sampling.distributions import Sampling, distribution
from specledger.sampling.uniforms import Uniforms

ENGINES = tuple(CONTEXT_RULES)  # the eager ones first: a text is held against theirs


class Recorded:
    """A generator that keeps what it gave, call by call."""

    def __init__(self, generator: np.random.Generator):
        self.generator, self.given = generator, []

    def random(self, size=None):
        found = self.generator.random(size)
        self.given.append(np.atleast_1d(found).ravel())
        return found


@dataclass(kw_only=True)
class Watched:
    """Stands in for an engine, and keeps the logits [G + 1, V] of each of the target's forwards."""

    honest: Any
    target: Any
    logits: list[np.ndarray] = field(default_factory=list)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.honest, name)

    def open(self, model: Any, capacity: int) -> Any:
        session = self.honest.open(model, capacity)
        if model is self.target:
            forward = session.forward

            def watched(tokens: Sequence[int], rows: int) -> Any:
                output = forward(tokens, rows)
                self.logits.append(to_host(output.logits_TV))
                return output

            session.forward = watched
        return session


@dataclass(frozen=True, kw_only=True)
class WatchedDrafter:
    """Stands in for a drafter, and keeps its proposals."""

    honest: Any
    proposals: list[Proposal] = field(default_factory=list)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.honest, name)

    def open(self, *arguments: Any) -> Any:
        session = self.honest.open(*arguments)
        propose = session.propose

        def watched(*asked: Any) -> Proposal:
            self.proposals.append(propose(*asked))
            return self.proposals[-1]

        session.propose = watched
        return session


def agreement_rows(
    bundle: ModelBundle,
    texts: Sequence[tuple[Method, dict, Generated]],
    prompt: list[int],
    *,
    count: int,
    sampling: Sampling,
) -> Iterator[dict]:
    """One row per text of an engine that is not the first of its rule of context, against that one's."""
    first: dict[tuple, tuple[Method, Generated]] = {}
    for method, row, text in sorted(texts, key=lambda one: ENGINES.index(one[0].engine.name)):
        key = (row["context_rule"], row["seed"], row["repeat"], method.drafter, method.gamma)
        reference, known = first.setdefault(key, (method, text))
        if reference is method:
            continue
        place = first_divergence(text.tokens, known.tokens)
        shared = {"count": count, "sampling": sampling, "uniforms": text_uniforms(row["seed"], row["repeat"])}
        yield {
            **{key: row[key] for key in ("seed", "repeat", "engine")},
            "reference": reference.engine.name,
            **{key: row[key] for key in ("drafter", "gamma", "tokens")},
            "identical": place is None,
            "first_divergence": place,
            "margin": None if place is None else margin(bundle, reference, prompt, place, **shared),
        }


def first_divergence(text: Sequence[int], reference: Sequence[int]) -> int | None:
    """The first place at which the tokens differ, None where they are the same."""
    return next((place for place, (a, b) in enumerate(zip(text, reference, strict=True)) if a != b), None)


def to_nearest_cut(weights_V: np.ndarray, uniform: float) -> float:
    """How far a draw's uniform lies from the nearest cut between two symbols, in probability."""
    sums_V = np.cumsum(weights_V)
    return float(np.abs(sums_V[:-1] / sums_V[-1] - uniform).min())


def margin(
    bundle: ModelBundle,
    method: Method,
    prompt: list[int],
    place: int,
    *,
    count: int,
    sampling: Sampling,
    uniforms: Uniforms,
) -> float | None:
    """How near the nearest decision of the round that wrote token `place` came to falling the other way.

    `method` is the reference, of an eager engine; its text is decoded once more, watched. Greedy: what lies between
    the target's two likeliest symbols. None where something is cut off, since a cut may move with a rounding.
    """
    if sampling.temperature and len(sampling.warpers) > 1:
        return None
    engine = Watched(honest=method.engine, target=bundle.target)
    streams = [Recorded(generator) for generator in (uniforms.draft, uniforms.accept, uniforms.extra)]
    uniforms.draft, uniforms.accept, uniforms.extra = streams
    drafter = None if method.drafter == PLAIN else WatchedDrafter(honest=bundle.drafters[method.drafter])
    watched = ModelBundle(target=bundle.target, drafters={method.drafter: drafter})
    again = Method(engine=engine, drafter=method.drafter, gamma=method.gamma)
    text = again.decode(watched, prompt, count=count, sampling=sampling, uniforms=uniforms)
    number = round_of(text, place)
    if sampling.temperature == 0:
        two_G2 = np.sort(distribution(engine.logits[number], Sampling()), axis=-1)[:, -2:]
        return float((two_G2[:, 1] - two_G2[:, 0]).min())
    p_GV, extra = distribution(engine.logits[number], sampling), float(streams[2].given[number][0])
    if drafter is None:
        return to_nearest_cut(p_GV[0], extra)
    # What proposed nothing drew nothing that counts.
    before = sum(1 for proposal in drafter.proposals[:number] if proposal.tokens)
    drawn_G = streams[0].given[before] if before < len(streams[0].given) else np.empty(0)
    return _of_round(
        p_GV, drafter.proposals[number], drawn_G, streams[1].given[number], extra, text.rounds[number].accept_len
    )


def round_of(text: Generated, place: int) -> int:
    """Which round, from 0, wrote token `place`."""
    ends = np.cumsum([done.accept_len + 1 for done in text.rounds])
    return int(np.searchsorted(ends, place, side="right"))


def _of_round(
    p_GV: np.ndarray, proposal: Proposal, drawn_G: np.ndarray, accept_G: np.ndarray, extra: float, accept_len: int
) -> float:
    """The narrowest of the round's draws and verdicts."""
    found = []
    for place, (token, q_V) in enumerate(zip(proposal.tokens, proposal.probs_GV, strict=True)):
        if place < len(drawn_G) and q_V.max() < 1.0:
            found.append(to_nearest_cut(q_V, drawn_G[place]))
        found.append(abs(float(accept_G[place] * q_V[token] - p_GV[place, token])))
    weights_V = p_GV[accept_len]
    if accept_len < len(proposal.tokens):
        weights_V = np.maximum(weights_V - proposal.probs_GV[accept_len], 0.0)
    found.append(to_nearest_cut(weights_V, extra))
    return min(found)
