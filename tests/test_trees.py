"""Trees of proposals: their shape, the best one of a size, the rule along them, and siblings."""

import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats
from specledger.sampling.distributions import Sampling, distribution, draw
from specledger.sampling.siblings import draw_siblings, likeliest_siblings
from specledger.sampling.typical import DELTA, EPSILON, typical
from specledger.sampling.verify import residual, verify
from specledger.theory.trees import ROOT, Tree, best_tree, expected_accepted

SHAPE = Tree.of((-1, -1, 0, 0, 1, 2))


def test_a_tree_tells_its_shape():
    assert SHAPE.depths == (1, 1, 2, 2, 2, 3) and SHAPE.depth == 3
    assert SHAPE.children == {-1: (0, 1), 0: (2, 3), 1: (4,), 2: (5,), 3: (), 4: (), 5: ()}
    assert SHAPE.ranks == (0, 1, 0, 1, 0, 0) and SHAPE.levels == ((0, 1), (2, 3, 4), (5,))
    assert SHAPE.path(5) == (0, 2, 5) and SHAPE.path(ROOT) == ()
    assert SHAPE.down_to(2).parents == (-1, -1, 0, 0, 1) and SHAPE.down_to(9) is SHAPE
    assert SHAPE.keeping([1, 4]).parents == (-1, 0)
    assert Tree.chain(3).parents == (-1, 0, 1) and Tree.chain(3).is_chain and not SHAPE.is_chain
    assert Tree.of(()).depth == 0


@pytest.mark.parametrize(
    ("parents", "message"),
    [((0,), "parent of node 0 must be from -1 to -1, got 0"), ((-1, 0, -1), "level by level"), ((-2,), "node 0")],
)
def test_what_is_no_tree_is_refused(parents, message):
    with pytest.raises(ValueError, match=message):
        Tree(parents)


def every_tree(nodes: int):
    """All trees of that many nodes numbered level by level."""
    for parents in itertools.product(*(range(-1, node) for node in range(nodes))):
        try:
            yield Tree(parents)
        except ValueError:
            continue


@settings(max_examples=25)
@given(st.lists(st.lists(st.floats(0, 1), min_size=1, max_size=3), min_size=1, max_size=4), st.integers(1, 5))
def test_the_best_tree_is_the_best_of_all(acceptance, nodes):
    def yields(tree):
        within = all(
            depth <= len(acceptance) and rank < len(acceptance[depth - 1])
            for depth, rank in zip(tree.depths, tree.ranks, strict=True)
        )
        return expected_accepted(tree, acceptance) if within else 0.0

    tree, found = best_tree(nodes, acceptance)
    assert found == pytest.approx(expected_accepted(tree, acceptance))
    assert len(tree.parents) <= nodes
    assert found == pytest.approx(max(yields(tree) for count in range(1, nodes + 1) for tree in every_tree(count)))


def test_expected_accepted_by_hand():
    """Two siblings and a child of the second: .5 + .5 * .4 + .2 * .3."""
    assert expected_accepted(Tree.of((-1, -1, 1)), [[0.5, 0.4], [0.3]]) == pytest.approx(0.5 + 0.2 + 0.06)
    with pytest.raises(ValueError, match="nodes must be at least 1, got 0"):
        best_tree(0, [[0.5]])


def rounds(tree: Tree, count: int, seed: int, V: int = 5):
    """Random p and q of `count` rounds with drafts of that tree, and uniforms."""
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.ones(V), size=(count, len(tree.parents) + 1))
    q, tokens = np.empty((count, len(tree.parents), V)), np.empty((count, len(tree.parents)), dtype=np.int64)
    for node in range(-1, len(tree.parents)):
        children = list(tree.children[node])
        if children:
            drawn = draw_siblings(rng.dirichlet(np.ones(V), size=count), rng.random((count, len(children))))
            q[:, children], tokens[:, children] = drawn.rows, drawn.tokens
    return p, q, tokens, rng.random((count, len(tree.parents))), rng.random(count)


@pytest.mark.parametrize("gamma", [1, 2, 5])
def test_a_chain_is_a_tree_with_one_branch(gamma):
    """As algorithm 1 reads: the first rejection ends it. Chances are told of all, those behind a rejection too."""
    p, q, tokens, u, extra = rounds(Tree.chain(gamma), 500, seed=gamma)
    found = verify(p, q, tokens, u, extra)
    p_x, q_x = (np.take_along_axis(rows, tokens[..., None], axis=2)[..., 0] for rows in (p[:, :-1], q))
    assert (found.accept_probs_NG == np.minimum(1, p_x / q_x)).all()
    for n in range(500):
        lengths = np.flatnonzero(u[n] * q_x[n] >= p_x[n])
        length = lengths[0] if lengths.size else gamma
        weights = residual(p[n, length], q[n, length]) if lengths.size else p[n, gamma]
        assert (found.accept_len_N[n], found.last_N[n]) == (length, length - 1)
        assert found.token_N[n] == draw(weights, extra[n])


def test_the_walk_is_recursive_rejection():
    """Round by round, as SpecInfer's algorithm 2 reads."""
    p, q, tokens, u, extra = rounds(SHAPE, 400, seed=9)
    found = verify(p, q, tokens, u, extra, SHAPE)
    for n in range(400):
        at, weights = ROOT, p[n, 0]
        moved = True
        while moved:
            moved = False
            for child in SHAPE.children[at]:
                x = tokens[n, child]
                if u[n, child] * q[n, child, x] < weights[x]:
                    at, weights, moved = child, p[n, child + 1], True
                    break
                weights = residual(weights, q[n, child])
                weights = weights / weights.sum()
        assert found.last_N[n] == at and found.accept_len_N[n] == len(SHAPE.path(at))
        assert found.token_N[n] == draw(weights, extra[n])


def test_one_round_is_judged_as_many_are():
    p, q, tokens, u, extra = rounds(SHAPE, 200, seed=4)
    together = verify(p, q, tokens, u, extra, SHAPE)
    for n in range(200):
        alone = verify(p[n : n + 1], q[n : n + 1], tokens[n : n + 1], u[n : n + 1], extra[n : n + 1], SHAPE)
        assert (alone.last_N[0], alone.token_N[0]) == (together.last_N[n], together.token_N[n])
        np.testing.assert_array_equal(alone.accept_probs_NG[0], together.accept_probs_NG[n])


def test_siblings_are_drawn_without_replacement():
    """The order in which all of a small q come out follows Plackett and Luce; the odds of p < 1e-4 are 1e-4."""
    q, rng = np.array([0.5, 0.3, 0.2, 0.0]), np.random.default_rng(1)
    drawn = draw_siblings(np.tile(q, (6000, 1)), rng.random((6000, 5)))
    assert (drawn.there == [True, True, True, False, False]).all()
    orders = list(itertools.permutations(range(3)))
    counts = [int((drawn.tokens[:, :3] == order).all(axis=1).sum()) for order in orders]
    expected = [q[a] * q[b] / (1 - q[a]) * 6000 for a, b, c in orders]
    assert sum(counts) == 6000 and stats.chisquare(counts, expected).pvalue > 1e-4
    assert drawn.rows[:, :3].sum(axis=2) == pytest.approx(1.0) and not drawn.rows[:, 3:].any()
    assert (drawn.rows[:, 0] == q).all()
    uniforms = np.linspace(0, 0.999, 50)
    first = draw_siblings(np.tile(q, (50, 1)), uniforms[:, None]).tokens[:, 0]
    assert (first == draw(np.tile(q, (50, 1)), uniforms)).all()


def test_likeliest_siblings():
    found = likeliest_siblings(np.array([0.2, 0.5, 0.3, 0.0]), 4)
    assert found.tokens.tolist() == [1, 2, 0, 0] and found.there.tolist() == [True, True, True, False]
    assert likeliest_siblings(np.array([0.25, 0.5, 0.25]), 2).tokens.tolist() == [1, 0]  # of equals the first


@st.composite
def sharp_rows(draw, V: int = 5, rows: int = 1):
    """Distributions whose symbols lie 0 to 60 nats below the likeliest, at temperatures from 0.05 up."""
    gaps = draw(arrays(np.float64, (rows, V), elements=st.just(0.0) | st.floats(0, 60) | st.just(1e9)))
    gaps[np.arange(rows), draw(arrays(np.int64, rows, elements=st.integers(0, V - 1)))] = 0.0
    return distribution(-gaps, Sampling(temperature=draw(st.sampled_from([0.05, 0.3, 1.0, 2.0]))))


LARGEST_UNIFORM = 1 - 2**-53
UNIFORMS = st.floats(0, LARGEST_UNIFORM) | st.sampled_from([0.0, 5e-324, 0.5, LARGEST_UNIFORM])


@given(sharp_rows(), arrays(np.float64, 5, elements=UNIFORMS))
def test_each_sibling_is_drawn_from_the_row_that_is_declared(q, uniforms):
    """Whatever the gaps: the row is q without the earlier ones, to the last digits of its smallest numbers."""
    drawn = draw_siblings(q[0], uniforms)
    left = [Fraction(float(weight)) for weight in q[0]]
    for k in range(5):
        assert drawn.there[k] == any(left)
        if not drawn.there[k]:
            assert drawn.tokens[k] == 0 and not drawn.rows[k].any()
            continue
        exact = np.array([float(weight / sum(left)) for weight in left])
        np.testing.assert_allclose(drawn.rows[k], exact, rtol=1e-13, atol=1e-320)
        assert drawn.tokens[k] == draw(drawn.rows[k], uniforms[k])
        assert left[drawn.tokens[k]] > 0
        left[drawn.tokens[k]] = Fraction(0)


def test_a_nearly_certain_first_sibling_leaves_the_second_its_digits():
    """1 - q(drawn) would be off by a tenth. On a grid of 10,000 uniforms each count is within one of its share."""
    q = np.array([1 - 5e-16, 3e-16, 1.5e-16, 5e-17])
    grid = (np.arange(10_000) + 0.5) / 10_000
    drawn = draw_siblings(np.tile(q, (10_000, 1)), np.stack([np.zeros(10_000), grid], axis=1))
    assert (drawn.tokens[:, 0] == 0).all()
    np.testing.assert_allclose(drawn.rows[:, 1], np.tile([0, 0.6, 0.3, 0.1], (10_000, 1)), rtol=1e-14)
    assert np.abs(np.bincount(drawn.tokens[:, 1], minlength=4) - [0, 6000, 3000, 1000]).max() <= 1


def test_typical_acceptance_by_hand():
    """Entropy sets the bar: a token at .15 passes where p is spread and fails where p is sure."""
    spread, sure = np.array([0.15, 0.15, 0.2, 0.2, 0.3]), np.array([0.05, 0.05, 0.8, 0.05, 0.05])
    bar = [min(EPSILON, DELTA * np.exp((row * np.log(row)).sum())) for row in (spread, sure)]
    assert 0.05 < bar[0] < 0.15 and bar[1] > 0.05
    tree = Tree.of((-1, -1, 0))
    p = np.stack([spread, sure, spread, spread])[None]
    kept = typical(p, np.array([[0, 1, 2]]), np.array([0.0]), tree)
    assert (kept.accept_len_N[0], kept.last_N[0]) == (2, 2)
    shorter = typical(p, np.array([[1, 4, 0]]), np.array([0.0]), tree)  # the child fails; of two siblings the likelier
    assert (shorter.accept_len_N[0], shorter.last_N[0]) == (1, 1)
    none = typical(np.stack([sure, spread, spread, spread])[None], np.array([[0, 1, 2]]), np.array([0.5]), tree)
    assert (none.accept_len_N[0], none.last_N[0], none.token_N[0]) == (0, -1, 2)
