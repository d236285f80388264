"""The acceptance rule, exactly: the oracle integrates `verify` over its uniforms and compares with the target.

Shapes: S = V^G draft sequences, G proposals, V vocabulary.
"""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats
from specledger.experiments import block_law
from specledger.experiments.block_law import LARGEST_UNIFORM, acceptance_law, deviation, steps, token_law
from specledger.experiments.wrong_rules import deciding
from specledger.sampling.distributions import GREEDY, Sampling, distribution, draw
from specledger.sampling.siblings import draw_siblings
from specledger.sampling.verify import acceptance_probability, residual, verify
from specledger.theory.trees import Tree

EXACT = 1e-12
UNIFORMS = st.floats(0, LARGEST_UNIFORM) | st.sampled_from([0.0, 5e-324, 0.5, LARGEST_UNIFORM])


@st.composite
def tables(draw, V: int, orders: int):
    """Distributions after each prefix of fewer than `orders` symbols; zeros, ties and equal rows are likely."""
    found = []
    for n in range(orders):
        numbers = draw(st.lists(st.integers(0, 5), min_size=V ** (n + 1), max_size=V ** (n + 1)))
        weights = np.array(numbers, dtype=float).reshape((V,) * (n + 1))
        weights[weights.sum(axis=-1) == 0] = 1.0
        found.append(weights / weights.sum(axis=-1, keepdims=True))
    return found


CASES = [(3, 0), (4, 0), (3, 1), (4, 1), (3, 2), (4, 2), (3, 3)]


@pytest.mark.parametrize(("V", "gamma"), CASES)
def test_output_is_exactly_the_targets(V, gamma):
    @settings(max_examples=60 if gamma < 3 else 20)
    @given(tables(V, gamma + 1), tables(V, gamma))
    def holds(p, q):
        assert deviation(p, q, Tree.chain(gamma)) < EXACT

    holds()


def test_vocabulary_4_gamma_3_at_random_rows():
    rng = np.random.default_rng(0)
    p = [rng.dirichlet(np.ones(4), size=(4,) * n) for n in range(4)]
    q = [rng.dirichlet(np.ones(4), size=(4,) * n) for n in range(3)]
    assert deviation(p, q, Tree.chain(3)) < EXACT


def test_steps_are_found_whatever_the_guess():
    """Right, wrong and outlying guesses; steps at 0, at 1 and between, each within the promised 1e-14."""
    true = np.array([0.0, 1.0, 0.3, 0.3, 1 / 3, 0.999])
    for guess in (true, np.full(6, 0.5), 1 - true, np.full(6, -1.0), np.full(6, 2.0)):
        assert np.abs(steps(lambda rows, u: u < true[rows], guess) - true).max() <= 2e-14


def accept_all(p, q, tokens, accept, extra):
    return verify(p, q, tokens, np.zeros_like(accept), extra)


def accept_with_square_root(p, q, tokens, accept, extra):
    return verify(p, q, tokens, accept**2, extra)


def with_residual(other):
    return deciding(weights=lambda p, q, rows, lengths: other(p[rows, lengths], q[rows, lengths]))


def bonus_of_the_row_before(p, q, tokens, accept, extra):
    shifted = p.copy()
    shifted[:, -1] = p[:, -2]
    return verify(shifted, q, tokens, accept, extra)


@pytest.mark.parametrize(
    "broken",
    [
        accept_all,
        accept_with_square_root,
        with_residual(lambda p, q: p.copy()),
        with_residual(lambda p, q: np.abs(p - q)),
        with_residual(lambda p, q: np.exp(np.maximum(p - q, 0))),
        bonus_of_the_row_before,
    ],
    ids=["accept-all", "sqrt", "residual-p", "residual-abs", "residual-softmax", "bonus-row"],
)
def test_the_oracle_catches_broken_rules(broken):
    rng = np.random.default_rng(1)
    p = [rng.dirichlet(np.ones(3), size=(3,) * n) for n in range(3)]
    q = [rng.dirichlet(np.ones(3), size=(3,) * n) for n in range(2)]
    assert deviation(p, q, Tree.chain(2), broken) > 1e-3


def test_acceptance_and_residual_are_the_papers():
    """The steps of `verify` against min(1, p/q) and max(0, p - q) / its sum, symbol by symbol."""
    p_V, q_V = np.array([0.5, 0.3, 0.2, 0.0]), np.array([0.1, 0.4, 0.2, 0.3])
    draft_SG = np.arange(4)[:, None]
    p_SGV, q_SGV = np.tile(p_V, (4, 2, 1)), np.tile(q_V, (4, 1, 1))
    accept = acceptance_law(verify, p_SGV, q_SGV, draft_SG)[:, 0]
    assert accept == pytest.approx([1, 0.75, 1, 0], abs=EXACT)
    possible, cumulative = token_law(verify, p_SGV, q_SGV, draft_SG, -1)
    law = np.diff(cumulative, axis=1, prepend=0.0)
    assert possible.tolist() == [False, True, False, True]
    assert law[possible] == pytest.approx(np.tile([1, 0, 0, 0], (2, 1)), abs=EXACT)
    assert residual(p_V, q_V) == pytest.approx([0.4, 0, 0, 0])
    assert acceptance_probability(p_V, q_V) == pytest.approx((q_V * accept).sum())


def test_a_grid_of_uniforms_yields_the_target():
    """Independent of the bisection: 400 x 400 midpoints for each proposal, each step off by at most half a cell."""
    rng = np.random.default_rng(2)
    p_V, q_V = rng.dirichlet(np.ones(4)), rng.dirichlet(np.ones(4))
    n = 400
    u, w = (side.ravel() for side in np.meshgrid((np.arange(n) + 0.5) / n, (np.arange(n) + 0.5) / n))
    law = np.zeros(4)
    for token in range(4):
        tokens = np.full((n * n, 1), token)
        verdict = verify(
            np.broadcast_to(p_V, (n * n, 2, 4)), np.broadcast_to(q_V, (n * n, 1, 4)), tokens, u[:, None], w
        )
        first = np.where(verdict.accept_len_N == 1, token, verdict.token_N)
        law += q_V[token] * np.bincount(first, minlength=4) / n**2
    assert np.abs(law - p_V).max() < 4 / n


def test_drawn_outputs_follow_the_target():
    """Chi-square of 200,000 rounds; a right rule falls below 1e-3 at one seed in 1,000, and the seed is fixed."""
    rng = np.random.default_rng(3)
    p_V, q_V, N = rng.dirichlet(np.ones(8)), rng.dirichlet(np.ones(8)), 200_000
    tokens = draw(np.broadcast_to(q_V, (N, 8)), rng.random(N))[:, None]
    verdict = verify(
        np.broadcast_to(p_V, (N, 2, 8)), np.broadcast_to(q_V, (N, 1, 8)), tokens, rng.random((N, 1)), rng.random(N)
    )
    first = np.where(verdict.accept_len_N == 1, tokens[:, 0], verdict.token_N)
    assert stats.chisquare(np.bincount(first, minlength=8), N * p_V).pvalue > 1e-3
    beta = acceptance_probability(p_V, q_V)
    assert abs(verdict.accept_len_N.mean() - beta) < 4 * np.sqrt(beta * (1 - beta) / N)  # odds 6e-5


# --- special cases ---


def batch(rng, N=60, G=3, V=5):
    p, q = rng.dirichlet(np.full(V, 0.5), size=(N, G + 1)), rng.dirichlet(np.full(V, 0.5), size=(N, G))
    tokens = draw(q, rng.random((N, G)))
    return p, q, tokens, rng.random((N, G)), rng.random(N)


def test_equal_rows_always_accept():
    p, _, _, _, extra = batch(np.random.default_rng(4))
    q = p[:, :-1]
    tokens = draw(q, np.random.default_rng(5).random(q.shape[:2]))
    verdict = verify(p, q, tokens, np.full(tokens.shape, LARGEST_UNIFORM), extra)
    assert (verdict.accept_len_N == 3).all()
    assert np.array_equal(verdict.token_N, draw(p[:, -1], extra))


GAPS = arrays(np.float64, (2, 5), elements=st.just(0.0) | st.floats(0, 60) | st.just(1e9))


def exactly(gaps, temperature) -> list[list[Fraction]]:
    """The rows as they are, in fractions, each scaled to 1 without a rounding."""
    rows = distribution(gaps.min(axis=1, keepdims=True) - gaps, Sampling(temperature=temperature))
    found = [[Fraction(float(weight)) for weight in row] for row in rows]
    return [[weight / sum(row) for weight in row] for row in found]


@settings(max_examples=300)
@given(GAPS, st.sampled_from([0.05, 0.3, 1.0, 3.0]))
def test_the_residual_keeps_its_digits_where_rows_are_nearly_certain(gaps, temperature):
    """Against exact fractions. What is lost is a rounding of what the rows differ by, not one of 1."""
    (p, q), near = exactly(gaps, temperature), 1e-14
    found = residual(*(np.array([float(weight) for weight in row]) for row in (p, q)))
    exact = [max(Fraction(0), a - b) for a, b in zip(p, q, strict=True)]
    spread = sum(max(a, b) for a, b in zip(p, q, strict=True)) - max(max(p), max(q))  # without the likeliest
    if p.index(max(p)) == q.index(max(q)):
        assert max(abs(float(a) - b) for a, b in zip(exact, found, strict=True)) <= near * float(spread) + 1e-320
    if sum(exact) > near * spread:
        assert found.any()


@settings(max_examples=300)
@given(GAPS, st.sampled_from([0.05, 0.3, 1.0, 3.0]), UNIFORMS, UNIFORMS, UNIFORMS)
def test_a_rejection_always_has_a_token_to_go_to(gaps, temperature, drawn_by, decided_by, extra):
    """Two siblings of rows that may be nearly certain and alike: no division by 0, no token that p can't yield."""
    p, q = distribution(gaps.min(axis=1, keepdims=True) - gaps, Sampling(temperature=temperature))
    drawn = draw_siblings(q, np.array([drawn_by, extra]))
    G = int(drawn.there.sum())
    given_ = (np.stack([p] * (G + 1)), drawn.rows[:G], drawn.tokens[:G], np.array([decided_by, decided_by])[:G])
    with np.errstate(invalid="raise", divide="raise"):
        found = verify(*(array[None] for array in given_), np.array([extra]), Tree.of((-1,) * G))
    assert p[found.token_N[0]] > 0
    if found.last_N[0] >= 0:
        assert p[drawn.tokens[found.last_N[0]]] > 0


def test_nearly_certain_rows_by_hand():
    """p = (1 - 3e-20, 2e-20, 1e-20), q = (1 - 3e-20, 1e-20, 2e-20): both begin with 1, and what is left is symbol 1."""
    p, q = np.array([1.0, 2e-20, 1e-20]), np.array([1.0, 1e-20, 2e-20])
    assert residual(p, q) == pytest.approx([0, 1e-20, 0], rel=1e-14, abs=0)
    assert residual(p, np.array([1.0, 0, 4e-20])) == pytest.approx([1e-20, 2e-20, 0], rel=1e-14, abs=0)
    tokens, rows = np.array([[2]]), (np.array([[p, p]]), np.array([[q]]))
    rejected = verify(*rows, tokens, np.array([[0.5]]), np.array([0.9]))
    assert (rejected.accept_len_N[0], rejected.token_N[0]) == (0, 1)
    # 1 rounds down by chance: p says less than q of symbol 0, and it is accepted all the same.
    lower = np.array([1 - 2**-53, 2e-20, 1e-20])
    accepted = verify(np.array([[lower, lower]]), np.array([[[1.0, 2e-20, 1e-20]]]), np.array([[0]]),
                      np.array([[LARGEST_UNIFORM]]), np.array([0.5]))  # fmt: skip
    assert accepted.accept_len_N[0] == 1


def test_vocabularies_that_differ_are_refused():
    p, q, tokens, accept, extra = batch(np.random.default_rng(4))
    with pytest.raises(ValueError, match="target_probs and draft_probs must be of one vocabulary, got 5 and 4 symbols"):
        verify(p, q[..., :4], tokens, accept, extra)


def test_the_oracle_sees_siblings_that_are_not_drawn_from_what_is_declared(monkeypatch):
    """Drawn from the running sums of q, as is quicker: all is well where q is spread, and not where it is sharp."""
    spread, sharp = np.array([0.5, 0.3, 0.15, 0.05]), np.array([1 - 5e-16, 3e-16, 1.5e-16, 5e-17])

    def from_sums(probs, uniforms):
        honest = draw_siblings(probs, uniforms)
        if uniforms.shape[-1] == 1:
            return honest
        gone_NV = np.arange(4) == honest.tokens[:, :1]
        sums_NV = np.cumsum(probs, axis=1)
        masses_NV = np.where(gone_NV, 0.0, np.diff(sums_NV, axis=1, prepend=0.0))
        second_N = draw(masses_NV, uniforms[:, 1])
        return honest._replace(tokens=np.stack([honest.tokens[:, 0], second_N], axis=1))

    tree, p = Tree.of((-1, -1)), [np.full(4, 0.25), np.full((4, 4), 0.25)]
    for q in (spread, sharp):
        assert deviation(p, [q], tree) < EXACT
    monkeypatch.setattr(block_law, "draw_siblings", from_sums)
    assert deviation(p, [spread], tree) < EXACT
    assert deviation(p, [sharp], tree) > 1e-3


def test_disjoint_rows_never_accept():
    p, q = np.array([[[0.5, 0.5, 0, 0]] * 2]), np.array([[[0, 0, 0.5, 0.5]]])
    verdict = verify(p, q, np.array([[2]]), np.array([[0.0]]), np.array([0.6]))
    assert (verdict.accept_len_N[0], verdict.token_N[0]) == (0, 1)


def test_a_batch_is_its_rounds_one_by_one():
    arguments = batch(np.random.default_rng(6))
    together = verify(*arguments)
    for n in range(60):
        alone = verify(*(argument[n : n + 1] for argument in arguments))
        assert (alone.accept_len_N[0], alone.token_N[0]) == (together.accept_len_N[n], together.token_N[n])
    assert set(together.accept_len_N) == {0, 1, 2, 3}


def test_no_proposals_is_a_draw_from_the_target():
    p, _, _, _, extra = batch(np.random.default_rng(7))
    verdict = verify(p[:, :1], np.empty((60, 0, 5)), np.empty((60, 0), dtype=np.int64), np.empty((60, 0)), extra)
    assert (verdict.accept_len_N == 0).all() and np.array_equal(verdict.token_N, draw(p[:, 0], extra))


@given(st.lists(st.integers(0, 4), min_size=4, max_size=4), st.lists(st.integers(0, 4), min_size=3, max_size=3))
def test_greedy_accepts_what_the_target_would_say(best, proposed):
    """One-hot rows: the accepted are the common beginning, and what follows is the target's, whatever the uniforms."""
    p, q = (distribution(np.eye(5)[tokens], GREEDY)[None] for tokens in (best, proposed))
    for u in (0.0, 0.5, LARGEST_UNIFORM):
        verdict = verify(p, q, np.array([proposed]), np.full((1, 3), u), np.array([u]))
        same = next((i for i in range(3) if best[i] != proposed[i]), 3)
        assert (verdict.accept_len_N[0], verdict.token_N[0]) == (same, best[same])


def test_inputs_are_left_alone():
    arguments = batch(np.random.default_rng(8))
    copies = [argument.copy() for argument in arguments]
    verify(*arguments)
    assert all(np.array_equal(a, b) for a, b in zip(arguments, copies, strict=True))


def bad(which: int, where: tuple, value: float):
    arguments = [argument.copy() for argument in batch(np.random.default_rng(9), N=4, G=2, V=3)]
    arguments[which][where] = value
    return arguments


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (bad(0, (2, 1, 0), np.nan), r"target_probs row \(2, 1\) must sum to 1, got nan"),
        (bad(1, (1, 0, 2), np.nan), r"draft_probs row \(1, 0\) must sum to 1, got nan"),
        (bad(0, (3, 2, 0), np.inf), r"target_probs row \(3, 2\) must sum to 1, got inf"),
        (bad(0, (0, 0), [0.5, 0.6, 0.0]), r"target_probs row \(0, 0\) must sum to 1, got 1.1"),
        (bad(1, (0, 1), [0.2, 0.2, 0.2]), r"draft_probs row \(0, 1\) must sum to 1, got 0.6"),
        (bad(0, (1, 1), [1.2, -0.2, 0.0]), r"target_probs row \(1, 1\) must not be negative, got -0.2 at symbol 1"),
        (bad(1, (1, 1), [-0.5, 0.5, 1.0]), r"draft_probs row \(1, 1\) must not be negative, got -0.5 at symbol 0"),
    ],
)
def test_rows_that_are_no_distributions(arguments, words):
    with pytest.raises(ValueError, match=words):
        verify(*arguments)


def test_a_proposal_that_its_draft_cannot_draw():
    p, q, tokens, accept, extra = batch(np.random.default_rng(10), N=3, G=2, V=3)
    q[1, 1], tokens[1, 1] = [0.5, 0.0, 0.5], 1
    with pytest.raises(ValueError, match=r"draft_probs row \(1, 1\) gives its own draft token 1 no probability"):
        verify(p, q, tokens, accept, extra)
