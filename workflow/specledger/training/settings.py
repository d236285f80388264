"""How one model is trained."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class TrainingSettings:
    """One model's training; `mtp_weight` is None for a model without MTP module."""

    steps: int
    batch: int
    learning_rate: float
    warmup_steps: int
    final_learning_rate_fraction: float
    weight_decay: float
    betas: tuple[float, float]
    clip_norm: float
    evaluate_every: int
    checkpoint: str
    precision: str
    mtp_weight: float | None = None
