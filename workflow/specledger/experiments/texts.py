"""What a round yields, apart from the sweep: drafters followed along the target's own texts, or counted in others.

Let the text be drawn from the target. A round that begins at position t then accepts at least j guesses
with probability E[k_t ... k_(t+j-2) beta_(t+j-1)], where beta = sum min(p, q) and k = min(1, q(x)/p(x)) for
the token x that is there: given that x was emitted, k is the probability that it came as an accepted guess.
A drafter that chooses how much it proposes cannot be followed so: it decodes texts of its own.
Shapes: T positions of a text, V vocabulary.
"""

from collections.abc import Callable, Iterator

import numpy as np
import torch

from specledger.decoding.engines import Engine
from specledger.decoding.loops import autoregressive, speculative
from specledger.experiments.bundle import ModelBundle
from specledger.experiments.sweep import served
from specledger.models.arrays import to_host
from specledger.models.llama import Llama
from specledger.sampling.distributions import Sampling, distribution
from specledger.sampling.uniforms import Uniforms
from specledger.sampling.verify import acceptance_probability


@torch.inference_mode()
def logits_along(speaker, engine: Engine, tokens: list[int]) -> np.ndarray:
    """Logits [T - 1, V] of tokens[1:], each from all before it by the engine's rule of context, in one forward.

    An MTP module has nothing to say of tokens[1], so its first row is its second.
    """
    if isinstance(speaker, Llama):
        return to_host(engine.open(speaker, len(tokens)).forward(tokens[:-1], rows=len(tokens) - 1).logits_TV)
    return speaker.proposer.logits_along(*speaker.parts, engine, tokens)


def text_rows(
    bundle: ModelBundle,
    drafters: list[str],
    prompt: list[int],
    engine: Engine,
    *,
    texts: int,
    tokens: int,
    sampling: Sampling,
    seed: int,
    after_each: Callable[[], None],
) -> Iterator[dict]:
    """One row per text, drafter and position: beta there, and how likely its token was to be an accepted guess."""
    for number in range(1, texts + 1):
        uniforms = Uniforms("texts", seed, number)
        text = autoregressive(bundle.target, prompt, count=tokens, engine=engine, sampling=sampling, uniforms=uniforms)
        whole = prompt + text.tokens
        first = max(len(prompt), 2)
        emitted_T = np.array(whole[first:])
        at = (np.arange(len(emitted_T)), emitted_T)
        p_TV = distribution(logits_along(bundle.target, engine, whole), sampling)[first - 1 :]
        for name in drafters:
            q_TV = distribution(logits_along(bundle.drafters[name], engine, whole), sampling)[first - 1 :]
            beta_T = acceptance_probability(p_TV, q_TV)
            kept_T = np.minimum(1.0, q_TV[at] / p_TV[at])
            for position, (beta, kept) in enumerate(zip(beta_T.tolist(), kept_T.tolist(), strict=True), start=first):
                yield {
                    "seed": seed,
                    "text": number,
                    "position": position - len(prompt),
                    "drafter": name,
                    "beta": beta,
                    "kept": kept,
                }
        after_each()


def chosen_rounds(
    bundle: ModelBundle,
    choosers: dict[str, list[int]],
    prompt: list[int],
    engine: Engine,
    *,
    texts: int,
    tokens: int,
    sampling: Sampling,
    seed: int,
    after_each: Callable[[], None],
) -> Iterator[dict]:
    """One row per round of texts that drafters wrote apart from the sweep, by name and gamma.

    For drafters that choose how much they propose, for heads and trees, and for the rule `window`, whose verdicts
    past the window rest on other histories than the text's own: following a text would not tell their rounds.
    """
    for number in range(1, texts + 1):
        for name, gammas in served(engine, choosers).items():
            for gamma in gammas:
                uniforms = Uniforms("apart", seed, number, name, gamma)
                where = {"seed": seed, "text": number, "context_rule": engine.context_rule}
                where |= {"drafter": name, "gamma": gamma}
                text = speculative(
                    bundle.target_of(name), bundle.drafter(name, gamma), prompt,
                    gamma=gamma, count=tokens, engine=engine, sampling=sampling, uniforms=uniforms,
                )  # fmt: skip
                for place, done in enumerate(text.rounds, start=1):
                    counts = {"drafted": done.drafted, "accept_len": done.accept_len, "examined": done.examined}
                    yield {**where, "round": place, **counts}
        after_each()
