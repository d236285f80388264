"""The engine of C++ kernels writes what the cached one writes, from the same uniforms, and its rules are the host's."""

import copy
from dataclasses import replace

import numpy as np
import pytest
import torch
from grown import TREE, grown_bundle, trees_in
from hypothesis import given, settings
from hypothesis import strategies as st
from small import drafters_of, lookup_drafter, model_drafter, sizes, tiny_llama
from specledger.decoding import building
from specledger.decoding.engines import engine, usable
from specledger.decoding.graphs import GraphEngine
from specledger.decoding.loops import autoregressive, speculative
from specledger.decoding.native import NativeRules
from specledger.decoding.rules import Rules
from specledger.sampling.distributions import GREEDY, Sampling, distribution
from specledger.sampling.siblings import draw_siblings
from specledger.sampling.uniforms import Uniforms
from specledger.theory.trees import ROOT, Tree

try:
    COMPILED = engine("compiled")
except building.NotCompiled as why:
    pytest.skip(f"needs a C++ compiler: {why}", allow_module_level=True)
CACHED, HOST, NATIVE = engine("cached"), Rules(), NativeRules()
CONFIG = sizes(vocabulary=7, context=16)
TARGET = tiny_llama(CONFIG, seed=11)
DRAFTERS = drafters_of(TARGET)
DRAFTERS["draft_dynamic"] = model_drafter(DRAFTERS["draft"].parts[0], name="draft_dynamic", threshold=0.3)
DRAFTERS["lookup"] = lookup_drafter(7, longest=4, shortest=1)
DRAFTERS["perfect"] = model_drafter(TARGET, name="perfect")
SAMPLINGS = [
    Sampling(), GREEDY, Sampling(temperature=0.7), Sampling(top_k=3), Sampling(top_p=0.8), Sampling(top_k=4, top_p=0.9),
]  # fmt: skip
SAMPLINGS.append(Sampling(temperature=0.3, min_p=0.1))
METHODS = [
    ("none", 0), ("draft", 1), ("draft", 4), ("draft_dynamic", 4),
    ("ngram", 3), ("lookup", 3), ("mtp", 1), ("perfect", 3),
]  # fmt: skip


GROWN = grown_bundle(TARGET)
TREES = trees_in(GROWN)
SHAPES = [
    Tree.chain(1),
    Tree.chain(5),
    Tree.of((-1, -1)),
    Tree.of((-1, -1, -1, 0, 0, 1, 2, 3, 3, 6)),
    Tree.of((-1, -1, 1, 0, 0, 2, 4)),  # children of a level that don't stand in their parents' order
]


def decode(executed, drafter, gamma, *, count=60, prompt=(3, 1, 4), sampling=SAMPLINGS[0], seed=0, **more):
    how = {"count": count, "engine": executed, "sampling": sampling, "uniforms": Uniforms("compiled", seed)} | more
    if drafter == "none":
        return autoregressive(TARGET, prompt, **how)
    return speculative(TARGET, DRAFTERS[drafter], prompt, gamma=gamma, **how)


def same(text, reference):
    assert text.tokens == reference.tokens
    told = [[(r.drafted, r.accept_len) for r in one.rounds] for one in (text, reference)]
    assert told[0] == told[1]
    for one, other in zip(text.rounds, reference.rounds, strict=True):
        assert one.accept_probs == pytest.approx(other.accept_probs, abs=1e-4, nan_ok=True)


@pytest.mark.parametrize("sampling", SAMPLINGS, ids=str)
@pytest.mark.parametrize(("drafter", "gamma"), METHODS)
def test_same_text_as_cached(drafter, gamma, sampling):
    """60 tokens at a context of 16, text after text: nothing of a text may reach the next."""
    for seed in range(2):
        shared = {"sampling": sampling, "seed": seed}
        same(decode(COMPILED, drafter, gamma, **shared), decode(CACHED, drafter, gamma, **shared))


@pytest.mark.parametrize("name", [*GROWN.lossless, *(f"{name}_tree" for name in TREES)])
@pytest.mark.parametrize("sampling", [GREEDY, Sampling(), Sampling(temperature=0.7, top_k=4)], ids=str)
def test_every_drafter_and_tree_writes_the_text_of_cached(name, sampling):
    drafter = TREES[name.removesuffix("_tree")] if name.endswith("_tree") else GROWN.drafters[name]
    gamma = len(TREE.parents) if name.endswith("_tree") else min(3, drafter.max_gamma or 3)
    target, texts = drafter.target or TARGET, []
    for executed in (COMPILED, CACHED):
        how = {"count": 50, "engine": executed, "sampling": sampling, "uniforms": Uniforms("all", 3)}
        texts.append(speculative(target, drafter, [3, 1, 4], gamma=gamma, **how))
    assert texts[0].tokens == texts[1].tokens
    for one, other in zip(*(text.rounds for text in texts), strict=True):
        assert (one.drafted, one.accept_len, one.examined) == (other.drafted, other.accept_len, other.examined)
        assert one.accept_probs == pytest.approx(other.accept_probs, abs=1e-4, nan_ok=True)


@pytest.mark.parametrize("name", [*GROWN.lossless, *(f"{name}_tree" for name in TREES)])
def test_what_a_gpu_captures_writes_the_text_of_cached(name):
    """The functions of `graphs`, run as they are; two texts from one pool, longer than the context."""
    drafter = TREES[name.removesuffix("_tree")] if name.endswith("_tree") else GROWN.drafters[name]
    gamma = len(TREE.parents) if name.endswith("_tree") else min(3, drafter.max_gamma or 3)
    target, graphs = drafter.target or TARGET, GraphEngine()
    for seed in (1, 2):
        texts = []
        for executed in (graphs, CACHED):
            how = {"count": 40, "engine": executed, "sampling": Sampling(), "uniforms": Uniforms("graphs", seed)}
            texts.append(speculative(target, drafter, [3, 1, 4], gamma=gamma, **how))
        same(*texts)


@pytest.mark.parametrize(("drafter", "gamma"), METHODS)
@pytest.mark.parametrize("prompt", [[2], [2, 5], [token % 7 for token in range(40)]], ids=len)
def test_prompts_of_any_length(drafter, gamma, prompt):
    for count in (1, 2, 5, 24):
        shared = {"prompt": prompt, "count": count}
        same(decode(COMPILED, drafter, gamma, **shared), decode(CACHED, drafter, gamma, **shared))


@pytest.mark.parametrize("shape", [(8, 2, 1), (48, 3, 3), (128, 2, 2)], ids=str)
@pytest.mark.parametrize("rows", [1, 2, 7, 13, 25, 40])
def test_forward_passes_are_those_of_pytorch(shape, rows):
    """Widths that fill no vector, head widths above and below one, more rows than are multiplied at once."""
    width, heads, kv_heads = shape
    config = replace(sizes(vocabulary=19, context=24), width=width, heads=heads, kv_heads=kv_heads)
    model = tiny_llama(config, seed=5)
    tokens = np.random.default_rng(1).integers(19, size=60).tolist()
    for before in (0, 3, 20):
        sessions = [executed.open(model, 60) for executed in (COMPILED, CACHED)]
        if before:
            for session in sessions:
                session.forward(tokens[:before], rows=1)
        found, expected = (session.forward(tokens[: before + rows], rows=rows) for session in sessions)
        for name in ("logits_TV", "hidden_TD", "before_TD"):
            whole = getattr(expected, name).numpy()
            assert np.abs(getattr(found, name) - whole).max() < 2e-5 * np.abs(whole).max()


def test_a_copied_session_goes_its_own_way():
    tokens = [1, 2, 3, 4, 5, 6]
    session = COMPILED.open(TARGET, 20)
    session.forward(tokens[:4], rows=1)
    other = copy.deepcopy(session)
    other.rollback(1)
    other.forward([1, 0, 0, 0, 0, 0, 0], rows=1)
    expected = CACHED.open(TARGET, 20).forward(tokens, rows=1).logits_TV.numpy()
    np.testing.assert_allclose(session.forward(tokens, rows=1).logits_TV, expected, atol=1e-4)


@pytest.mark.parametrize("sampling", SAMPLINGS, ids=str)
def test_a_chain_in_one_call_is_the_chain_token_by_token(sampling):
    """The same tokens and rows from the same uniforms, also where a threshold ends it."""
    rng, ends = np.random.default_rng(2), set()
    for trial in range(60):
        drafter = DRAFTERS[("draft", "draft_dynamic", "ngram")[trial % 3]]
        text, gamma = rng.integers(7, size=rng.integers(1, 40)).tolist(), int(rng.integers(1, 6))
        proposals = []
        for asked in (True, False):
            session = drafter.open(COMPILED, sampling, 80)
            if not asked:
                session.proposer.chain = lambda *_: None
            assert (session.proposer.chain(text, np.zeros(1), 0.0) is not None) == asked
            session = drafter.open(COMPILED, sampling, 80) if asked else session
            proposals.append(session.propose(text, gamma, np.random.default_rng(trial)))
        one, other = proposals
        assert one.tokens == other.tokens and one.forwards == other.forwards
        np.testing.assert_allclose(one.probs_GV, other.probs_GV, atol=1e-6)
        ends.add(len(one.tokens) < gamma)
    assert ends == ({True, False} if sampling.temperature else {False})


SHARP = st.sampled_from([0.5, 3.0, 20.0, 60.0])  # nats between symbols


@settings(max_examples=150, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), scale=SHARP, sampling=st.sampled_from(SAMPLINGS), V=st.integers(2, 70))
def test_distributions_are_the_hosts(seed, scale, sampling, V):
    logits = np.random.default_rng(seed).normal(scale=scale, size=(4, V)).round(1).astype(np.float32)
    expected, found = HOST.distribution(logits, sampling), NATIVE.distribution(logits, sampling)
    np.testing.assert_allclose(found, expected, rtol=4e-15, atol=1e-300)


@pytest.mark.parametrize("sampling", [GREEDY, Sampling(), Sampling(top_p=0.5)], ids=str)
@pytest.mark.parametrize("bad", [np.nan, np.inf, "none"])
def test_rows_that_are_none_are_named(sampling, bad):
    logits = np.zeros((3, 5), dtype=np.float32)
    logits[2] = -np.inf if bad == "none" else 0.0
    logits[2, 3] = -np.inf if bad == "none" else bad
    for rules in (HOST, NATIVE):
        with pytest.raises(ValueError, match=r"logits row \(2,\) must have a finite largest number"):
            rules.distribution(logits, sampling)


@settings(max_examples=200, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1), scale=SHARP, shape=st.sampled_from(SHAPES), near=st.sampled_from([0.0, 0.3, 5.0])
)
def test_siblings_and_verdicts_are_the_hosts(seed, scale, shape, near):
    """Draw by draw: tokens, declared rows, the last accepted node, the token after it, and acceptance probabilities."""
    rng, V, G = np.random.default_rng(seed), 6, len(shape.parents)
    logits = rng.normal(scale=scale, size=(G + 1, V)).round(1)
    target_TV = distribution(logits, Sampling())
    draft_TV = distribution(logits + near * rng.normal(size=logits.shape).round(1), Sampling())
    tokens, rows = {}, {}
    for parent in range(ROOT, G):
        children = shape.children[parent]
        if children and (parent == ROOT or parent in tokens):
            uniforms = rng.random(len(children))
            drawn, declared = HOST.siblings(draft_TV[parent + 1], uniforms)
            again, same_rows = NATIVE.siblings(draft_TV[parent + 1].copy(), uniforms)
            assert list(drawn) == list(again)
            np.testing.assert_allclose(np.array(same_rows)[: len(drawn)], declared, rtol=1e-12)
            tokens |= dict(zip(children, drawn, strict=False))
            rows |= dict(zip(children, declared, strict=False))
    nodes = sorted(tokens)
    kept = shape if len(nodes) == G else shape.keeping(nodes)
    given_TV, q_GV = target_TV[[0, *(node + 1 for node in nodes)]], np.array([rows[node] for node in nodes])
    uniforms_G, extra = rng.random(len(nodes)), float(rng.random())
    found, expected = (
        rules.verify(given_TV, q_GV, [tokens[node] for node in nodes], uniforms_G, extra, kept)
        for rules in (NATIVE, HOST)
    )
    assert (found.last, found.token) == (expected.last, expected.token)
    np.testing.assert_allclose(found.accept_probs, expected.accept_probs, rtol=1e-9)


def test_the_issue_of_a_nearly_certain_row():
    """q = [1 - 5e-16, ...]: the second sibling is drawn from the row that is declared, [.6, .3, .1] of the rest."""
    q_V = np.array([1 - 5e-16, 3e-16, 1.5e-16, 5e-17])
    counts = np.zeros(4)
    for place in range(2000):
        tokens, rows = NATIVE.siblings(q_V, np.array([0.5, (place + 0.5) / 2000]))
        assert tokens[0] == 0
        np.testing.assert_allclose(rows[1], [0, 0.6, 0.3, 0.1], rtol=1e-12)
        counts[tokens[1]] += 1
    np.testing.assert_allclose(counts / 2000, [0, 0.6, 0.3, 0.1], atol=1e-3)
    drawn = draw_siblings(q_V, np.array([0.5, 0.95]))
    assert drawn.tokens.tolist() == [0, 3]


def test_vocabularies_that_differ_and_impossible_tokens_are_named():
    p, q = np.full((2, 4), 0.25), np.array([[0.5, 0.5, 0.0]])
    with pytest.raises(ValueError, match="one vocabulary, got 4 and 3 symbols"):
        NATIVE.verify(p, q, [0], np.zeros(1), 0.5, Tree.chain(1))
    with pytest.raises(ValueError, match="must give every draft token a probability"):
        NATIVE.verify(p[:, :3].copy(), q, [2], np.zeros(1), 0.5, Tree.chain(1))


@pytest.mark.parametrize("drafter", ["none", "draft", "ngram", "mtp"])
@pytest.mark.parametrize("sampling", [GREEDY, Sampling()], ids=str)
@pytest.mark.parametrize("name", ["recompute", "cached", "compiled"])
def test_weights_that_are_none_are_refused_while_decoding(drafter, sampling, name):
    broken = tiny_llama(CONFIG, seed=11)
    broken.lm_head.weight.data[0, 0] = torch.nan
    executed = COMPILED if name == "compiled" else engine(name)
    how = {"count": 6, "engine": executed, "sampling": sampling, "uniforms": Uniforms(1)}
    with pytest.raises(ValueError, match="must have a finite largest number"):
        if drafter == "none":
            autoregressive(broken, [1, 2], **how)
        else:
            speculative(broken, DRAFTERS[drafter], [1, 2], gamma=1, **how)


def test_without_a_compiler_there_is_a_reason(monkeypatch):
    monkeypatch.setenv("CXX", "no-such-compiler")
    with pytest.raises(building.NotCompiled, match="no C\\+\\+ compiler found; install one"):
        building.compiler()


def test_a_compiler_that_fails_is_named(monkeypatch, tmp_path):
    fails = tmp_path / "c++"
    fails.write_text("#!/bin/sh\necho 'out of memory' >&2; exit 1\n")
    fails.chmod(0o755)
    monkeypatch.setenv("CXX", str(fails))
    with pytest.raises(building.NotCompiled, match="failed \\(out of memory\\)"):
        building.build(tmp_path)


def test_it_is_compiled_once(tmp_path):
    """Into a folder whose name has a space; the second time it is there, with the seconds that it took."""
    folder = tmp_path / "a folder"
    folder.mkdir()
    path, seconds = building.build(folder)
    before = path.stat().st_mtime_ns
    assert building.build(folder) == (path, seconds) and path.stat().st_mtime_ns == before and seconds > 0
    assert set(folder.iterdir()) == {path, path.with_suffix(".json")}


def test_an_engine_that_cannot_be_had_is_left_out(monkeypatch):
    lines = []
    found, left_out = usable(["cached", "compiled"], torch.device("meta"), lines.append)
    assert [one.name for one in found] == ["cached"] and list(left_out) == ["compiled"]
    assert lines == [f"engine compiled is left out: {left_out['compiled']}"]


@pytest.mark.parametrize("name", ["cached", "compiled"])
def test_clocks(name):
    """What is clocked adds up to nearly all; without clocks the text is the same and no phase is told."""
    executed = COMPILED if name == "compiled" else CACHED
    clocked = decode(executed, "draft", 3, count=200)
    assert set(clocked.phase_s) == {"draft", "catch_up", "verify", "accept", "sync"}
    assert min(clocked.phase_s.values()) >= 0
    assert 0.9 * clocked.wall_s < sum(clocked.phase_s.values()) <= clocked.wall_s
    silent = decode(executed, "draft", 3, count=200, clocked=False)
    assert silent.tokens == clocked.tokens and silent.phase_s == {} and silent.wall_s > 0
