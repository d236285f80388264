"""Small trainings that fall at a chosen step, and what must be the same after them."""

from pathlib import Path

import torch
from small import CPU, SCHEDULE, corpus_of, play, sizes
from specledger.drafters.mtp import MTPModule
from specledger.models.storage import MTP_PREFIX
from specledger.training.checkpointer import Checkpointer
from specledger.training.settings import TrainingSettings
from specledger.training.target import train

TEXT = play(6000, seed=1)
CORPUS = corpus_of(TEXT)
STEPS = 30
TRAINING = {
    "steps": STEPS,
    "batch": 4,
    **SCHEDULE,
    "evaluate_every": 7,
    "checkpoint": "best",
    "precision": "auto",
}
MODELS = {  # layers, width, and the weight of the MTP loss
    "plain": (1, 16, None),
    "mtp": (1, 16, 0.3),
    "draft": (1, 8, None),
}
IDENTITY = {"model": "plain", "seed": "1", "settings": "a", "code": "b", "text": "c", "device": "cpu", "torch": "2"}


class Interrupted(Exception):
    """What `on_step` raises: the process ends here, as with kill -9."""


class EveryNth(Checkpointer):
    """Keeps the state at every `nth` step and not by the clock, so that a test knows what is lost."""

    nth, calls = 4, 0

    def due(self) -> bool:
        self.calls += 1
        return self._asked() is not None or self.calls % self.nth == 0


def checkpointer_at(
    path: Path, *, said: list | None = None, identity: dict = IDENTITY, kind=EveryNth, **named
) -> Checkpointer:
    return kind(path, identity, say=[].append if said is None else said.append, **named)


def trained(model: str = "plain", *, checkpointer=None, fall_at: int | None = None, on_step=None, **changes):
    """Train; `fall_at` is the step after which the process is gone."""
    layers, width, mtp_weight = MODELS[model]
    config = sizes(len(CORPUS.vocabulary), context=16, layers=layers, width=width)
    settings = TrainingSettings(**{**TRAINING, **changes}, mtp_weight=mtp_weight)

    def show(step, _read_loss):
        if step == fall_at:
            raise Interrupted
        if on_step is not None:
            on_step(step)

    return train(
        config, settings, CORPUS, mtp_of=MTPModule, seed=1, device=CPU, on_step=show, checkpointer=checkpointer
    )


def bits(done) -> dict:
    modules = {"": done.model} if done.mtp is None else {"": done.model, MTP_PREFIX: done.mtp}
    return {prefix + name: t for prefix, module in modules.items() for name, t in module.state_dict().items()}


def same_but_for_seconds(one, other) -> bool:
    """Weights to the bit, and all that is recorded but seconds."""
    weights, others = bits(one), bits(other)
    assert weights.keys() == others.keys() and all(torch.equal(weights[name], others[name]) for name in weights)
    histories = [[{**row, "elapsed_s": 0} for row in done.history] for done in (one, other)]
    facts = [(d.chosen_step, d.validation_loss, d.validation_mtp_loss) for d in (one, other)]
    return histories[0] == histories[1] and facts[0] == facts[1]
