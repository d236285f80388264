"""About how long the trainings of a study take, from its configuration alone."""

import os

from specledger.foundation.drafters import SPECS, heads_of

TRAINING_TOKENS_PER_CORE_S = {"plain": 12_600, "mtp": 7_900, "draft": 110_000}  # measured on one 2020s server core


def training_s(config: dict, name: str) -> float | None:
    """About how many seconds of one core the training of a model or head of one seed takes; None for anything else."""
    speed = TRAINING_TOKENS_PER_CORE_S.get(name)
    if speed is not None:
        training = config["training"]["draft" if name == "draft" else "target"]
        return training["steps"] * training["batch"] * config["model"]["context"] / speed
    if name not in SPECS or not SPECS[name].trained:
        return None
    heads = config["training"]["heads"]
    tokens = heads["steps"][name] * heads["batch"] * config["model"]["context"]
    return tokens * SPECS[name].training_cost / TRAINING_TOKENS_PER_CORE_S["mtp"]


def training_hours(config: dict) -> float:
    """About how many hours of one CPU core the trainings of all seeds take."""
    names = (*TRAINING_TOKENS_PER_CORE_S, *heads_of(config))
    return sum(training_s(config, name) for name in names) * len(config["seeds"]) / 3600


def in_words(config: dict, at_once: int) -> str:
    """About how long the trainings take, and what that assumes; a machine that is busy is said to be."""
    hours, cores, threads = training_hours(config) / at_once, os.cpu_count() or 1, config["threads"]
    about = f"{hours * 60:.0f} minutes" if hours < 1.5 else f"{hours:.0f} hours"
    side = "one training at a time" if at_once == 1 else f"{at_once} trainings at once"
    each = "one thread each" if threads == 1 else f"{threads} threads each"
    text = (
        f"the trainings of an empty folder take about {about} ({side}, {each}, on cores of a 2020s server that do "
        "nothing else), and measuring comes on top; a CUDA device is used where there is one (device: auto)"
    )
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0
    if load > cores / 2:
        text += f". Other programs run on this machine (load {load:.1f} on {cores} cores): everything takes longer"
    return text
