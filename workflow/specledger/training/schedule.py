"""The learning rate by step: linear warm-up, then a cosine down to a fraction of the peak."""

import math


def learning_rate(step: int, *, steps: int, peak: float, warmup_steps: int, final_fraction: float) -> float:
    """Learning rate of update `step` (from 0): peak * (step + 1) / warmup, then cosine (arXiv 1608.03983)."""
    if step < warmup_steps:
        return peak * (step + 1) / warmup_steps
    progress = (step - warmup_steps) / max(1, steps - warmup_steps)
    return peak * (final_fraction + (1 - final_fraction) * 0.5 * (1 + math.cos(math.pi * progress)))
