"""Chen et al. 2023 (arXiv 2302.01318), algorithm 2, in Chen's letters: q is the target, p the draft, K drafts a round.

Written with plain lists and without a line of the package, it must emit what `verify` emits for the same uniforms.
Both draw by the inverse CDF, here of the scaled residual; they could part only where a uniform lies within a rounding
(1e-15) of a step: for the rounds below a chance of 1e-10, whatever the seed.
"""

import numpy as np
import pytest
from small import drafters_of, sizes, tiny_llama
from specledger.decoding.engines import engine
from specledger.decoding.loops import speculative
from specledger.experiments.reference import next_logits
from specledger.sampling.distributions import GREEDY, Sampling, distribution
from specledger.sampling.uniforms import Uniforms
from specledger.sampling.verify import verify

V = 6
ROUNDS = 1500


def sample(probabilities, u):
    """The first symbol at which the running sum exceeds u."""
    total = 0.0
    for symbol, probability in enumerate(probabilities):
        total += probability
        if u < total:
            return symbol
    return max(symbol for symbol, probability in enumerate(probabilities) if probability > 0)


def positive_part(f):
    """(f)+ of the paper: the positive part, scaled to 1."""
    kept = [max(0.0, value) for value in f]
    return [value / sum(kept) for value in kept]


def one_loop(q, p, x_tilde, r, u):
    """What one loop of algorithm 2 appends: q at K + 1 places, p and the drafts x_tilde at K, uniforms r and u."""
    x = []
    for t in range(len(x_tilde)):
        if r[t] < min(1.0, q[t][x_tilde[t]] / p[t][x_tilde[t]]):
            x.append(x_tilde[t])
        else:
            x.append(sample(positive_part([a - b for a, b in zip(q[t], p[t], strict=True)]), u))
            return x
    return [*x, sample(q[len(x_tilde)], u)]


def algorithm_2(q, p, x, K, T, next_r, next_u, next_draft):
    """The whole of it: q and p are functions of the text; the streams say the next uniform of each purpose."""
    x = list(x)
    while len(x) < T:
        x_tilde, rows = [], []
        for _ in range(K):
            rows.append(p([*x, *x_tilde]))
            x_tilde.append(sample(rows[-1], next_draft()))
        sets = [q([*x, *x_tilde[:t]]) for t in range(K + 1)]
        r = [next_r() for _ in range(K)]
        x += one_loop(sets, rows, x_tilde, r, next_u())
    return x


def emitted(verdict, tokens_NG):
    """What `verify` says, as lists of tokens."""
    pairs = zip(verdict.accept_len_N, verdict.token_N, tokens_NG, strict=True)
    return [[*map(int, tokens_G[:length]), int(token)] for length, token, tokens_G in pairs]


def rows_of(kind: str, rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    if kind == "greedy":
        return np.eye(V)[rng.integers(V, size=shape)]
    rows = rng.dirichlet(np.ones(V), size=shape)
    if kind == "zeros":
        rows = np.where(rng.random(rows.shape) < 0.4, 0.0, rows)
        rows[..., 0] += rows.sum(axis=-1) == 0
        rows /= rows.sum(axis=-1, keepdims=True)
    return rows


def random_rounds(target: str, draft: str, gamma: int):
    """Target and draft rows, drafts drawn from theirs, and uniforms; some uniforms are 0, which generators return."""
    rng = np.random.default_rng(gamma)
    target_NGV, draft_NGV = rows_of(target, rng, (ROUNDS, gamma + 1)), rows_of(draft, rng, (ROUNDS, gamma))
    half = ROUNDS // 2
    draft_NGV[:half] = (draft_NGV[:half] + target_NGV[:half, :-1]) / 2  # a good draft, so that long accepts occur
    tokens_NG = np.array([[sample(row, rng.random()) for row in rows] for rows in draft_NGV])
    accept_NG = np.where(rng.random((ROUNDS, gamma)) < 0.02, 0.0, rng.random((ROUNDS, gamma)))
    return target_NGV, draft_NGV, tokens_NG, accept_NG, rng.random(ROUNDS)


def in_chens_letters(target_NGV, draft_NGV, tokens_NG, accept_NG, extra_N):
    rounds = zip(*(a.tolist() for a in (target_NGV, draft_NGV, tokens_NG, accept_NG, extra_N)), strict=True)
    return [one_loop(q, p, x_tilde, r, u) for q, p, x_tilde, r, u in rounds]


@pytest.mark.parametrize("gamma", range(1, 9))
@pytest.mark.parametrize(
    ("target", "draft"),
    [("whole", "whole"), ("zeros", "whole"), ("whole", "zeros"), ("zeros", "zeros"), ("greedy", "greedy")],
)
def test_both_letters_emit_the_same_tokens(target, draft, gamma):
    given = random_rounds(target, draft, gamma)
    found = emitted(verify(*given), given[2])
    assert found == in_chens_letters(*given)
    lengths = {len(tokens) for tokens in found}
    assert {1, gamma + 1} <= lengths, "some rounds must reject at once and some accept all"


def test_the_letters_matter():
    """With target and draft confused most rounds that reject something come out differently."""
    target_NGV, draft_NGV, *rest = random_rounds("whole", "whole", 3)
    confused = np.concatenate([draft_NGV, target_NGV[:, -1:]], axis=1)
    found = emitted(verify(target_NGV, draft_NGV, *rest), rest[0])
    wrong = in_chens_letters(confused, target_NGV[:, :-1], *rest)
    assert sum(a != b for a, b in zip(found, wrong, strict=True)) > ROUNDS / 3


@pytest.mark.parametrize(
    "sampling", [Sampling(), Sampling(temperature=0.7, top_k=3), GREEDY], ids=["T1", "cut", "greedy"]
)
@pytest.mark.parametrize("gamma", [1, 3, 8])
def test_both_letters_write_the_same_text(sampling, gamma):
    """60 tokens through the complete decoder with its caches, against plain forwards over the whole text.

    Their rows differ by float32 rounding, some 1e-6: under other seeds one of nine texts would part once in 300.
    """
    config = sizes(context=80)
    target = tiny_llama(config, seed=31)
    drafter, prompt, count = drafters_of(target)["draft"], [0, 3, 1, 4], 60
    text = speculative(
        target, drafter, prompt, gamma=gamma, count=count + gamma + 1, engine=engine("cached"), sampling=sampling,
        uniforms=Uniforms("letters", gamma),
    )  # fmt: skip
    uniforms = Uniforms("letters", gamma)

    def rows(speaker):
        return lambda x: distribution(next_logits(speaker, np.array([x]))[0], sampling).tolist()

    found = algorithm_2(
        rows(target), rows(drafter), prompt, gamma, len(prompt) + count,
        uniforms.accept.random, uniforms.extra.random, uniforms.draft.random,
    )  # fmt: skip
    # The decoder's last rounds are shorter than K, the algorithm's are not; up to `count` both have whole rounds.
    assert found[len(prompt) :][:count] == text.tokens[:count]
    assert 0 < text.accepted < text.examined
