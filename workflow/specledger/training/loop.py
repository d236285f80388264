"""The loop of every training: steps, evaluations on the way, checkpoints; what is trained is a `Subject`.

Shapes: N sequences (or steps, of losses), T = context, A tokens ahead of it.
"""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from specledger.corpus.text import Corpus
from specledger.foundation.errors import UserError
from specledger.training.batches import validation_windows
from specledger.training.checkpointer import Checkpointer
from specledger.training.precision import precision_of
from specledger.training.schedule import rate_of
from specledger.training.settings import TrainingSettings
from specledger.training.state import Best, State
from specledger.training.step import make_optimizer, update
from specledger.training.subject import Subject

EVALUATION_BATCH = 128
TRUNK, HEAD, ORDER, DRAFTER = range(4)  # what a training draws at random, each from a stream of its own
INTERIM_WINDOWS = 256  # validation windows of an evaluation on the way; the last one takes them all


@dataclass(frozen=True, kw_only=True)
class Fitted:
    """What the loop yields; the losses are over the whole validation text, by the subject's names."""

    history: list[dict]
    chosen_step: int
    losses: dict[str, float]
    train_s: float


@torch.inference_mode()
def evaluate(subject: Subject, windows: Tensor) -> dict[str, float]:
    """The subject's losses over validation windows [N, T + A], each window weighing the same."""
    totals = dict.fromkeys(subject.names, 0.0)
    for chunk in windows.split(EVALUATION_BATCH):
        for name, loss in zip(subject.names, subject.losses(chunk), strict=True):
            totals[name] += loss.item() * len(chunk)
    return {name: total / len(windows) for name, total in totals.items()}


def stream(seed: int, purpose: int) -> torch.Generator:
    """A generator of its own for each purpose; PyTorch's looks at 32 bits of a seed, so they are mixed first."""
    return torch.Generator().manual_seed(int(np.random.SeedSequence((seed, purpose)).generate_state(1)[0]))


def _diverged(loss: float, step: int, checkpointer: Checkpointer | None) -> UserError:
    kept = "" if checkpointer is None else f"; {checkpointer.kept()}"
    return UserError(f"training: the loss is {loss} at step {step}; lower training.*.learning_rate{kept}")


def _refuse_unless_finite(recent: list[Tensor], step: int, checkpointer: Checkpointer | None) -> None:
    """UserError that names the first step whose loss is no number; the last of `recent` is that of `step`."""
    losses_N = torch.stack(recent)
    bad = (~torch.isfinite(losses_N)).nonzero().flatten().tolist()
    if bad:
        raise _diverged(losses_N[bad[0]].item(), step - len(recent) + 1 + bad[0], checkpointer)


def _evaluate_on_the_way(
    state: State, subject: Subject, windows: Tensor, checkpointer: Checkpointer | None
) -> dict[str, float]:
    found = evaluate(subject, windows)
    if not math.isfinite(sum(found.values())):
        raise _diverged(found[subject.names[0]], state.step, checkpointer)
    return found


def _note_best(state: State, loss: float) -> None:
    if state.best is None or loss < state.best.loss:
        weights = {name: tensor.detach().clone() for name, tensor in state.modules.state_dict().items()}
        state.best = Best(loss=loss, step=state.step, weights=weights)


def first_state(subject: Subject, settings: TrainingSettings, *, seed: int, device: torch.device) -> State:
    """A training before its first step, with the subject on its device."""
    subject.prepare(device, precision_of(settings.precision, device))
    modules = torch.nn.ModuleList(subject.parts)
    return State(modules=modules, optimizer=make_optimizer(subject, settings), order=stream(seed, ORDER))


def fit(
    subject: Subject,
    settings: TrainingSettings,
    corpus: Corpus,
    *,
    seed: int,
    device: torch.device,
    on_step: Callable[[int, Callable[[], float]], None],
    checkpointer: Checkpointer | None = None,
) -> Fitted:
    """Train a subject in place; the same start, seed, settings and machine give the same bits, interrupted or not.

    Args:
        seed: decides the order of the text, and what steps draw besides.
        on_step: called after each update with its number and a function that reads the last loss
            (which on a GPU waits for the device, so it is called only to show it).
        checkpointer: what keeps the state on the way, and where the training goes on from; it may raise Stopped.
    """
    state = first_state(subject, settings, seed=seed, device=device)
    if checkpointer is not None:
        checkpointer.restore(state)
    started = time.perf_counter() - state.elapsed_s
    _take_steps(state, subject, settings, corpus, on_step, checkpointer)
    if state.best is not None:
        state.modules.load_state_dict(state.best.weights)
    losses = evaluate(subject, _windows(corpus, subject, limit=None))
    if checkpointer is not None:
        checkpointer.heed()
    return Fitted(
        history=state.history,
        chosen_step=state.best.step if state.best is not None else settings.steps,
        losses=losses,
        train_s=time.perf_counter() - started,
    )


def _take_steps(
    state: State, subject: Subject, settings: TrainingSettings, corpus: Corpus, on_step, checkpointer
) -> None:
    """The steps that are left, with an evaluation and a checkpoint where each is due, and both after the last."""
    started = time.perf_counter() - state.elapsed_s
    tokens = torch.from_numpy(corpus.train).to(subject.device)
    windows = _windows(corpus, subject, limit=INTERIM_WINDOWS)
    recent = []  # losses that nobody has looked at: on a GPU a look waits for the device
    for step in range(state.step + 1, settings.steps + 1):
        rate = rate_of(settings, step)
        loss = update(subject, state, rate, settings, tokens)
        recent.append(loss)
        on_step(step, loss.item)
        state.step, last = step, step == settings.steps
        evaluating = last or step % settings.evaluate_every == 0
        keeping = checkpointer is not None and (last or checkpointer.due())
        if evaluating or keeping:
            _refuse_unless_finite(recent, step, checkpointer)
            recent.clear()
        if evaluating:
            found = _evaluate_on_the_way(state, subject, windows, checkpointer)
            row = {"step": step, "train_loss": loss.item()} | {f"validation_{name}": x for name, x in found.items()}
            elapsed_s = round(time.perf_counter() - started, 3)
            state.history.append({**row, "learning_rate": rate, "elapsed_s": elapsed_s})
            if settings.checkpoint == "best":
                _note_best(state, found[subject.names[0]])
        if keeping:
            state.elapsed_s = time.perf_counter() - started
            checkpointer.keep(state)


def _windows(corpus: Corpus, subject: Subject, limit: int | None) -> Tensor:
    found = validation_windows(corpus.validation, context=subject.context, ahead=subject.ahead, limit=limit)
    return torch.from_numpy(found).to(subject.device)
