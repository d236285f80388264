"""Training of the target, with or without an MTP module, and of the draft model.

Shapes: N sequences (or steps, of losses), T = context, D width, V vocabulary.
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
from specledger.models.llama import Llama, LlamaConfig, initialise
from specledger.models.mtp import MTPModule
from specledger.training.batches import validation_windows
from specledger.training.keeper import Keeper
from specledger.training.schedule import rate_of
from specledger.training.settings import TrainingSettings
from specledger.training.state import Best, State
from specledger.training.step import losses, losses_on, make_optimizer, precision_of, update

EVALUATION_BATCH = 128
TRUNK, HEAD, ORDER = range(3)  # what a training draws at random, each from a stream of its own
INTERIM_WINDOWS = 256  # validation windows of an evaluation on the way; the last one takes them all


@dataclass(frozen=True, kw_only=True)
class Trained:
    """What training yields; losses are nats a character over the whole validation text."""

    model: Llama
    mtp: MTPModule | None
    history: list[dict]
    chosen_step: int
    validation_loss: float
    validation_mtp_loss: float | None
    train_s: float


@torch.inference_mode()
def evaluate(model: Llama, mtp: MTPModule | None, windows: Tensor) -> tuple[float, float | None]:
    """Losses over validation windows [N, T + 2], each window weighing the same."""
    total_main = total_mtp = 0.0
    for chunk in windows.split(EVALUATION_BATCH):
        main, after = losses(model, mtp, chunk)
        total_main += main.item() * len(chunk)
        total_mtp += after.item() * len(chunk) if after is not None else 0.0
    return total_main / len(windows), (total_mtp / len(windows) if mtp is not None else None)


def stream(seed: int, purpose: int) -> torch.Generator:
    """A generator of its own for each purpose; PyTorch's looks at 32 bits of a seed, so they are mixed first."""
    return torch.Generator().manual_seed(int(np.random.SeedSequence((seed, purpose)).generate_state(1)[0]))


def build(config: LlamaConfig, *, with_mtp: bool, seed: int) -> tuple[Llama, MTPModule | None]:
    """Fresh models; the trunk of a seed starts the same with and without an MTP module."""
    model = Llama(config)
    initialise(model, stream(seed, TRUNK))
    if not with_mtp:
        return model, None
    mtp = MTPModule(config)
    initialise(mtp, stream(seed, HEAD))
    return model, mtp


def _diverged(loss: float, step: int, keeper: Keeper | None) -> UserError:
    kept = "" if keeper is None else f"; {keeper.kept()}"
    return UserError(f"training: the loss is {loss} at step {step}; lower training.*.learning_rate{kept}")


def _refuse_unless_finite(recent: list[Tensor], step: int, keeper: Keeper | None) -> None:
    """UserError that names the first step whose loss is no number; the last of `recent` is that of `step`."""
    losses_N = torch.stack(recent)
    bad = (~torch.isfinite(losses_N)).nonzero().flatten().tolist()
    if bad:
        raise _diverged(losses_N[bad[0]].item(), step - len(recent) + 1 + bad[0], keeper)


def _evaluate_on_the_way(state: State, model, mtp, windows: Tensor, keeper: Keeper | None) -> tuple:
    main, after = evaluate(model, mtp, windows)
    if not math.isfinite(main + (after or 0.0)):
        raise _diverged(main, state.step, keeper)
    return main, after


def _note_best(state: State, loss: float) -> None:
    if state.best is None or loss < state.best.loss:
        weights = {name: tensor.detach().clone() for name, tensor in state.modules.state_dict().items()}
        state.best = Best(loss=loss, step=state.step, weights=weights)


def train(
    config: LlamaConfig,
    settings: TrainingSettings,
    corpus: Corpus,
    *,
    seed: int,
    device: torch.device,
    on_step: Callable[[int, Callable[[], float]], None],
    keeper: Keeper | None = None,
) -> Trained:
    """Train one model from its seed; the same seed, settings and machine give the same bits, interrupted or not.

    Args:
        on_step: called after each update with its number and a function that reads the last loss
            (which on a GPU waits for the device, so it is called only to show it).
        keeper: what keeps the state on the way, and where the training goes on from; it may raise Stopped.
    """
    model, mtp = build(config, with_mtp=settings.mtp_weight is not None, seed=seed)
    modules = torch.nn.ModuleList(m for m in (model, mtp) if m is not None).to(device)
    state = State(modules=modules, optimizer=make_optimizer(modules, settings), order=stream(seed, ORDER))
    if keeper is not None:
        keeper.restore(state)
    started = time.perf_counter() - state.elapsed_s
    _take_steps(state, model, mtp, settings, corpus, on_step, keeper)
    if state.best is not None:
        modules.load_state_dict(state.best.weights)
    main, after = evaluate(model, mtp, _to_tensor(corpus.validation, config.context, None, device))
    if keeper is not None:
        keeper.heed()
    return Trained(
        model=model,
        mtp=mtp,
        history=state.history,
        chosen_step=state.best.step if state.best is not None else settings.steps,
        validation_loss=main,
        validation_mtp_loss=after,
        train_s=time.perf_counter() - started,
    )


def _take_steps(state: State, model, mtp, settings: TrainingSettings, corpus: Corpus, on_step, keeper) -> None:
    """The steps that are left, with an evaluation and a checkpoint where each is due, and both after the last."""
    started, context = time.perf_counter() - state.elapsed_s, model.config.context
    tokens = torch.from_numpy(corpus.train).to(model.cos.device)
    windows = _to_tensor(corpus.validation, context, INTERIM_WINDOWS, model.cos.device)
    compute = losses_on(tokens.device, precision_of(settings.precision, tokens.device))
    recent = []  # losses that nobody has looked at: on a GPU a look waits for the device
    for step in range(state.step + 1, settings.steps + 1):
        rate = rate_of(settings, step)
        loss = update(compute, model, mtp, state, rate, settings, tokens)
        recent.append(loss)
        on_step(step, loss.item)
        state.step, last = step, step == settings.steps
        evaluating = last or step % settings.evaluate_every == 0
        keeping = keeper is not None and (last or keeper.due())
        if evaluating or keeping:
            _refuse_unless_finite(recent, step, keeper)
            recent.clear()
        if evaluating:
            main, after = _evaluate_on_the_way(state, model, mtp, windows, keeper)
            row = {"step": step, "train_loss": loss.item(), "validation_loss": main, "validation_mtp_loss": after}
            elapsed_s = round(time.perf_counter() - started, 3)
            state.history.append({**row, "learning_rate": rate, "elapsed_s": elapsed_s})
            if settings.checkpoint == "best":
                _note_best(state, main)
        if keeping:
            state.elapsed_s = time.perf_counter() - started
            keeper.keep(state)


def _to_tensor(validation: np.ndarray, context: int, limit: int | None, device: torch.device) -> Tensor:
    return torch.from_numpy(validation_windows(validation, context=context, limit=limit)).to(device)
