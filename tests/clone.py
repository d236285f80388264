"""A copy of the checkout that a test may run and edit, and the ways to run it as a user does."""

import os
import re
import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path

import yaml
from specledger.foundation.drafters import HEADS

ROOT = Path(__file__).resolve().parents[1]
PARTS = ("Snakefile", "config", "profiles", "workflow")

# A complete study in a minute: everything is there, and small. Of the heads one that drafts a chain and one that grows
# trees; test_growing.py plays with every one, and PLANNED is for plans, which run nothing.
STUDY = yaml.safe_load((ROOT / "config" / "config.yaml").read_text(encoding="utf-8"))
HEAD_DRAFTERS, TREE_DRAFTERS = (*HEADS, "mtp_chained"), tuple(STUDY["sweep"]["trees"])
TINY = {
    "study": "tiny",
    "seeds": [1, 2],
    "device": "cpu",
    "threads": 1,
    "training": {
        "target": {"steps": 12, "batch": 4, "warmup_steps": 3, "evaluate_every": 6},
        "draft": {"steps": 12, "batch": 4, "warmup_steps": 3, "evaluate_every": 6},
        "heads": {"steps": dict.fromkeys(HEADS, 8), "batch": 4, "warmup_steps": 3, "evaluate_every": 6},
    },
    "acceptance": {
        "positions": 1,
        "draws": 2000,
        "contexts": 4,
        "context_draws": 1000,
        "texts": 2,
        "text_tokens": 24,
    },
    "sequences": {"texts": 20, "samplings": [{"temperature": 1.0, "top_k": None, "top_p": None}]},
    "controls": {"draws": 2000, "texts": 5, "repeats": 5, "repeat_draws": 1000},
    "sweep": {
        "engines": ["recompute", "cached"],  # what compiling takes is tried by `make test-all`
        "gammas": {
            **{name: [] for name in HEAD_DRAFTERS},
            "draft": [1, 2],
            "ngram": [2],
            "mtp": [1],
            "lookup": [2],
            "draft_dynamic": [2],
            "mtp2": [2],
        },
        "trees": {**{name: [] for name in TREE_DRAFTERS}, "ngram": [4], "medusa1": [4], "medusa1_typical": [4]},
        "tokens": 24,
        "repeats": 2,
        "warmup_tokens": 4,
    },
    "trees": {"texts": 1, "tokens": 24},
}


def copy_checkout(folder: Path) -> Path:
    """What a run needs, without results of the developer's own."""
    for part in PARTS:
        if (ROOT / part).is_dir():
            shutil.copytree(ROOT / part, folder / part, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
        else:
            folder.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / part, folder / part)
    return folder


def merged(base: dict, changes: dict) -> dict:
    """`base` with `changes` laid over it, as Snakemake lays one configuration over another."""
    result = dict(base)
    for key, value in changes.items():
        both = isinstance(value, dict) and isinstance(result.get(key), dict)
        result[key] = merged(result[key], value) if both else value
    return result


def write_config(path: Path, changes: dict | None = None, base: dict = TINY) -> Path:
    path.write_text(yaml.safe_dump(merged(base, changes or {}), sort_keys=False), encoding="utf-8")
    return path


PLANNED = merged(
    TINY,
    {"sweep": {"gammas": {name: [2] for name in HEAD_DRAFTERS}, "trees": {name: [4] for name in TREE_DRAFTERS}}},
)


TO_THE_END = partial(subprocess.run, timeout=600)


def snakemake(checkout: Path, *arguments, start=TO_THE_END, corpus: Path | None, before=(), **environment):
    """`python -m snakemake` in the checkout; corpus is the file that SPECLEDGER_CORPUS names.

    Args:
        start: to its end, or in another way that takes the arguments of subprocess.Popen.
        before: what stands before the command.
    """
    variables = {**os.environ, "PYTHONPATH": str(checkout / "workflow"), **environment}
    variables.pop("SPECLEDGER_CORPUS", None)
    if corpus is not None:
        variables["SPECLEDGER_CORPUS"] = str(corpus)
    command = [*before, sys.executable, "-m", "snakemake", *map(str, arguments)]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return start(command, cwd=checkout, env=variables, **pipes)


def planned(done: subprocess.CompletedProcess) -> dict[str, int]:
    """How many jobs of each rule a dry run would start."""
    assert done.returncode == 0, done.stdout + done.stderr
    text = done.stdout + done.stderr
    if "Nothing to be done" in text:
        return {}
    table = text.split("Job stats:", 1)[1]
    return {name: int(count) for name, count in re.findall(r"^(\w+)\s+(\d+)$", table, re.MULTILINE) if name != "total"}
