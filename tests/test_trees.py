"""Trees of proposals: their shape, the best one of a size, the rule along them, and siblings."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from specledger.sampling.distributions import draw
from specledger.sampling.siblings import draw_siblings, likeliest_siblings, rows_of
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
    for n in range(count):
        for node in range(-1, len(tree.parents)):
            children = list(tree.children[node])
            if children:
                probs = rng.dirichlet(np.ones(V))
                q[n, children] = probs
                tokens[n, children] = draw_siblings(np.cumsum(probs).tolist(), rng.random(len(children)).tolist())
        q[n] = rows_of(tree, q[n].copy(), tokens[n])
    return p, q, tokens, rng.random((count, len(tree.parents))), rng.random(count)


@pytest.mark.parametrize("gamma", [1, 2, 5])
def test_a_chain_is_a_tree_with_one_branch(gamma):
    """The walk along a tree yields the same bits as the rule for chains."""
    given_ = rounds(Tree.chain(gamma), 500, seed=gamma)
    chain, walked = verify(*given_), verify(*given_, Tree.chain(gamma))
    assert (chain.accept_len_N == walked.accept_len_N).all() and (chain.token_N == walked.token_N).all()
    assert (walked.last_N == chain.accept_len_N - 1).all()
    reached = np.isfinite(walked.accept_probs_NG)
    assert (walked.accept_probs_NG[reached] == chain.accept_probs_NG[reached]).all()
    assert (reached.sum(axis=1) == np.minimum(chain.accept_len_N + 1, gamma)).all()


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
    orders = list(itertools.permutations(range(3)))
    counts = dict.fromkeys(orders, 0)
    for _ in range(6000):
        tokens = draw_siblings(np.cumsum(q).tolist(), rng.random(5).tolist())
        counts[tuple(tokens)] += 1
    expected = [q[a] * q[b] / (1 - q[a]) * 6000 for a, b, c in orders]
    assert stats.chisquare(list(counts.values()), expected).pvalue > 1e-4
    rows = rows_of(Tree.of((-1, -1, -1)), np.tile(q, (3, 1)), np.array(tokens))
    assert rows.sum(axis=1) == pytest.approx(1.0) and rows.shape == (3, 4)
    assert (rows[0] == q).all() and rows[1, tokens[0]] == 0 and rows[2, tokens[:2]].sum() == 0
    first = [draw_siblings(np.cumsum(q).tolist(), [u])[0] for u in np.linspace(0, 0.999, 50)]
    assert first == draw(np.broadcast_to(q, (50, 4)), np.linspace(0, 0.999, 50)).tolist()


def test_likeliest_siblings():
    assert likeliest_siblings(np.array([0.2, 0.5, 0.3, 0.0]), 4) == [1, 2, 0]


def test_siblings_of_a_rounding_are_still_different():
    """Masses far below the sums' precision: no token comes twice, none without weight, and none is made up."""
    rng = np.random.default_rng(2)
    for _ in range(2000):
        q = rng.dirichlet(np.full(6, 0.02))
        q[rng.random(6) < 0.3] = 0.0
        if q.sum() > 0:
            tokens = draw_siblings(np.cumsum(q / q.sum()).tolist(), [*rng.random(5), 1 - 2**-53])
            assert len(set(tokens)) == len(tokens) <= (q > 0).sum() and (q[tokens] > 0).all()


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
