"""The made-up files that the explorables read: rounds, tensors' headers, and counts of the sweep's texts."""

import csv
import json
from pathlib import Path

import numpy as np
from specledger.sampling.verify import verify
from synthetic_files import ALPHAS, ENGINES, SYMBOLS, gammas_of, write_csv, write_json

GAMMA, CONTEXT = 4, 64


def _rounds(rng: np.random.Generator, tail: str) -> list[dict]:
    rounds, V = [], len(SYMBOLS)
    for place in range(6):
        p = rng.dirichlet(np.full(V, 0.15), GAMMA + 1)
        q = 0.7 * p[:GAMMA] + 0.3 * rng.dirichlet(np.full(V, 0.2), GAMMA)
        p, q = p / p.sum(axis=1, keepdims=True), q / q.sum(axis=1, keepdims=True)
        tokens = np.array([[int(rng.choice(V, p=row)) for row in q]])
        accept, extra = rng.random((1, GAMMA)), rng.random(1)
        verdict = verify(p[None], q[None], tokens, accept, extra)
        context = [SYMBOLS.index(one) for one in f"{tail}and every lamp burns low" if one in SYMBOLS]
        rounds.append(
            {
                "position": 500 + place, "context": (context * CONTEXT)[:CONTEXT], "proposals": tokens[0].tolist(),
                "p": p.tolist(), "q": q.tolist(), "accept_uniforms": accept[0].tolist(),
                "extra_uniform": float(extra[0]), "accept_len": int(verdict.accept_len_N[0]),
                "token": int(verdict.token_N[0]), "alone_max_difference": 1.2e-7,
            }
        )  # fmt: skip
    return rounds


def _shapes(V: int, D: int = 128, hidden: int = 344) -> tuple[dict, dict]:
    """Shapes of the target and of its MTP module, as they are saved."""

    def block(prefix: str) -> dict:
        sizes = {"self_attn.q_proj": (D, D), "self_attn.k_proj": (D // 2, D), "self_attn.v_proj": (D // 2, D)}
        sizes |= {"self_attn.o_proj": (D, D), "mlp.gate_proj": (hidden, D), "mlp.up_proj": (hidden, D)}
        sizes |= {"mlp.down_proj": (D, hidden), "input_layernorm": (D,), "post_attention_layernorm": (D,)}
        return {f"{prefix}{name}.weight": shape for name, shape in sizes.items()}

    target = {"model.embed_tokens.weight": (V, D), "model.norm.weight": (D,), "lm_head.weight": (V, D)}
    for layer in range(4):
        target |= block(f"model.layers.{layer}.")
    heads = {"mtp.hidden_norm.weight": (D,), "mtp.embedding_norm.weight": (D,), "mtp.norm.weight": (D,)}
    return target, heads | {"mtp.projection.weight": (D, 2 * D)} | block("mtp.block.")


def _header(path: Path, shapes: dict) -> None:
    """A safetensors file without its data: the report reads no more."""
    entries = {name: {"dtype": "F32", "shape": shape, "data_offsets": [0, 0]} for name, shape in shapes.items()}
    header = json.dumps({"__metadata__": {"format": "pt"}, **entries}).encode()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(len(header).to_bytes(8, "little") + header)


def _runs(seed: int, rng: np.random.Generator) -> list[dict]:
    rows = []
    for engine in ENGINES:
        for drafter, alpha in ALPHAS.items():
            for gamma in gammas_of(drafter):
                examined = 400
                accepted = int(rng.binomial(examined, alpha - 0.004 * gamma + rng.normal(0, 0.01)))
                cells = {"seed": seed, "engine": engine, "drafter": drafter, "gamma": gamma}
                rows.append(cells | {"copy": 0, "clocked": 1, "examined": examined, "accepted": accepted})
        none = {"seed": seed, "engine": engine, "drafter": "none", "gamma": 0, "copy": 0, "clocked": 1}
        rows.append(none | {"examined": 0, "accepted": 0})
    return rows


def write_played(folder: Path, seeds: tuple[int, ...], corpus_tail: str) -> None:
    """round.json, the headers of the first seed's MTP model, and runs.csv."""
    rng = np.random.default_rng(11)
    for seed in seeds:
        record = {"drafter": "draft", "gamma": GAMMA, "engine": "cached", "temperature": 1.0, "symbols": SYMBOLS}
        write_json(folder / "acceptance" / str(seed) / "round.json", record | {"rounds": _rounds(rng, corpus_tail)})
        write_csv(folder / "sweep" / str(seed) / "runs.csv", _runs(seed, rng))
        for name, shapes in zip(("model", "heads"), _shapes(len(SYMBOLS)), strict=True):
            _header(folder / "models" / "mtp" / str(seed) / f"{name}.safetensors", shapes)


def write_waterfall(folder: Path) -> None:
    """tables/waterfall.csv: the steps of each engine's best and worst row, which end at its measured speed-up."""
    with (folder / "tables" / "ledger.csv").open(encoding="utf-8", newline="") as file:
        ledger = [row for row in csv.DictReader(file) if row["drafter"] != "none"]
    steps = ("forwards_saved", "drafting", "catch_up", "wider_verify", "accept", "sync", "rest", "pairs")
    shares = (0.0, 0.5, 0.0, 0.2, 0.2, 0.0, 0.12, -0.02)
    rows = []
    for engine in ENGINES:
        methods = [row for row in ledger if row["engine"] == engine]
        for case, pick in (("best", max), ("worst", min)):
            row = pick(methods, key=lambda found: float(found["speedup"]))
            tokens, before = float(row["tokens_per_round"]), 1.0
            left = float(row["speedup"]) / tokens
            for place, (step, share) in enumerate(zip(steps, shares, strict=True), start=1):
                after = tokens if place == 1 else before * left**share
                cells = {"engine": engine, "drafter": row["drafter"], "gamma": row["gamma"], "case": case}
                cells |= {"overall": engine == "cached", "place": place, "step": step, "ratio_before": before}
                rows.append(cells | {"ratio_after": after, "factor": after / before})
                before = after
    write_csv(folder / "tables" / "waterfall.csv", rows)
