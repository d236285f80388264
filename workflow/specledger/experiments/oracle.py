"""The exact law of a block: the acceptance rule integrated over its uniforms, with no draw and so no odds.

A rule should be a step function of each uniform. Its steps are found to the last bits by trying the rule on
both sides of where they should be, and by bisection where they are not; the rule is then tried between its
steps, at uniforms spread over [0, 1), and refused where it isn't the function that was found. From the steps
follow the probabilities of all that it can do, and from those the joint law of the first gamma + 1 tokens.
Shapes: S draft sequences (V^G), G proposals, V vocabulary, N rows that are tried at once.
"""

from collections.abc import Callable, Iterator

import numpy as np
import torch

from specledger.decoding.counted import NGramDrafter
from specledger.decoding.drafters import Drafter, DraftModel, MTPDrafter
from specledger.experiments.cast import Cast
from specledger.experiments.reference import alphabet, joint, laws, sequences_of, speaker_of, tree_logits, within
from specledger.models.llama import Llama, LlamaConfig, initialise
from specledger.models.mtp import MTPModule
from specledger.models.ngram import NGram
from specledger.sampling.distributions import Sampling
from specledger.sampling.verify import Verdict, verify

Rule = Callable[..., Verdict]
LARGEST_UNIFORM = np.nextafter(1.0, 0.0)
HALF_BRACKET = 1e-14
CHUNK = 4_000_000  # numbers of one batch of rows
PROBES = 64  # uniforms, spread evenly and moved at random, at which each row of a rule is tried
NEAR = 1e-12


class NotASteppedRule(ValueError):
    """A rule that its steps don't describe, so that its law is not known."""


def steps(holds: Callable[[np.ndarray, np.ndarray], np.ndarray], guess_N: np.ndarray) -> np.ndarray:
    """Where `holds(rows, uniforms)`, true below a step and false from it on, changes [N].

    `guess_N` is where it should; a step beyond [0, 1) reads as 0 or 1. The error is at most 1e-14.
    """
    every, guess_N = np.arange(len(guess_N)), np.clip(guess_N, 0.0, 1.0)
    below, above = guess_N - HALF_BRACKET, guess_N + HALF_BRACKET
    lo = np.where((below <= 0) | holds(every, np.clip(below, 0, LARGEST_UNIFORM)), np.maximum(below, 0), 0.0)
    hi = np.where((above >= 1) | ~holds(every, np.clip(above, 0, LARGEST_UNIFORM)), np.minimum(above, 1), 1.0)
    while (rows := np.flatnonzero(hi - lo > 2.5 * HALF_BRACKET)).size:
        mid = (lo[rows] + hi[rows]) / 2
        yes = holds(rows, np.minimum(mid, LARGEST_UNIFORM))
        lo[rows], hi[rows] = np.where(yes, mid, lo[rows]), np.where(yes, hi[rows], mid)
    return (lo + hi) / 2


def rows_along(rows: list[np.ndarray], sequences_SG: np.ndarray, count: int) -> np.ndarray:
    """[S, count, V]: of each sequence the distributions after its first 0, 1, ... symbols."""
    shape = (len(sequences_SG), len(rows[0]))
    return np.stack([np.broadcast_to(rows[d][tuple(sequences_SG[:, :d].T)], shape) for d in range(count)], axis=1)


def _guess_acceptance(p_SV: np.ndarray, q_SV: np.ndarray, token_S: np.ndarray) -> np.ndarray:
    at = (np.arange(len(token_S)), token_S)
    return np.minimum(1.0, p_SV[at] / q_SV[at])


def acceptance_law(rule: Rule, p_SGV: np.ndarray, q_SGV: np.ndarray, draft_SG: np.ndarray) -> np.ndarray:
    """[S, G]: up to which uniform each proposal is accepted, given that those before it were."""
    S, G = draft_SG.shape
    found = np.empty((S, G))
    for g in range(G):

        def accepts(rows, u, g=g):
            uniforms = np.zeros((len(rows), G))
            uniforms[:, g] = u
            return rule(p_SGV[rows], q_SGV[rows], draft_SG[rows], uniforms, np.zeros(len(rows))).accept_len_N > g

        found[:, g] = steps(accepts, _guess_acceptance(p_SGV[:, g], q_SGV[:, g], draft_SG[:, g]))
        for u_S in probes(S):
            wrong_S = (accepts(np.arange(S), u_S) != (u_S < found[:, g])) & (np.abs(u_S - found[:, g]) > NEAR)
            if wrong_S.any():
                raise NotASteppedRule(f"acceptance is no step function of its uniform at {u_S[wrong_S][0]:.6f}")
    return found


def probes(count: int) -> Iterator[np.ndarray]:
    """Uniforms [count], one in each part of [0, 1), at random places of their own."""
    generator = np.random.default_rng(0)
    for part in range(PROBES):
        yield (part + generator.random(count)) / PROBES


def _guess_token_law(p_SGV: np.ndarray, q_SGV: np.ndarray, length: int) -> np.ndarray:
    """Cumulative [S, V] of the token that should follow `length` accepted proposals."""
    weights_SV = p_SGV[:, length]
    if length < q_SGV.shape[1]:
        weights_SV = np.maximum(weights_SV - q_SGV[:, length], 0.0)
    cumulative = np.cumsum(weights_SV, axis=-1)
    return cumulative / np.maximum(cumulative[:, -1:], np.finfo(float).tiny)


def _cumulative(rule: Rule, inputs: list[np.ndarray], guess_SV: np.ndarray) -> np.ndarray:
    """Cumulative law [S, V] of the token that each sequence yields, over its extra uniform."""
    S, V = guess_SV.shape
    found_SV = np.empty((S, V))
    count = max(1, CHUNK // (V * inputs[0][0].size))
    for start in range(0, S, count):
        part = slice(start, start + count)
        some = [array[part] for array in inputs]

        def at_most(rows, u, some=some):
            """Is the token of sequence rows // V at most symbol rows % V?"""
            return rule(*(array[rows // V] for array in some), u).token_N <= rows % V

        found_SV[part] = steps(at_most, guess_SV[part].ravel()).reshape(-1, V)
    return found_SV


def token_law(
    rule: Rule, p_SGV: np.ndarray, q_SGV: np.ndarray, draft_SG: np.ndarray, length: int
) -> tuple[np.ndarray, np.ndarray]:
    """Which rounds can end after `length` proposals [S], and the cumulative law of the token that follows [S, V].

    Sequences with the same first `length` symbols should share that law, whatever was rejected: one of them is
    integrated and all are tried at `PROBES` uniforms; all are integrated where one of them differs.
    """
    S, G = draft_SG.shape
    uniforms = np.zeros((S, G))
    if length < G:
        uniforms[:, length] = LARGEST_UNIFORM
    inputs = [p_SGV, q_SGV, draft_SG, uniforms]
    ends = rule(*inputs, np.zeros(S)).accept_len_N == length
    cumulative_SV = np.zeros(p_SGV[:, 0].shape)
    possible = np.flatnonzero(ends)
    if possible.size == 0:
        return ends, cumulative_SV
    _, first, group = np.unique(draft_SG[possible, :length], axis=0, return_index=True, return_inverse=True)
    guess_SV = _guess_token_law(p_SGV, q_SGV, length)
    shared, some = possible[first], [array[possible] for array in inputs]
    found = _cumulative(rule, [array[shared] for array in inputs], guess_SV[shared])[group.reshape(-1)]
    if not _describes(found, rule, some):
        found = _cumulative(rule, some, guess_SV[possible])
        if not _describes(found, rule, some):
            raise NotASteppedRule("the token that follows is no step function of its uniform")
    cumulative_SV[possible] = found
    return ends, cumulative_SV


def _describes(cumulative_SV: np.ndarray, rule: Rule, inputs: list[np.ndarray]) -> bool:
    """Does the rule yield the tokens that these steps say, at every probe?"""
    for u_S in probes(len(cumulative_SV)):
        expected_S = (cumulative_SV <= u_S[:, None]).sum(axis=1)
        near_S = (np.abs(cumulative_SV - u_S[:, None]) <= NEAR).any(axis=1)
        if ((rule(*inputs, u_S).token_N != expected_S) & ~near_S).any():
            return False
    return True


def try_together(
    rule: Rule, p_SGV: np.ndarray, q_SGV: np.ndarray, draft_SG: np.ndarray, accept_SG: np.ndarray, laws_LSV: np.ndarray
) -> None:
    """NotASteppedRule where, with all uniforms drawn at once, the rule isn't what the steps of each alone say."""
    S, G = draft_SG.shape
    generator = np.random.default_rng(1)
    for _ in range(PROBES):
        u_SG, extra_S = generator.random((S, G)), generator.random(S)
        u_SG = np.where(generator.random((S, G)) < 0.5, u_SG * accept_SG, u_SG)  # so that long accepts occur too
        accepted_SG = u_SG < accept_SG
        length_S = np.where(accepted_SG.all(axis=1), G, accepted_SG.argmin(axis=1)) if G else np.zeros(S, dtype=int)
        law_SV = laws_LSV[length_S, np.arange(S)]
        near_S = (np.abs(u_SG - accept_SG) <= NEAR).any(axis=1)
        near_S |= (np.abs(law_SV - extra_S[:, None]) <= NEAR).any(axis=1)
        verdict = rule(p_SGV, q_SGV, draft_SG, u_SG, extra_S)
        same_S = (verdict.accept_len_N == length_S) & (verdict.token_N == (law_SV <= extra_S[:, None]).sum(axis=1))
        if not (same_S | near_S).all():
            raise NotASteppedRule("a decision hangs on another uniform than its own")


def block_law(rule: Rule, p: list[np.ndarray], q: list[np.ndarray], gamma: int) -> np.ndarray:
    """The law [V] * (gamma + 1) of the first gamma + 1 tokens: a round of `rule`, then the target alone.

    Args:
        rule: `verify` or what takes its place.
        p, q: trees of distributions of target and draft; entry d is [V] * d + [V], depths 0..gamma and
            0..gamma - 1.
    """
    V = len(p[0])
    draft_SG = sequences_of(V, gamma)
    q_SGV = rows_along(q, draft_SG, gamma) if gamma else np.empty((1, 0, V))
    drawn_SG = np.take_along_axis(q_SGV, draft_SG[..., None], axis=-1)[..., 0]
    can = (drawn_SG > 0).all(axis=1)  # what the draft can't propose, the rule must not be shown
    draft_SG, q_SGV, weight_S = draft_SG[can], q_SGV[can], drawn_SG[can].prod(axis=1)
    p_SGV = rows_along(p, draft_SG, gamma + 1)
    accept_SG = acceptance_law(rule, p_SGV, q_SGV, draft_SG)
    law, laws_LSV = np.zeros((V,) * (gamma + 1)), np.empty((gamma + 1, *p_SGV[:, 0].shape))
    for length in range(gamma + 1):
        reach_S = weight_S * accept_SG[:, :length].prod(axis=1)
        if length < gamma:
            reach_S = reach_S * (1 - accept_SG[:, length])
        possible, cumulative_SV = token_law(rule, p_SGV, q_SGV, draft_SG, length)
        laws_LSV[length] = cumulative_SV
        mass_SV = np.where(possible[:, None], reach_S[:, None] * np.diff(cumulative_SV, axis=1, prepend=0.0), 0.0)
        prefix_S = draft_SG[:, :length] @ V ** np.arange(length - 1, -1, -1)
        block = np.zeros((V**length, V))
        np.add.at(block, prefix_S, mass_SV)
        block = block.reshape((V,) * (length + 1))
        for d in range(length + 1, gamma + 1):
            block = block[..., None] * p[d]
        law += block
    try_together(rule, p_SGV, q_SGV, draft_SG, accept_SG, laws_LSV)
    return law


def deviation(p: list[np.ndarray], q: list[np.ndarray], gamma: int, rule: Rule = verify) -> float:
    """Largest difference of a cell between the law of a block and the target's own."""
    return float(np.abs(block_law(rule, p, q, gamma) - joint(p, gamma + 1)).max())


def random_cast(vocabulary: int, seed: int) -> Cast:
    """Small models with random weights, so large that their rows differ, and an n-gram of random text."""
    generator = torch.Generator().manual_seed(seed)

    def model(layers: int, width: int) -> Llama:
        found = Llama(LlamaConfig(vocabulary=vocabulary, layers=layers, width=width, heads=4, kv_heads=2, context=16))
        initialise(found, generator, std=0.4)
        return found.eval().requires_grad_(False)

    target = model(2, 16)
    mtp = MTPModule(target.config)
    initialise(mtp, generator, std=0.4)
    text = np.random.default_rng(seed).integers(vocabulary, size=200)
    drafters: list[Drafter] = [
        DraftModel(model=model(1, 8)),
        NGramDrafter(ngram=NGram.count(text, vocabulary=vocabulary, order=3, discount=0.75)),
        MTPDrafter(target=target, mtp=mtp.eval().requires_grad_(False)),
    ]
    return Cast(target=target, drafters={drafter.name: drafter for drafter in drafters})


def oracle_rows(cast: Cast, prompt: list[int], gammas: list[int], *, model: str, sampling: Sampling) -> list[dict]:
    """One row per drafter and gamma that it was made for: how far the law of its block lies from the target's.

    Of a large vocabulary the rows are those of its likeliest symbols alone.
    """
    symbols_K = alphabet(cast.target, prompt)
    V = len(symbols_K)
    p = laws(within(tree_logits(cast.target, prompt, max(gammas), symbols_K), symbols_K), sampling)
    rows = []
    for name, drafter in cast.speaking.items():
        allowed = [gamma for gamma in gammas if drafter.max_gamma is None or gamma <= drafter.max_gamma] or [1]
        logits = tree_logits(speaker_of(cast, name), prompt, max(allowed) - 1, symbols_K)
        q = laws(within(logits, symbols_K), sampling)
        for gamma in allowed:
            found = deviation(p, q, gamma)
            row = {"drafter": name, "gamma": gamma, "vocabulary": V, "model": model, "blocks": V ** (gamma + 1)}
            rows.append({**row, "max_abs_deviation": found})
    return rows
