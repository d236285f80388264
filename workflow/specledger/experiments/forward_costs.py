"""What the pieces of a round cost, each measured by itself on validation text, apart from the texts of the sweep.

`forward`: one target forward over gamma + 1 new positions.
`propose`: a drafter's whole proposal. `round`: both, with all that lies between; plain decoding: one token.
They are measured once a block of texts, after a text of one of a few lengths in turn, so that what slows the
machine for a while slows both.
"""

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

import numpy as np
import torch

from specledger.decoding.counts import Clock
from specledger.decoding.engines import Engine
from specledger.decoding.proposals import Output, Proposal, no_proposal
from specledger.decoding.verification import Verifier
from specledger.experiments.bundle import ModelBundle
from specledger.experiments.sweep import PLAIN, served
from specledger.foundation.devices import synchronize
from specledger.models.llama import Llama
from specledger.sampling.distributions import Sampling
from specledger.sampling.uniforms import Uniforms

MIN_RUN_S = 0.01  # of one piece in a block of texts
MIN_CALLS = 3


def seconds_of(call: Callable[[], object], device: torch.device) -> float:
    """Median seconds of one call, of as many as `MIN_RUN_S` holds; `torch.utils.benchmark` takes four times as long."""
    call()
    found: list[float] = []
    while len(found) < MIN_CALLS or sum(found) < MIN_RUN_S:
        synchronize(device)
        start = time.perf_counter()
        call()
        synchronize(device)
        found.append(time.perf_counter() - start)
    return float(np.median(found))


class Stand:
    """An engine before one round after `tokens`, which can be played again and again."""

    def __init__(
        self, bundle: ModelBundle, engine: Engine, drafter: str, gamma: int, tokens: list[int], sampling: Sampling
    ):
        self.bundle, self.tokens, self.gamma, self.uniforms = bundle, tokens, gamma, Uniforms("costs")
        self.engine, capacity = engine, len(tokens) + gamma + 1
        self.verifier = Verifier(engine, bundle.target_of(drafter), sampling, capacity, gamma=gamma)
        self.off = Clock(bundle.target.lm_head.weight.device, clocked=False)
        self.nothing = no_proposal(bundle.target.config.vocabulary)
        if drafter == PLAIN:
            self.play_plain()
            return
        self.drafter = bundle.drafter(drafter, gamma)
        self.drafting = self.drafter.open(engine, sampling, capacity)
        self.known = self._before_the_last()
        self.play()

    @property
    def _caches_states(self) -> bool:
        return self.drafter.proposer.states and self.engine.context_rule == "sliding"

    def _before_the_last(self) -> Output:
        """The target's output of the round before, which has just made the last token final."""
        earlier = self.tokens[:-1]
        output = self.verifier.verify(earlier, self.nothing, self.uniforms, self.off).output
        self.verifier.rollback(len(earlier))
        if not self._caches_states:
            return output
        self.drafting.observe(output, len(earlier))
        self.drafting.propose(self.tokens, self.gamma, self.uniforms.draft)
        return replace(output.along((len(output.hidden_TD) - 1,)), logits_TV=None, first=len(earlier) - 1)

    def propose(self) -> Proposal:
        """The drafter's proposal, as if the last token had just come out."""
        self.drafting.observe(self.known, len(self.tokens) - 1)
        return self.drafting.propose(self.tokens, self.gamma, self.uniforms.draft)

    def play(self) -> None:
        """A whole round."""
        self.verifier.verify(self.tokens, self.propose(), self.uniforms, self.off)
        self.verifier.rollback(len(self.tokens) - 1)

    def play_plain(self) -> None:
        """One token of plain decoding."""
        self.verifier.sample(self.tokens, self.uniforms, self.off)
        self.verifier.rollback(len(self.tokens) - 1)


def model_forward(model: Llama, engine: Engine, tokens: list[int], positions: int) -> Callable[[], object]:
    """A call that computes the last `positions` of `tokens` with all before them known."""
    session = engine.open(model, len(tokens))
    before = len(tokens) - positions
    session.forward(tokens[:before], rows=1)

    def call():
        session.rollback(before)
        return session.forward(tokens, rows=positions)

    return call


@torch.inference_mode()
def cost_rows(
    bundle: ModelBundle,
    engines: list[Engine],
    gammas: dict[str, list[int]],
    tokens: list[int],
    *,
    sampling: Sampling,
) -> Iterator[dict]:
    """One row per engine and piece, after the text `tokens`."""
    device = bundle.target.lm_head.weight.device
    for engine in engines:
        asked = served(engine, gammas)
        for gamma in sorted({0} | {gamma for choices in asked.values() for gamma in choices}):
            about = {"engine": engine.name, "part": "forward", "drafter": PLAIN, "gamma": gamma, "positions": gamma + 1}
            yield {**about, "seconds": seconds_of(model_forward(bundle.target, engine, tokens, gamma + 1), device)}
        plain = Stand(bundle, engine, PLAIN, 0, tokens, sampling).play_plain
        about = {"engine": engine.name, "part": "round", "drafter": PLAIN, "gamma": 0, "positions": 1}
        yield {**about, "seconds": seconds_of(plain, device)}
        for name, choices in asked.items():
            for gamma in choices:
                about = {"engine": engine.name, "drafter": name, "gamma": gamma, "positions": 1}
                stand = Stand(bundle, engine, name, gamma, tokens, sampling)
                yield {**about, "part": "propose", "seconds": seconds_of(stand.propose, device)}
                yield {**about, "part": "round", "seconds": seconds_of(stand.play, device)}


def over_blocks(rows: Iterable[dict]) -> list[dict]:
    """One row per engine and piece: the median of its blocks, and their quartiles."""
    found: dict[tuple, list[dict]] = {}
    for row in rows:
        key = tuple(row[name] for name in ("engine", "part", "drafter", "gamma", "positions"))
        found.setdefault(key, []).append(row)
    told = []
    for same in found.values():
        lo, median, hi = np.quantile([row["seconds"] for row in same], (0.25, 0.5, 0.75)).tolist()
        told.append({**same[0], "seconds": median, "seconds_lo": lo, "seconds_hi": hi})
    return told
