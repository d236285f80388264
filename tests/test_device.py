"""The draws and the rule on tensors give what the host's give, draw by draw: as they are, and compiled.

Shapes: G nodes, V vocabulary.
"""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from specledger.experiments.block_law import deviation
from specledger.sampling.device import check_total, judge, judge_typical
from specledger.sampling.distributions import GREEDY, Sampling, distribution, draw
from specledger.sampling.layout import Layout
from specledger.sampling.siblings import draw_siblings, likeliest_siblings
from specledger.sampling.typical import typical
from specledger.sampling.verify import Verdict, verify
from specledger.theory.trees import ROOT, Tree
from torch._inductor.cpp_builder import get_cpp_compiler

V, CPU = 6, torch.device("cpu")
TREES = [
    Tree.chain(1),
    Tree.chain(3),
    Tree.of((-1, -1)),
    Tree.of((-1, -1, -1, 0, 0, 1, 2, 3, 3, 6)),
    Tree.of((-1, -1, 0, 0, 0, 1, 4)),
]
SAMPLINGS = [
    Sampling(),
    GREEDY,
    Sampling(temperature=0.05),
    Sampling(top_k=3),
    Sampling(top_p=0.8),
    Sampling(min_p=0.2),
]
LARGEST_UNIFORM = 1 - 2**-53


def tensor(array) -> torch.Tensor:
    return torch.from_numpy(np.array(array))


def drafted(rng, tree: Tree, sampling: Sampling, places: np.ndarray | None = None):
    """p, q, tokens and which nodes are there: where q ran out there is no node, nor where `places` has none.

    Rows are often alike and often sharp, so that long accepts and ties occur.
    """
    G = len(tree.parents)
    logits = rng.normal(scale=rng.choice([1.0, 8.0]), size=(G + 1, V)).round(1)
    p = distribution(logits, sampling)
    q, tokens, there = np.full((G, V), 1 / V), np.zeros(G, dtype=np.int64), np.zeros(G, dtype=bool)
    for parent in range(ROOT, G):
        children = list(tree.children[parent])
        if children:
            near = logits[parent + 1] + rng.choice([0.0, 0.5, 3.0]) * rng.normal(size=V).round(1)
            drawn = draw_siblings(distribution(near, sampling), rng.random(len(children)))
            q[children], tokens[children] = drawn.rows, drawn.tokens
            there[children] = drawn.there & (parent == ROOT or there[parent])
            if places is not None:
                there[children] &= np.logical_and.accumulate(places[children])
    return p, q, tokens, there


def on_host(tree: Tree, there: np.ndarray, p, q, tokens, uniforms, extra, lossy=False) -> tuple[int, Verdict]:
    """The host's verdict on the tree of the nodes that are there; its last node by its place among all."""
    nodes = np.flatnonzero(there)
    rows = [0, *(nodes + 1)]
    kept, some = tree.keeping(nodes.tolist()), (p[None, rows], tokens[None, nodes])
    if lossy and nodes.size:
        found = typical(*some, np.array([extra]), kept)
    else:
        found = verify(some[0], q[None, nodes], some[1], uniforms[None, nodes], np.array([extra]), kept)
    return int(found.last_N[0]) if found.last_N[0] == ROOT else int(nodes[found.last_N[0]]), found


def same(tree: Tree, there, p, q, tokens, uniforms, extra, judged=judge, lossless=True) -> int:
    layout = Layout.of(tree, CPU)
    given_ = (tensor(q), tensor(tokens), tensor(uniforms)) if lossless else (tensor(tokens),)
    found = judged(tensor(p), *given_, tensor(extra), layout, tensor(there))
    last, expected = on_host(tree, there, p, q, tokens, uniforms, extra, lossy=not lossless)
    assert (int(found.last), int(found.accept_len)) == (last, int(expected.accept_len_N[0]))
    assert int(found.token) == int(expected.token_N[0]) and 0 < float(found.total) < 1 + 1e-9
    assert [node for node in layout.paths_RD[last + 1].tolist() if node != ROOT] == list(tree.path(last))
    examined = Layout.of(tree).examined_RG[last + 1] & there if lossless else there
    told = np.full(len(there), np.nan)
    told[there] = expected.accept_probs_NG[0]
    np.testing.assert_allclose(found.accept_probs_G.numpy()[examined], told[examined], rtol=1e-12)
    return last


@pytest.mark.parametrize("sampling", SAMPLINGS, ids=str)
@pytest.mark.parametrize("tree", TREES, ids=lambda tree: str(tree.parents))
def test_verdicts_are_the_hosts(tree, sampling):
    """Random rounds, a third of them with empty places: many nodes are the last accepted in some of them."""
    rng, lasts = np.random.default_rng(5), set()
    for number in range(300):
        places = rng.random(len(tree.parents)) < 0.7 if number % 3 == 0 else None
        uniforms, extra = rng.random(len(tree.parents)), rng.choice([0.0, rng.random(), LARGEST_UNIFORM])
        lasts.add(same(tree, *(d := drafted(rng, tree, sampling, places))[3:], *d[:3], uniforms, extra))
    assert ROOT in lasts and len(lasts) > tree.depth


@pytest.mark.parametrize("tree", TREES, ids=lambda tree: str(tree.parents))
def test_typical_verdicts_are_the_hosts(tree):
    rng, lasts = np.random.default_rng(6), set()
    for number in range(300):
        p, _, _, _ = drafted(rng, tree, Sampling())
        tokens = rng.integers(V, size=len(tree.parents))
        places = rng.random(len(tree.parents)) < 0.7 if number % 3 == 0 else np.ones(len(tree.parents), dtype=bool)
        there = np.array([places[list(tree.path(node))].all() for node in range(len(tree.parents))])
        if there.any():
            lasts.add(same(tree, there, p, None, tokens, None, rng.random(), judge_typical, lossless=False))
    assert len(lasts) > len(tree.parents) / 2


ROWS = arrays(np.float64, (2, V), elements=st.just(0.0) | st.floats(0, 60) | st.just(1e9))


@settings(max_examples=200)
@given(ROWS, ROWS, st.sampled_from([0.05, 0.3, 1.0]), arrays(np.float64, 3, elements=st.floats(0, LARGEST_UNIFORM)))
def test_sharp_rows_are_judged_alike(gaps_p, gaps_q, temperature, uniforms):
    """Two siblings, of which both may be nearly certain: no verdict is without a token, and none differs."""
    sampling, tree = Sampling(temperature=temperature), Tree.of((-1, -1))
    p = distribution(-np.concatenate([gaps_p, gaps_q[:1]]), sampling)
    drawn = draw_siblings(distribution(-gaps_q[0], sampling), uniforms[:2])
    same(tree, drawn.there, p, drawn.rows, drawn.tokens, uniforms[:2], uniforms[2])


@given(ROWS, st.sampled_from([0.05, 0.3, 1.0]), arrays(np.float64, (2, 3), elements=st.floats(0, LARGEST_UNIFORM)))
def test_siblings_of_a_level_are_the_hosts(gaps, temperature, uniforms):
    q = distribution(-gaps, Sampling(temperature=temperature))
    for host, device in (
        (draw_siblings(q, uniforms), draw_siblings(tensor(q), tensor(uniforms))),
        (likeliest_siblings(q, 3), likeliest_siblings(tensor(q), 3)),
    ):
        assert (host.tokens == device.tokens.numpy()).all() and (host.there == device.there.numpy()).all()
        np.testing.assert_allclose(device.rows.numpy(), host.rows, rtol=1e-14)


def test_draws_are_the_hosts():
    rng = np.random.default_rng(4)
    for _ in range(300):
        weights_V = rng.dirichlet(np.ones(6)) * (rng.random(6) < 0.6)
        weights_V[rng.integers(6)] += 1e-9
        uniform = float(rng.choice([0.0, rng.random(), LARGEST_UNIFORM]))
        assert int(draw(tensor(weights_V), tensor(uniform))) == int(draw(weights_V, uniform))


@pytest.mark.parametrize("tree", [Tree.chain(2), Tree.of((-1, -1, 0))], ids=["chain", "tree"])
def test_the_rule_on_tensors_is_exact(tree):
    """The law of a block by the oracle, which goes through this very rule round by round."""

    def on_tensors(p, q, tokens, accept, extra) -> Verdict:
        layout = Layout.of(tree, CPU)
        every = torch.func.vmap(lambda *given_: tuple(judge(*given_, layout)))
        found = every(*map(tensor, (p, q, tokens, accept, extra)))
        length, last, token, total, chances = (part.numpy() for part in found)
        assert (np.abs(total - 0.5) <= 0.5 + 1e-9).all()
        return Verdict(accept_len_N=length, token_N=token, accept_probs_NG=chances, last_N=last)

    rng = np.random.default_rng(1)
    p = [rng.dirichlet(np.ones(3), size=(3,) * n) for n in range(3)]
    q = [rng.dirichlet(np.ones(3), size=(3,) * n) for n in range(2)]
    assert deviation(p, q, tree, on_tensors) < 1e-12


def test_what_is_no_distribution_comes_back_as_the_mass():
    """NaN in any row of p, or of a node that is there and that its q could not have drawn."""
    rng, tree = np.random.default_rng(1), Tree.of((-1, -1, 0))
    p, q, tokens, there = drafted(rng, tree, Sampling())

    def total(p=p, q=q, there=there) -> float:
        given_ = map(tensor, (p, q, tokens, rng.random(3)))
        return float(judge(*given_, tensor(rng.random()), Layout.of(tree, CPU), tensor(there)).total)

    assert 0 < total() <= 1 + 1e-9
    bad = rng.normal(size=(4, V))
    for row in range(4):
        logits = bad.copy()
        logits[row, row] = np.nan if row % 2 else np.inf
        assert math.isnan(total(p=distribution(tensor(logits), Sampling()).numpy()))
    impossible = q.copy()
    impossible[2] = np.eye(V)[(tokens[2] + 1) % V]
    assert math.isnan(total(q=impossible)) and not math.isnan(total(q=impossible, there=np.array([True, True, False])))
    assert math.isnan(float(judge_typical(tensor(p * np.nan), tensor(tokens), tensor(0.5), Layout.of(tree, CPU)).total))
    check_total(1.0, 3)
    for mass in (0.0, math.nan, math.inf):
        with pytest.raises(
            ValueError, match=f"target_probs after 3 tokens must be a distribution, got a mass of {mass}"
        ):
            check_total(mass, 3)


def test_compiled_verdicts_are_the_hosts():
    """One round, compiled whole: siblings drawn level by level, distributions with every warper, and the rule."""
    try:
        get_cpp_compiler()
    except Exception as error:
        pytest.skip(f"no C++ compiler ({type(error).__name__})")
    tree, sampling = Tree.of((-1, -1, 0, 0, 1)), Sampling(temperature=0.7, top_k=5, top_p=0.95, min_p=0.05)
    layout = Layout.of(tree, CPU)

    def round_of(target_RV, draft_KV, uniforms):
        p = distribution(target_RV, sampling)
        first = draw_siblings(distribution(draft_KV[0], sampling), uniforms[:2])
        below = draw_siblings(distribution(draft_KV[1:], sampling), uniforms[2:6].view(2, 2))
        taken = [(0, 0), (0, 1), (1, 0)]
        q = torch.cat((first.rows, torch.stack([below.rows[at] for at in taken])))
        tokens = torch.cat((first.tokens, torch.stack([below.tokens[at] for at in taken])))
        there = torch.cat((first.there, torch.stack([below.there[at] & first.there[at[0]] for at in taken])))
        return (*judge(p, q, tokens, uniforms[6:11], uniforms[11], layout, there), q, tokens, there)

    rng, lasts = np.random.default_rng(3), set()
    inputs = [torch.zeros(6, V, dtype=torch.float64), torch.zeros(3, V, dtype=torch.float64), torch.zeros(12).double()]
    run = torch.compile(round_of, fullgraph=True, dynamic=False)
    for _ in range(200):
        numbers = (rng.normal(size=(6, V)), rng.normal(size=(3, V)), rng.random(12))
        for place, array in zip(inputs, numbers, strict=True):
            place.copy_(tensor(array))
        _, last, token, _, _, q, tokens, there = (part.numpy() for part in run(*inputs))
        first = draw_siblings(distribution(numbers[1][0], sampling), numbers[2][:2])
        assert (tokens[:2] == first.tokens).all()
        np.testing.assert_allclose(q[:2], first.rows, rtol=1e-13)
        p = distribution(numbers[0], sampling)
        expected_last, expected = on_host(tree, there, p, q, tokens, numbers[2][6:11], numbers[2][11])
        assert (int(last), int(token)) == (expected_last, int(expected.token_N[0]))
        lasts.add(int(last))
    assert lasts >= {-1, 0, 1, 2}
