"""The learning rate by step: linear warm-up, then a cosine down to a fraction of the peak."""

import math

from specledger.training.settings import TrainingSettings


def learning_rate(step: int, *, steps: int, peak: float, warmup_steps: int, final_fraction: float) -> float:
    """Learning rate of update `step` (from 0): peak * (step + 1) / warmup, then cosine (arXiv 1608.03983)."""
    if step < warmup_steps:
        return peak * (step + 1) / warmup_steps
    progress = (step - warmup_steps) / max(1, steps - warmup_steps)
    return peak * (final_fraction + (1 - final_fraction) * 0.5 * (1 + math.cos(math.pi * progress)))


def rate_of(settings: TrainingSettings, step: int) -> float:
    """The learning rate of update `step`, counted from 1."""
    return learning_rate(
        step - 1,
        steps=settings.steps,
        peak=settings.learning_rate,
        warmup_steps=settings.warmup_steps,
        final_fraction=settings.final_learning_rate_fraction,
    )
