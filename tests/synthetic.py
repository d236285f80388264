"""A made-up result folder with every file of the contract, so that the report can be built in seconds.

The numbers are plausible, hang together (eq. (1), Theorem 3.8, Σ min(p, q)) and come from one fixed generator.
"""

from pathlib import Path

import numpy as np
from synthetic_evidence import write_evidence
from synthetic_files import ALPHAS, ENGINES, SWEPT, SYMBOLS, gammas_of, write_csv, write_json
from synthetic_heads import write_heads, write_typical
from synthetic_played import write_played
from synthetic_time import write_sweep, write_time_tables

PARAMETERS = {"plain": (742_784, 0), "mtp": (742_784, 230_272), "draft": (54_592, 0)}
LOSSES = {"plain": 1.524, "mtp": 1.521, "draft": 1.69}
REASONS = {
    "reproduced": "exact_inside", "not comparable": "not_comparable", "inconclusive": "part",
    "undecided": "whole_inside", "not reproduced": "whole_outside",
}  # fmt: skip
GROUPS = {
    "parameters-target": "identity", "prefix-difference": "correctness", "tv-output": "correctness",
    "greedy-identity": "correctness",
}  # fmt: skip
# claim | title | section | published | unit | measured | half an interval | verdict
CLAIMS = """
parameters-target | The target has 0.743 million parameters | 1 | 742784 | parameters | 742784 | 0 | reproduced
prefix-difference | Feeding 64 characters changes none of the first 56 rows | 1 | 0 | logits | 2.4e-06 | 0 | reproduced
tv-output | 200,000 draws lie 0.0005 from p | 2 | 0.0005 | total variation | 0.0031 | 0.0004 | not comparable
acceptance-range | Acceptance between 0.67 and 0.75 | 3 | 0.67 to 0.75 | acceptance | 0.741 | 0.012 | inconclusive
c-value | A draft forward is 0.27 of a target's | 3 | 0.27 | ratio of times | 0.29 | 0.01 | not comparable
loss-mtp-target | Target with MTP: loss of 1.5276 | 4 | 1.5276 | nats a character | 1.521 | 0.003 | undecided
loss-draft | Draft model: loss of 1.8862 | 4 | 1.8862 | nats a character | 1.69 | 0.004 | not reproduced
loss-difference | MTP moves the target's loss by -0.008 | 4 | -0.008 | nats a character | -0.003 | 0.006 | undecided
mtp-fastest | MTP gives the best speed-up, 1.27 | 5 | 1.27 | speed-up | 1.31 | 0.03 | undecided
greedy-identity | Greedy text is plain greedy text | 5 | all identical | fraction of texts | 1.0 | 0 | reproduced
"""
TEXT = (
    "What say you, gentle cousin, to the hour?\nThe night is old, and every lamp burns low.\n\nJULIET:\n"
    "Then let it burn; I have a tongue of fire,\nAnd would be heard above the watchman's bell.\n\nROMEO:\n"
    "Speak softly, love: the orchard walls have ears."
)


def _around(name: str, mean: float, half: float, n: int) -> dict:
    alone = n == 1
    return {name: mean, f"{name}_lo": None if alone else mean - half, f"{name}_hi": None if alone else mean + half}


def _histories(folder: Path, seeds: tuple[int, ...], rng: np.random.Generator) -> list[dict]:
    rows = []
    for model, (parameters, head) in PARAMETERS.items():
        for seed in seeds:
            final = LOSSES[model] + rng.normal(0, 0.004)
            module = final + 0.006 + rng.normal(0, 0.001) if model == "mtp" else None
            history = []
            for step in range(0, 5001, 250):
                excess = 2.6 * np.exp(-step / 420) + 0.25 * (np.exp(-step / 1800) - np.exp(-5000 / 1800))
                noise = rng.normal(0, 0.003)
                history.append(
                    {
                        "step": step,
                        "train_loss": final + excess - 0.08 + noise,
                        "validation_loss": final + excess + (noise if step < 5000 else 0),
                        "validation_mtp_loss": None if module is None else module + 1.02 * excess,
                        "learning_rate": 5e-4 * (1 - step / 5600),
                        "elapsed_s": step * 0.108,
                    }
                )
            write_csv(folder / "models" / model / str(seed) / "history.csv", history)
            rows.append(
                {
                    "seed": seed, "model": model, "parameters": parameters, "head_parameters": head, "steps": 5000,
                    "chosen_step": 5000, "validation_loss": final, "validation_mtp_loss": module,
                    "tokens_per_s": 19_000.0, "train_s": 541.3,
                }
            )  # fmt: skip
    write_csv(folder / "tables" / "seeds.csv", sorted(rows, key=lambda row: (row["seed"], row["model"])))
    return rows


def _models(folder: Path, rows: list[dict], n: int) -> None:
    table = []
    for model, (parameters, head) in PARAMETERS.items():
        losses = [row["validation_loss"] for row in rows if row["model"] == model]
        module = [row["validation_mtp_loss"] for row in rows if row["model"] == model and row["validation_mtp_loss"]]
        settings = {"parameters": parameters, "head_parameters": head, "steps": 5000, "batch": 32}
        settings["learning_rate"] = 5e-4
        table.append(
            {"model": model, **settings, "n": n, **_around("validation_loss", float(np.mean(losses)), 0.003, n)}
            | (_around("validation_mtp_loss", float(np.mean(module)), 0.003, n) if module else {})
        )
    table.append({"model": "ngram", "n": 1, "validation_loss": 1.6912})
    columns = list(table[1])
    write_csv(folder / "tables" / "models.csv", table, columns)


def _checks(folder: Path, seeds: tuple[int, ...]) -> None:
    prefix = [
        {
            "seed": seed, "model": model, "engine": engine, "precision": precision, "fed_short": 56, "fed_long": 64,
            "rows": 56, "max_abs_difference": difference,
        }
        for seed in seeds
        for model in ("plain", "mtp", "draft")
        for engine in ENGINES
        for precision, difference in (("float32", 0.0 if engine == "recompute" else 2.4e-6), ("float64", 3.6e-15))
    ]  # fmt: skip
    write_csv(folder / "tables" / "prefix.csv", prefix)
    greedy = [
        {
            "seed": seed, "engine": engine, "context_rule": rule, "drafter": drafter, "gamma": gamma,
            "prompt_tokens": 8, "generated_tokens": 48, "identical": True,
            "first_divergence": None, "top2_margin": None,
        }
        for seed in seeds
        for engine, rule in ENGINES.items()
        for drafter in SWEPT
        for gamma in gammas_of(drafter)
    ]  # fmt: skip
    write_csv(folder / "tables" / "greedy.csv", greedy)


def _claims(folder: Path, n: int, comparable: bool) -> None:
    rows = []
    for line in CLAIMS.strip().splitlines():
        claim, title, section, published, unit, measured, half, verdict = (part.strip() for part in line.split("|"))
        value, half = float(measured), float(half)
        spread = {"lo": value - half, "hi": value + half} if half and n > 1 else {"lo": None, "hi": None}
        interval = "exact, counted" if not half else f"t over seeds, 95%, n = {n}" if n > 1 else "none, n = 1"
        undecided = "inconclusive" if n == 1 else "reproduced"
        rows.append(
            {
                "claim": claim,
                "group": GROUPS.get(claim, "measurement"),
                "title": title,
                "section": section,
                "source": f"section {section}",
                "published": published,
            }
            | {"unit": unit, "rule": f"within a tolerance of {published}", "measured": value, **spread}
            | {"interval": interval, "verdict": undecided if verdict == "undecided" else verdict}
            | {"reason": REASONS[verdict], "note": "judged by its rule"}
            | {"why": f"Ours is {measured} ({interval}): judged by its rule."}
        )
    write_csv(folder / "tables" / "claims.csv", rows if comparable else [], list(rows[0]))


def _sample(folder: Path, seeds: tuple[int, ...], rng: np.random.Generator) -> None:
    for seed in seeds:
        tokens, number = [], 0
        while len(tokens) < 600:
            number += 1
            text = TEXT[len(tokens) % len(TEXT)]
            following = TEXT[(len(tokens) + 1) % len(TEXT)]
            if rng.uniform() < ALPHAS["mtp"]:
                tokens.append({"text": text, "kind": "accepted", "round": number})
                tokens.append({"text": following, "kind": "sampled", "round": number})
            else:
                tokens.append({"text": text, "kind": "resampled", "round": number})
        record = {"engine": "cached", "drafter": "mtp", "gamma": 1, "prompt": "ROMEO:\n", "tokens": tokens[:600]}
        write_json(folder / "sweep" / str(seed) / "sample.json", record)


def _summary(folder: Path, rows: list[dict], time: dict, seeds: tuple[int, ...], evidence: dict) -> None:
    n = len(seeds)
    losses = {(row["model"], row["seed"]): row["validation_loss"] for row in rows}
    values = {str(seed): losses["mtp", seed] - losses["plain", seed] for seed in seeds}
    difference = {key: evidence["equivalence"].get(key) for key in ("mean", "lo", "hi", "method", "level", "n")}
    checks = n * len(ENGINES) * sum(len(gammas_of(drafter)) for drafter in SWEPT)
    write_json(
        folder / "tables" / "summary.json",
        {
            "paired_difference": difference | {"values": values},
            "interval": {"method": "t over seeds", "level": 0.95, "n": n},
            "prefix_max": 2.4e-6, "prefix_max_float64": 3.6e-15, "greedy_identical": checks, "greedy_total": checks,
            "acceptance_rows": 12 * n, "acceptance_tested": 12 * n, "acceptance_rejected": 0,
            **evidence, **time,
        },
    )  # fmt: skip


def write_synthetic_study(
    folder: Path,
    seeds: tuple[int, ...] = (1, 2, 3),
    *,
    tiny_shakespeare: bool = True,
    corpus_tail: str = "Speak, ",
    heads: bool = False,
) -> dict:
    """Write the result files of a study into `folder` and return the provenance that the renderers take.

    Args:
        folder: results/<study>. seeds: one whole study each. tiny_shakespeare: False gives the fallback corpus
        and an empty claims.csv. corpus_tail: text that each context begins with, for hostile corpora. heads: with
        heads and trees.
    """
    folder, seeds = Path(folder), tuple(seeds)
    rng = np.random.default_rng(7)
    write_json(
        folder / "corpus" / "corpus.json",
        {
            "source": "download" if tiny_shakespeare else "pydoc",
            "origin": "raw.githubusercontent.com" if tiny_shakespeare else "pydoc_data.topics of CPython 3.11",
            "sha256": "86c4e6aa9db7c042ec79f339dcb96d42b0075e16b8fc2e86bf0ca57e2dc565ed", "bytes": 1_115_394,
            "characters": 1_115_394, "vocabulary": SYMBOLS, "train_characters": 1_003_854,
            "validation_characters": 111_540, "prompt": "ROMEO:\n", "tiny_shakespeare": tiny_shakespeare,
            "fallback": not tiny_shakespeare,
        },
    )  # fmt: skip
    rows = _histories(folder, seeds, rng)
    _models(folder, rows, len(seeds))
    write_sweep(folder, seeds, rng, heads=heads)
    evidence = write_evidence(folder, seeds, rows, rng, corpus_tail)
    _checks(folder, seeds)
    if heads:
        write_typical(folder, seeds)
    frames, time = write_time_tables(folder, seeds)
    write_heads(folder, seeds, rows, frames, with_any=heads)
    _claims(folder, len(seeds), tiny_shakespeare)
    _sample(folder, seeds, rng)
    write_played(folder, seeds, corpus_tail)
    _summary(folder, rows, time, seeds, evidence)
    return synthetic_provenance(seeds)


def synthetic_provenance(seeds: tuple[int, ...]) -> dict:
    """What the command line hands to the renderers for such a folder."""
    return {
        "study": "study", "quick": False, "settings_hash": "3f9c1be2a0d44d6e",
        "commit": "55ad44d0c3a1f1b7a9f3f2f7c2f7d1f0a2b4c6d8", "dirty": False, "seeds": list(seeds),
        "devices": ["NVIDIA GeForce RTX 4090"], "threads": [2],
        "versions": {"python": "3.11.9", "torch": "2.13.0", "numpy": "2.4.6", "pandas": "3.1.1", "typst": "0.15.2"},
        "platform": "Linux-6.1.0-x86_64", "train_s": 3 * 541.3 * len(seeds), "sweep_s": 412.0 * len(seeds),
        "stale": [], "missing": [], "mixed": [],
        "config": {
            "study": "study", "seeds": list(seeds), "device": "auto", "threads": 2,
            "corpus": {"path": None, "offline_fallback": "pydoc", "prompt": "ROMEO:\n"},
            "model": {"context": 64, "target": {"layers": 4, "width": 128}, "draft": {"layers": 1, "width": 64}},
            "training": {"mtp_weight": 0.3, "target": {"steps": 5000, "betas": [0.9, 0.95]}},
            "sampling": {"temperature": 1.0, "top_k": None},
            "sweep": {"tokens": 600, "repeats": 10, "stop": {"half_width": 0.03, "blocks": 5}},
            "report": {"language": "en"},
        },
    }  # fmt: skip
