"""When speculation stops paying: seconds of a forward pass by positions and batch, and texts decoded in batches."""

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

from specledger.decoding.drafter import Drafter
from specledger.decoding.engines import Engine
from specledger.decoding.rows import ModelRows, speculative_rows
from specledger.foundation.devices import synchronize
from specledger.sampling.distributions import Sampling
from specledger.sampling.uniforms import Uniforms, stream
from specledger.statistics.intervals import exp_t_interval


@torch.inference_mode()
def surface_rows(
    model: Any,
    *,
    sizes: Sequence[int],
    positions: Sequence[int],
    context: int,
    repeats: int,
    after_each: Callable[[], None] = lambda: None,
    name: str = "target",
) -> list[dict]:
    """forwards.csv: median seconds of a forward pass over `positions` new tokens of each of `batch` rows.

    `v` is over one position at the same batch size, `cost` over one position of one row. `context` tokens are cached.
    Numbers of positions take turns, so that a slow minute falls on all.
    """
    device, rows, first = model.lm_head.weight.device, [], None
    for batch in sizes:
        cached = [[1] * (context + 1)] * batch
        held = ModelRows(model, cached, context + max(positions) + 1)
        seconds: dict[int, list[float]] = {count: [] for count in positions}
        for repeat in range(repeats + 1):
            for count in positions:
                synchronize(device)
                begun = time.perf_counter()
                held.logits([[1] * count] * batch)
                synchronize(device)
                if repeat:  # the first of each shape is slower
                    seconds[count].append(time.perf_counter() - begun)
                held.cache.rollback([context] * batch)
        medians = {count: float(np.median(found)) for count, found in seconds.items()}
        first = first or medians[positions[0]]
        for count, median in medians.items():
            rows.append(
                {
                    "model": name,
                    "batch": batch,
                    "positions": count,
                    "seconds": median,
                    "v": median / medians[positions[0]],
                    "cost": median / first,
                }
            )
        after_each()
    return rows


def seconds_at(rows: Sequence[dict], batch: int, positions: float, model: str = "target") -> float:
    """Seconds of a forward pass, between the measured ones on a straight line."""
    sizes = sorted({row["batch"] for row in rows if row["model"] == model})
    by_size = []
    for size in sizes:
        those = sorted((r["positions"], r["seconds"]) for r in rows if r["model"] == model and r["batch"] == size)
        by_size.append(np.interp(positions, *zip(*those, strict=True)))
    return float(np.interp(batch, sizes, by_size))


def batch_rows(
    target: Any,
    methods: Sequence[tuple[Drafter, int]],
    prompts: Sequence[Sequence[int]],
    *,
    engine: Engine,
    sizes: Sequence[int],
    count: int,
    repeats: int,
    sampling: Sampling,
    surface: Sequence[dict],
    after_each: Callable[[], None] = lambda: None,
) -> list[dict]:
    """batch.csv: tokens per second of so many rows at once, plain and with each drafter, and the ratio predicted.

    The prompts take turns in filling the rows. In each repeat plain decoding and the drafters run in shuffled order,
    and the interval is over repeats. `predicted` prices the counted rounds by the surface: a round of the batch takes
    as many positions as its longest draft, and rounds go on until all rows are done.
    """
    rows = []
    warm = {"engine": engine, "sampling": sampling}
    for batch in sizes:
        seconds: dict[int, list[float]] = {place: [] for place in range(-1, len(methods))}
        counted: dict[int, list] = {place: [] for place in seconds}
        for repeat in range(repeats):
            chosen = [list(prompts[(repeat * batch + row) % len(prompts)]) for row in range(batch)]
            for place in (stream("pair-batches", batch, repeat).permutation(len(methods) + 1) - 1).tolist():
                drafter, gamma = methods[place] if place >= 0 else (None, 0)
                made = speculative_rows(
                    target,
                    drafter,
                    chosen,
                    gamma=gamma,
                    count=count,
                    uniforms=[Uniforms("pair-batches", batch, repeat, row) for row in range(batch)],
                    **warm,
                )
                seconds[place].append(made[0].wall_s)
                counted[place] += made
                after_each()
        for place, (drafter, gamma) in enumerate(methods):
            logs = np.log(np.array(seconds[-1]) / np.array(seconds[place]))
            speed = exp_t_interval(logs)
            per_round = sum(len(one.tokens) for one in counted[place]) / sum(len(one.rounds) for one in counted[place])
            rows.append(
                {
                    "drafter": drafter.name,
                    "gamma": gamma,
                    "batch": batch,
                    "repeats": repeats,
                    "plain_tokens_per_s": batch * count / float(np.median(seconds[-1])),
                    "tokens_per_s": batch * count / float(np.median(seconds[place])),
                    "speedup": speed.mean,
                    "speedup_lo": speed.lo,
                    "speedup_hi": speed.hi,
                    "tokens_per_round": per_round,
                    "predicted": predicted(surface, counted[place], batch, drafter.name, count),
                }
            )
    return rows


def predicted(surface: Sequence[dict], made: Sequence, batch: int, name: str, count: int) -> float:
    """The speed-up that the surface gives for these rounds: every group of `batch` texts was decoded together."""
    plain_s = speculative_s = 0.0
    drafts = name if any(row["model"] == name for row in surface) else None
    for start in range(0, len(made), batch):
        together = made[start : start + batch]
        plain_s += count * seconds_at(surface, batch, 1)
        for number in range(max(len(one.rounds) for one in together)):
            there = [one.rounds[number] for one in together if number < len(one.rounds)]
            speculative_s += seconds_at(surface, len(there), 1 + max(one.drafted for one in there))
            if drafts:
                forwards = max(one.draft_forwards for one in there)
                speculative_s += forwards * seconds_at(surface, len(there), 1, drafts)
    return plain_s / speculative_s


def stops_paying(rows: Sequence[dict], drafter: str) -> dict:
    """The first measured batch size at which a drafter is no gain, and the same by each end of the interval.

    None where it pays at every size that was measured.
    """
    those = sorted((row["batch"], row["speedup"], row["speedup_lo"], row["speedup_hi"]) for row in rows
                   if row["drafter"] == drafter)  # fmt: skip

    def first(place: int) -> int | None:
        return next((row[0] for row in those if row[place] is not None and row[place] < 1), None)

    return {"drafter": drafter, "batch": first(1), "earliest": first(2), "latest": first(3)}
