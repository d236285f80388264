"""A few rounds of the draft model on validation text, whole: what the report lays open row by row.

Shapes: G proposals, V vocabulary.
"""

from collections.abc import Iterator

import numpy as np
import torch

from specledger.decoding.engines import Engine
from specledger.experiments.bundle import ModelBundle
from specledger.models.arrays import to_host
from specledger.sampling.distributions import Sampling, distribution
from specledger.sampling.uniforms import Uniforms
from specledger.sampling.verify import verify

DRAFTER, GAMMA, ROUNDS = "draft", 4, 6


def shown_rounds(
    bundle: ModelBundle, contexts_CT: np.ndarray, places: list[int], engine: Engine, *, sampling: Sampling, seed: int
) -> Iterator[dict]:
    """One record a context: proposals, rows of p and q, the uniforms, and the verdict."""
    for place, context_T in zip(places, contexts_CT, strict=True):
        yield {
            "position": place,
            **_round(bundle, context_T.tolist(), engine, sampling, Uniforms("round", seed, place)),
        }


@torch.inference_mode()
def _round(bundle: ModelBundle, context: list[int], engine: Engine, sampling: Sampling, uniforms: Uniforms) -> dict:
    capacity = len(context) + GAMMA
    proposal = bundle.drafters[DRAFTER].open(engine, sampling, capacity).propose(context, GAMMA, uniforms.draft)
    whole, G = context + proposal.tokens, len(proposal.tokens)

    def rows(tokens: list[int], count: int) -> np.ndarray:
        logits_TV = engine.open(bundle.target, capacity).forward(tokens, rows=count).logits_TV
        return distribution(to_host(logits_TV), sampling)

    p_GV = rows(whole, G + 1)
    alone_GV = np.concatenate([rows(whole[: len(context) + g], 1) for g in range(G + 1)])
    accept_G, extra = uniforms.accept.random(G), uniforms.extra.random()
    tokens_1G, q_1GV = np.array([proposal.tokens]), proposal.probs_GV[None]
    verdict = verify(p_GV[None], q_1GV, tokens_1G, accept_G[None], np.array([extra]))
    return {
        "context": context,
        "proposals": proposal.tokens,
        "p": p_GV.tolist(),
        "q": proposal.probs_GV.tolist(),
        "accept_uniforms": accept_G.tolist(),
        "extra_uniform": extra,
        "accept_len": int(verdict.accept_len_N[0]),
        "token": int(verdict.token_N[0]),
        # The same rows, each from a forward of its own that never saw the proposals behind it.
        "alone_max_difference": float(np.abs(p_GV - alone_GV).max()),
    }
