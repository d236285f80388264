"""About how long the trainings of a study take, from its configuration alone."""

from specledger.foundation.drafters import SPECS, heads_of

TRAINING_TOKENS_PER_CORE_S = {"plain": 12_600, "mtp": 7_900, "draft": 110_000}  # measured on one 2020s server core


def training_hours(config: dict) -> float:
    """About how many hours of one CPU core the trainings of all seeds take."""
    seconds = 0.0
    for model, speed in TRAINING_TOKENS_PER_CORE_S.items():
        training = config["training"]["draft" if model == "draft" else "target"]
        seconds += training["steps"] * training["batch"] * config["model"]["context"] / speed
    heads = config["training"]["heads"]
    for head in heads_of(config):
        tokens = heads["steps"][head] * heads["batch"] * config["model"]["context"]
        seconds += tokens * SPECS[head].training_cost / TRAINING_TOKENS_PER_CORE_S["mtp"]
    return seconds * len(config["seeds"]) / 3600
