"""The made-up files that the explorables alone read: rounds, and tensors' headers."""

import json
from pathlib import Path

import numpy as np
from specledger.sampling.verify import verify
from synthetic_files import SYMBOLS, write_json

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


def write_played(folder: Path, seeds: tuple[int, ...], corpus_tail: str) -> None:
    """round.json, and the headers of the MTP models."""
    rng = np.random.default_rng(11)
    for seed in seeds:
        record = {"drafter": "draft", "gamma": GAMMA, "engine": "cached", "temperature": 1.0, "symbols": SYMBOLS}
        write_json(folder / "acceptance" / str(seed) / "round.json", record | {"rounds": _rounds(rng, corpus_tail)})
        for name, shapes in zip(("model", "heads"), _shapes(len(SYMBOLS)), strict=True):
            _header(folder / "models" / "mtp" / str(seed) / f"{name}.safetensors", shapes)
