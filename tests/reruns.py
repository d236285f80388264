"""The tables of config/README.md that say what an edit runs again, and one edit of each key.

A new key of config.yaml needs a row there and a line in EDITS; test_reruns.py compares.
"""

import fnmatch
import re

from clone import ROOT, STUDY
from specledger.foundation.drafters import HEADS

README = (ROOT / "config" / "README.md").read_text(encoding="utf-8")
MODELS = ("plain", "mtp", "draft")
BRANCHING = ("checks", "acceptance", "sweep")  # those that read the shapes
EACH_SEED = ("trees", "checks", "acceptance", "sequences", "sweep")
MEASURED = (*EACH_SEED, "controls")
REPORT = ("page", "paper")
WORDS = {"nothing": (), "everything": ("corpus",), "models": MODELS, "heads": HEADS, "measured": MEASURED}
FOLLOWS = {
    "corpus": ("ngram", *MODELS),
    "ngram": MEASURED,
    "plain": ("checks", "tables"),
    "mtp": (*HEADS, *MEASURED),
    **dict.fromkeys(HEADS, MEASURED),
    "medusa1": ("medusa2", *MEASURED),
    "draft": MEASURED,
    **dict.fromkeys(MEASURED, ("tables",)),
    "trees": (*BRANCHING, "tables"),
    "tables": ("figures", *REPORT),
    "figures": REPORT,
}

SIZES = ("layers", "width", "heads", "kv_heads")
EDITS = {
    "study": "other",
    "quick": True,
    "seeds": [1],
    "device": "auto",
    "threads": 2,
    "corpus.path": "my own.txt",
    "corpus.sha256": "",  # the sum of the text is put in
    "corpus.download.sha256": "0" * 64,
    "corpus.download.urls": ["https://example.org/a.txt"],
    "corpus.download.timeout_s": 3,
    "corpus.offline_fallback": "pydoc",
    "corpus.validation_fraction": 0.2,
    "corpus.prompt": "JULIET:\n",
    "model.context": 65,
    **{f"model.target.{key}": value for key, value in zip(SIZES, (3, 64, 8, 1), strict=True)},
    **{f"model.draft.{key}": value for key, value in zip(SIZES, (2, 32, 8, 1), strict=True)},
    **{f"training.heads.steps.{head}": 9 for head in HEADS},
    "training.heads.trunk_learning_rate_fraction": 0.2,
    **{
        f"training.{model}.{key}": value
        for model in ("target", "draft", "heads")
        for key, value in {
            "steps": 13,
            "batch": 5,
            "learning_rate": 4.0e-3,
            "warmup_steps": 2,
            "final_learning_rate_fraction": 0.2,
            "weight_decay": 0.2,
            "betas": [0.8, 0.95],
            "clip_norm": 2,
            "evaluate_every": 4,
            "checkpoint": "best",
            "precision": "float32",
        }.items()
        if (model, key) != ("heads", "steps")
    },
    "training.mtp_weight": 0.2,
    "ngram.order": 4,
    "ngram.discount": 0.5,
    "sampling.temperature": 0.9,
    "sampling.top_k": 20,
    "sampling.top_p": 0.9,
    "sampling.min_p": 0.05,
    "checks.prefix_short": 50,
    "checks.prefix_long": 63,
    "checks.greedy_prompt": 7,
    "checks.greedy_tokens": 40,
    "acceptance.positions": 2,
    "acceptance.draws": 3000,
    "acceptance.contexts": 5,
    "acceptance.context_draws": 2000,
    "acceptance.published_draws": 3000,
    "acceptance.texts": 3,
    "acceptance.text_tokens": 25,
    "sequences.gamma": 3,
    "sequences.tokens": 5,
    "sequences.texts": 30,
    "sequences.samplings": [{"temperature": 0.5, "top_k": None, "top_p": None}],
    "controls.draws": 3000,
    "controls.tokens": 7,
    "controls.texts": 6,
    "controls.repeats": 6,
    "controls.repeat_draws": 2000,
    "analysis.equivalence_margin": 0.02,
    "compare.reference": "results/other/tables",
    "compare.difference_level": 0.02,
    "compare.equivalence_level": 0.04,
    "compare.margins.loss": 0.03,
    "compare.margins.acceptance": 0.04,
    "compare.margins.tokens_per_round": 0.1,
    "compare.margins.speedup": 0.2,
    "compare.despite_settings": True,
    "drafting.threshold": 0.3,
    "drafting.lookup_longest": 7,
    "drafting.lookup_shortest": 2,
    "sweep.gammas.lookup": [3],
    "sweep.gammas.draft_dynamic": [5],
    "sweep.gammas.mtp2": [1],
    "sweep.gammas.mtp4": [3],
    "sweep.gammas.mtp_chained": [3],
    "sweep.gammas.parallel": [3],
    "sweep.gammas.medusa1": [3],
    "sweep.gammas.medusa2": [3],
    "sweep.gammas.eagle": [3],
    **{f"sweep.trees.{drafter}": [5] for drafter in STUDY["sweep"]["trees"]},
    "trees.texts": 2,
    "trees.tokens": 30,
    "sweep.engines": ["cached"],
    "sweep.gammas.draft": [1, 3],
    "sweep.gammas.ngram": [3],
    "sweep.tokens": 25,
    "sweep.repeats": 3,
    "sweep.stop.half_width": 0.1,
    "sweep.stop.blocks": 3,
    "sweep.warmup_tokens": 5,
    "report.language": "zh",
}
ONE_VALUE = {"sweep.gammas.mtp"}  # keys that allow no other value


def leaves(config: dict, above: str = "") -> list[str]:
    found = []
    for key, value in config.items():
        found += leaves(value, f"{above}{key}.") if isinstance(value, dict) else [f"{above}{key}"]
    return found


def rows(header: str) -> list[list[str]]:
    """The rows of the table that begins with `header`."""
    table = README[README.index(f"| {header} |") :].split("\n\n", 1)[0]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in table.splitlines()[2:]]


def patterns(cell: str) -> list[str]:
    """The keys of a row; one that begins with a point lies beside the first."""
    first, *others = re.findall(r"`([^`]+)`", cell)
    return [first, *(first.rpartition(".")[0] + name if name.startswith(".") else name for name in others)]


KEYS = {
    pattern: cells[-1]
    for cells in rows("key")
    if not cells[0].startswith("`…")  # says what keys of both trainings mean
    for pattern in patterns(cells[0])
}
OTHER = dict(rows("other edits"))


def row_of(key: str) -> str:
    found = [cell for pattern, cell in KEYS.items() if fnmatch.fnmatch(key, pattern)]
    assert len(found) == 1, f"config/README.md must have one row for {key}, it has {len(found)}"
    return found[0].replace("that head", key.rpartition(".")[2])


def kinds(cell: str) -> set[str]:
    """The models and rules that the words before the parenthesis name."""
    words = re.findall(r"\w+", cell.partition("(")[0])
    return {kind for word in words for kind in WORDS.get(word, (word,))}


def with_what_follows(found: set[str]) -> set[str]:
    while more := {later for kind in found for later in FOLLOWS.get(kind, ())} - found:
        found = found | more
    return found


def jobs_of(cell: str, seeds=(1, 2), only: int | None = None, follows=(), closed=True) -> set[tuple]:
    """The jobs of a row and, if `closed`, all that follow; `only` is the one seed that it speaks of."""
    found, named = set(), kinds(cell) | set(follows)
    for kind in with_what_follows(named) if closed else named:
        rule, model = ("train", kind) if kind in MODELS else ("head", kind) if kind in HEADS else (kind, None)
        each = seeds if kind in (*MODELS, *HEADS, *EACH_SEED) else seeds[:1] if kind == "controls" else (None,)
        found |= {(rule, model, seed) for seed in each if only is None or seed in (only, None)}
    return found
