"""Training of the target, with or without an MTP module, and of the draft model.

Shapes: N sequences, T = context, D width, V vocabulary.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import Module

from specledger.corpus.text import Corpus
from specledger.models.llama import Llama, LlamaConfig, initialise
from specledger.training.checkpointer import Checkpointer
from specledger.training.loop import HEAD, TRUNK, fit, stream
from specledger.training.precision import compiled_where_it_pays, in_precision
from specledger.training.settings import TrainingSettings
from specledger.training.subject import Subject, cross_entropy

HISTORY = ("step", "train_loss", "validation_loss", "validation_mtp_loss", "learning_rate", "elapsed_s")


@dataclass(frozen=True, kw_only=True)
class Trained:
    """What training yields; losses are nats a character over the whole validation text."""

    model: Llama
    mtp: Module | None
    history: list[dict]
    chosen_step: int
    validation_loss: float
    validation_mtp_loss: float | None
    train_s: float


def losses(model: Llama, mtp: Module | None, stretch: Tensor) -> tuple[Tensor, Tensor | None]:
    """Mean next-token loss and, with a module, mean loss of the token after it, of stretches [N, T + 2]."""
    tokens_NT, next_NT, after_NT = stretch[:, :-2], stretch[:, 1:-1], stretch[:, 2:]
    hidden_NTD = model.hidden(tokens_NT)
    main = cross_entropy(model.logits(hidden_NTD), next_NT)
    if mtp is None:
        return main, None
    return main, cross_entropy(mtp(model, hidden_NTD, next_NT), after_NT)


def build(
    config: LlamaConfig, *, mtp_of: Callable[[LlamaConfig], Module] | None, seed: int
) -> tuple[Llama, Module | None]:
    """Fresh models, with the module that `mtp_of` makes; the trunk of a seed starts the same with and without it."""
    model = Llama(config)
    initialise(model, stream(seed, TRUNK))
    if mtp_of is None:
        return model, None
    mtp = mtp_of(config)
    initialise(mtp, stream(seed, HEAD))
    return model, mtp


class TargetTraining(Subject):
    """A model, or a model with its MTP module: loss = next token + mtp_weight * token after it.

    It looks two tokens ahead in either case, so that both see the same text.
    """

    ahead = 2

    def __init__(self, model: Llama, mtp: Module | None, mtp_weight: float | None):
        self.model, self.mtp, self.mtp_weight = model, mtp, mtp_weight
        self.parts = (model,) if mtp is None else (model, mtp)
        self.shares, self.names = (1.0,) * len(self.parts), ("loss", "mtp_loss")[: len(self.parts)]
        self.context, self._in_a_step = model.config.context, losses

    def prepare(self, device: torch.device, precision: torch.dtype) -> None:
        super().prepare(device, precision)
        self._in_a_step = compiled_where_it_pays(losses, device)

    def losses(self, stretch: Tensor) -> tuple[Tensor, ...]:
        return losses(self.model, self.mtp, stretch)[: len(self.parts)]

    def losses_of_a_step(self, stretch: Tensor) -> tuple[Tensor, Tensor | None]:
        """The same in the precision of a step, compiled where that pays."""
        with in_precision(self.precision, stretch.device):
            return self._in_a_step(self.model, self.mtp, stretch)

    def accumulate(self, stretch: Tensor, generator: torch.Generator) -> Tensor:
        main, after = self.losses_of_a_step(stretch)
        (main if after is None else main + self.mtp_weight * after).backward()
        return main.detach()


def train(
    config: LlamaConfig,
    settings: TrainingSettings,
    corpus: Corpus,
    *,
    mtp_of: Callable[[LlamaConfig], Module] | None = None,
    seed: int,
    device: torch.device,
    on_step: Callable[[int, Callable[[], float]], None],
    checkpointer: Checkpointer | None = None,
) -> Trained:
    """Train one model from its seed, with the module of `mtp_of` where the settings weigh one; else as `fit`."""
    model, mtp = build(config, mtp_of=mtp_of if settings.mtp_weight is not None else None, seed=seed)
    subject = TargetTraining(model, mtp, settings.mtp_weight)
    done = fit(subject, settings, corpus, seed=seed, device=device, on_step=on_step, checkpointer=checkpointer)
    return Trained(
        model=model,
        mtp=mtp,
        history=[{column: row.get(column) for column in HISTORY} for row in done.history],
        chosen_step=done.chosen_step,
        validation_loss=done.losses["loss"],
        validation_mtp_loss=done.losses.get("mtp_loss"),
        train_s=done.train_s,
    )
