"""What one forward costs: of the target over 1 and gamma + 1 new positions, of each drafter over 1."""

from collections.abc import Callable, Iterator

import numpy as np
import torch
from torch.utils.benchmark import Timer

from specledger.decoding.drafters import DraftModel, MTPDrafter, NGramDrafter
from specledger.decoding.engines import Engine, Output
from specledger.experiments.cast import Cast
from specledger.models.llama import Llama
from specledger.sampling.distributions import Sampling

MIN_RUN_S = 0.2


def seconds_of(call: Callable[[], object], threads: int) -> dict:
    """Median and quartiles of the seconds of one call; `Timer` waits for a GPU by itself."""
    measured = Timer("call()", globals={"call": call}, num_threads=threads).blocked_autorange(min_run_time=MIN_RUN_S)
    lo, median, hi = np.quantile(np.array(measured.times), (0.25, 0.5, 0.75))
    return {"seconds": median, "seconds_lo": lo, "seconds_hi": hi}


def model_forward(model: Llama, engine: Engine, tokens: list[int], positions: int) -> Callable[[], object]:
    """A call that computes the last `positions` of `tokens` with all before them known."""
    session = engine.open(model, len(tokens))
    before = len(tokens) - positions
    session.forward(tokens[:before], rows=1)

    def call():
        session.rollback(before)
        return session.forward(tokens, rows=positions)

    return call


def mtp_forward(drafter: MTPDrafter, engine: Engine, tokens: list[int]) -> Callable[[], object]:
    """A call of the MTP module for one new position."""
    known = engine.open(drafter.target, len(tokens)).forward(tokens[:-1], rows=1)
    session = engine.open_mtp(drafter.target, drafter.mtp, len(tokens))
    if engine.context_rule == "window":
        return lambda: session.forward(known, tokens)
    session.forward(known, tokens)
    last = Output(logits_TV=known.logits_TV, hidden_TD=known.hidden_TD[-1:], first=len(tokens) - 2)

    def call():
        session.cache.rollback(len(tokens) - 2)
        return session.forward(last, tokens)

    return call


def drafter_forward(drafter, engine: Engine, tokens: list[int]) -> Callable[[], object]:
    """A call of one forward of a drafter (for the n-gram: one proposal)."""
    match drafter:
        case DraftModel():
            return model_forward(drafter.model, engine, tokens, 1)
        case MTPDrafter():
            return mtp_forward(drafter, engine, tokens)
        case NGramDrafter():
            session = drafter.open(engine, Sampling(), len(tokens))
            generator = np.random.default_rng(0)
            return lambda: session.propose(tokens, 1, generator)
    raise ValueError(f"drafter {drafter.name} has no forward to time")


@torch.inference_mode()
def cost_rows(
    cast: Cast, engines: list[Engine], gammas: dict[str, list[int]], tokens: list[int], *, threads: int
) -> Iterator[dict]:
    """One row per engine, model and number of new positions, at the end of `tokens`."""
    positions = sorted({1} | {gamma + 1 for choices in gammas.values() for gamma in choices})
    for engine in engines:
        for count in positions:
            call = model_forward(cast.target, engine, tokens, count)
            yield {"engine": engine.name, "model": "target", "positions": count, **seconds_of(call, threads)}
        for name in gammas:
            call = drafter_forward(cast.drafters[name], engine, tokens)
            yield {"engine": engine.name, "model": name, "positions": 1, **seconds_of(call, threads)}
