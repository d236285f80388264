"""Is the pair lossless? The rule at real positions against exact p and q, and the first tokens of complete texts.

Shapes: N rounds, V vocabulary.
"""

from collections.abc import Callable, Sequence

import numpy as np
import torch
from scipy import stats

from specledger.decoding.rows import speculative_rows
from specledger.experiments.acceptance import simulate
from specledger.experiments.wrong_rules import deciding
from specledger.models.arrays import to_host
from specledger.pair.opened import MODELS, Pair
from specledger.pair.texts import PLAIN, Method
from specledger.sampling.distributions import Sampling, distribution
from specledger.sampling.uniforms import Uniforms, stream
from specledger.sampling.verify import acceptance_probability, verify
from specledger.statistics.families import holm
from specledger.statistics.goodness import pooled_chisquare
from specledger.statistics.power import detectable_tv
from specledger.statistics.two_samples import two_sample_chisquare

LEVEL = 0.01  # of all tests together
# Wrong rules, each with the distribution that its first token follows for p and q [V].
CONTROLS = {
    "accept_always": (deciding(accepts=lambda u, p, q: np.ones_like(u, dtype=bool)), lambda p_V, q_V: q_V),
    "resample_from_target": (
        deciding(weights=lambda p_NGV, q_NGV, rows, lengths: p_NGV[rows, lengths]),
        lambda p_V, q_V: np.minimum(p_V, q_V) + (1 - np.minimum(p_V, q_V).sum()) * p_V,
    ),
}


@torch.inference_mode()
def places_of(pair: Pair, *, count: int, sampling: Sampling, texts: dict[int, list[int]]) -> list[dict]:
    """Exact p and q [V] at `count` places spread over the prompts and the plain texts after them, q of every drafter.

    A drafter that names tokens has q 1 at one of them, and none where it finds nothing.
    """
    found = []
    for place in range(count):
        number = place % len(pair.tokens)
        after = (place // len(pair.tokens)) * 7 % max(len(texts[number]) - 1, 1)
        tokens = [*pair.tokens[number], *texts[number][:after]]
        p_V = _row(pair, pair.target, tokens, sampling)
        for name, drafter in pair.drafters.items():
            if name in MODELS:
                q_V = _row(pair, drafter.parts[0], tokens, sampling)
            else:
                proposal = drafter.open(pair.engine, sampling, len(tokens) + 2).propose(tokens, 1, stream("unused"))
                if not proposal.tokens:
                    continue
                q_V = proposal.probs_GV[0]
            found.append(
                {
                    "task": pair.prompts[number].task,
                    "prompt": number,
                    "after": after,
                    "drafter": name,
                    "p": p_V,
                    "q": q_V,
                }
            )
    return found


def _row(pair: Pair, model, tokens: list[int], sampling: Sampling) -> np.ndarray:
    logits_TV = pair.engine.open(model, len(tokens)).forward(tokens, rows=1).logits_TV
    return distribution(to_host(logits_TV), sampling)[0]


def rule_rows(places: Sequence[dict], *, draws: int, after_each: Callable[[], None]) -> list[dict]:
    """oracle.csv: at each place the rule's tokens against exact p, its acceptance against beta; then the wrong rules.

    A wrong rule is tried at the place where it departs most; it must be rejected, or the run can't be trusted.
    """
    rows = []
    for number, place in enumerate(places):
        rows.append(_judged(place, "verify", verify, draws, number))
        after_each()
    for name, (rule, law) in CONTROLS.items():
        place = max(places, key=lambda one: np.abs(law(one["p"], one["q"]) - one["p"]).sum())
        departure = 0.5 * float(np.abs(law(place["p"], place["q"]) - place["p"]).sum())
        rows.append(_judged(place, name, rule, draws, len(places)) | {"departure": departure})
    known = [row["p_value"] for row in rows if row["rule"] == "verify"]
    adjusted = iter(holm(np.array(known)))
    for row in rows:
        row["p_holm"] = float(next(adjusted)) if row["rule"] == "verify" else row["p_value"]
    return rows


def _judged(place: dict, name: str, rule: Callable, draws: int, number: int) -> dict:
    p_V, q_V = place["p"], place["q"]
    done = simulate(p_V, q_V, draws=draws, uniforms=Uniforms("pair-rule", name, number), rule=rule)
    accepted, fit = done.accepted, pooled_chisquare(done.counts_V, p_V)
    beta = float(np.clip(acceptance_probability(p_V, q_V), 0, 1))
    acceptance_p = float(stats.binomtest(accepted, draws, beta).pvalue)
    return {
        "task": place["task"],
        "prompt": place["prompt"],
        "after": place["after"],
        "drafter": place["drafter"],
        "rule": name,
        "draws": draws,
        "p_max": float(p_V.max()),
        "tv_p_q": float(0.5 * np.abs(p_V - q_V).sum()),
        "beta": beta,
        "accepted": accepted,
        "acceptance_p_value": acceptance_p,
        "chi2": fit.chi2 if np.isfinite(fit.chi2) else None,
        "df": fit.df,
        "p_value": fit.p_value if np.isfinite(fit.p_value) else 1.0,
        "detectable_tv": detectable_tv(fit.df, draws, level=LEVEL) if fit.df else None,
        "departure": None,
    }


def ngram_rows(
    pair: Pair,
    methods: Sequence[Method],
    *,
    texts: int,
    tokens: int,
    sampling: Sampling,
    batch: int,
    after_each: Callable[[], None],
) -> list[dict]:
    """ngrams.csv: texts after the first prompt by each method against plain ones, by their first tokens.

    Each method decodes by the engine `batched`. The cells of n tokens are all that came in either sample; rare ones are
    pooled from both together, so that the choice favours neither. A second plain sample is the null's own row.
    """

    def sample(method: Method | None, name: str) -> np.ndarray:
        found = []
        for start in range(0, texts, batch):
            rows = range(start, min(start + batch, texts))
            made = speculative_rows(
                pair.target,
                None if method is None else pair.drafters[method.drafter],
                [pair.tokens[0] for _ in rows],
                gamma=0 if method is None else method.gamma,
                count=tokens,
                engine=pair.engine,
                sampling=sampling,
                uniforms=[Uniforms("pair-ngrams", name, row) for row in rows],
            )
            found += [one.tokens for one in made]
            after_each()
        return np.array(found)

    plain_NL = sample(None, "plain")
    arms = [(Method(drafter=PLAIN, gamma=0), sample(None, "plain again"))]
    arms += [(method, sample(method, method.drafter)) for method in methods]
    rows = []
    for method, found_NL in arms:
        for length in range(1, tokens + 1):
            both, codes = np.unique(
                np.concatenate([plain_NL[:, :length], found_NL[:, :length]]), axis=0, return_inverse=True
            )
            first = np.bincount(codes.ravel()[: len(plain_NL)], minlength=len(both))
            second = np.bincount(codes.ravel()[len(plain_NL) :], minlength=len(both))
            test = two_sample_chisquare(first, second)
            rows.append(
                {
                    "drafter": method.drafter,
                    "gamma": method.gamma,
                    "n": length,
                    "texts": texts,
                    "cells": len(both),
                    "chi2": test.chi2,
                    "df": test.df,
                    "p_value": test.p_value if test.df else None,
                    "detectable_tv": detectable_tv(test.df, texts, texts, level=LEVEL) if test.df else None,
                }
            )
    adjusted = holm(np.array([np.nan if row["p_value"] is None else row["p_value"] for row in rows]))
    for row, value in zip(rows, adjusted, strict=True):
        row["p_holm"] = None if np.isnan(value) else float(value)
    return rows
