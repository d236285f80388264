"""What must hold exactly: the future changes no row of logits, and greedy decoding changes no token."""

from collections.abc import Iterator

import numpy as np
import torch

from specledger.decoding.engines import Engine
from specledger.decoding.loops import autoregressive, speculative
from specledger.experiments.bundle import ModelBundle
from specledger.experiments.sweep import served
from specledger.models.arrays import to_host
from specledger.models.llama import Llama
from specledger.sampling.distributions import GREEDY
from specledger.sampling.uniforms import Uniforms


@torch.inference_mode()
def prefix_difference(model: Llama, engine: Engine, tokens: np.ndarray, *, short: int) -> float:
    """Largest difference of the first `short` rows of logits when the rest of tokens [T] is fed too."""
    long = len(tokens)
    alone = engine.open(model, long).forward(tokens[:short].tolist(), rows=short).logits_TV
    together = engine.open(model, long).forward(tokens.tolist(), rows=long).logits_TV
    return float(np.abs(to_host(alone) - to_host(together)[:short]).max())


def prefix_rows(
    models: dict[str, Llama], engines: list[Engine], tokens: np.ndarray, *, short: int, seed: int
) -> Iterator[dict]:
    """One row per model, engine and precision; float64 shows whether a difference is only rounding."""
    for name, model in models.items():
        for precision in ("float32", "float64"):
            model.to(getattr(torch, precision))
            for engine in engines:
                if precision == "float64" and engine.name == "compiled":
                    continue  # its kernels know float32 alone
                yield {
                    "seed": seed,
                    "model": name,
                    "engine": engine.name,
                    "precision": precision,
                    "fed_short": short,
                    "fed_long": len(tokens),
                    "rows": short,
                    "max_abs_difference": prefix_difference(model, engine, tokens, short=short),
                }
        model.to(torch.float32)


def greedy_rows(
    bundle: ModelBundle,
    engines: list[Engine],
    gammas: dict[str, list[int]],
    prompt: list[int],
    *,
    count: int,
    seed: int,
) -> Iterator[dict]:
    """One row per engine, drafter and gamma: is greedy speculative decoding the same, token by token?"""
    for engine in engines:
        texts: dict[int, list[int]] = {}  # plain, by target
        for name, choices in served(engine, gammas).items():
            target = bundle.target_of(name)
            if id(target) not in texts:
                plainly = {"count": count, "engine": engine, "sampling": GREEDY, "uniforms": Uniforms("greedy", seed)}
                texts[id(target)] = autoregressive(target, prompt, **plainly).tokens
            plain = texts[id(target)]
            for gamma in choices:
                tokens = speculative(
                    target,
                    bundle.drafter(name, gamma),
                    prompt,
                    gamma=gamma,
                    count=count,
                    engine=engine,
                    sampling=GREEDY,
                    uniforms=Uniforms("greedy", seed),
                ).tokens
                parted = next((i for i, (a, b) in enumerate(zip(plain, tokens, strict=True)) if a != b), None)
                yield {
                    "seed": seed,
                    "engine": engine.name,
                    "context_rule": engine.context_rule,
                    "drafter": name,
                    "gamma": gamma,
                    "prompt_tokens": len(prompt),
                    "generated_tokens": count,
                    "identical": parted is None,
                    "first_divergence": parted,
                    "top2_margin": None if parted is None else top2_margin(target, engine, prompt + plain[:parted]),
                }


@torch.inference_mode()
def top2_margin(model: Llama, engine: Engine, tokens: list[int]) -> float:
    """How far the best logit after `tokens` lies above the second: near 0 where a tie parted the texts."""
    second, best = np.sort(to_host(engine.open(model, len(tokens)).forward(tokens, rows=1).logits_TV[0]))[-2:]
    return float(best - second)
