"""The engine with static shapes writes what the cached one writes, from the same uniforms.

Most cases run its steps as they are, uncompiled, since compiling takes seconds; a few are compiled for real.
"""

import numpy as np
import pytest
import torch
from small import drafters_of, lookup_drafter, model_drafter, sizes, tiny_llama
from specledger.decoding import steps, tensors
from specledger.decoding.compiled import CompiledEngine
from specledger.decoding.engines import engine
from specledger.decoding.loops import autoregressive, speculative
from specledger.models.ring import Ring
from specledger.sampling.distributions import GREEDY, Sampling, distribution, draw
from specledger.sampling.uniforms import Uniforms
from specledger.sampling.verify import verify
from torch._inductor import cpp_builder
from torch._inductor.exc import InvalidCxxCompiler

CONFIG = sizes(vocabulary=7, context=16)
TARGET = tiny_llama(CONFIG, seed=11)
DRAFTERS = drafters_of(TARGET)
DRAFTERS["draft_dynamic"] = model_drafter(DRAFTERS["draft"].parts[0], name="draft_dynamic", threshold=0.3)
DRAFTERS["lookup"] = lookup_drafter(7, longest=4, shortest=1)
DRAFTERS["perfect"] = model_drafter(TARGET, name="perfect")
SAMPLINGS = [
    Sampling(), GREEDY, Sampling(temperature=0.7), Sampling(top_k=3), Sampling(top_p=0.8), Sampling(top_k=4, top_p=0.9),
]  # fmt: skip
METHODS = [
    ("none", 0), ("draft", 1), ("draft", 4), ("draft_dynamic", 4),
    ("ngram", 3), ("lookup", 3), ("mtp", 1), ("perfect", 3),
]  # fmt: skip


@pytest.fixture
def as_they_are(monkeypatch):
    monkeypatch.setattr(steps, "compiled", lambda function, tensors: function)


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
        assert one.accept_probs == pytest.approx(other.accept_probs, abs=1e-4)


@pytest.mark.parametrize("sampling", SAMPLINGS, ids=str)
@pytest.mark.parametrize(("drafter", "gamma"), METHODS)
def test_same_text_as_cached(as_they_are, drafter, gamma, sampling):
    """60 tokens at a context of 16: the ring goes round several times."""
    executed = CompiledEngine()
    for seed in range(3):  # one engine, text after text: nothing of a text may reach the next
        shared = {"sampling": sampling, "seed": seed}
        same(decode(executed, drafter, gamma, **shared), decode(engine("cached"), drafter, gamma, **shared))


@pytest.mark.parametrize(("drafter", "gamma"), METHODS)
@pytest.mark.parametrize("prompt", [[2], [2, 5], list(np.arange(40) % 7)], ids=len)
def test_prompts_of_any_length(as_they_are, drafter, gamma, prompt):
    """One token, two, and more than the context and than is read at once."""
    for count in (1, 2, 5, 24):
        shared = {"prompt": [int(token) for token in prompt], "count": count}
        same(decode(CompiledEngine(), drafter, gamma, **shared), decode(engine("cached"), drafter, gamma, **shared))


# Each is compiled anew, which takes long: one here, the others in `make test-all`.
METHODS_COMPILED = [("none", 0), ("draft", 2), ("ngram", 2), ("mtp", 1)]


@pytest.mark.parametrize(
    ("drafter", "gamma"),
    [pytest.param(*one, marks=() if one[0] == "ngram" else pytest.mark.slow) for one in METHODS_COMPILED],
)
def test_same_text_compiled(drafter, gamma):
    if why := steps.why_not(torch.device("cpu")):
        pytest.skip(why)
    executed = CompiledEngine()
    for seed in range(2):
        same(decode(executed, drafter, gamma, seed=seed), decode(engine("cached"), drafter, gamma, seed=seed))
    before = executed.compile_s
    assert before > 0
    decode(executed, drafter, gamma, seed=9)
    assert executed.compile_s == before  # once


def test_without_a_compiler_there_is_a_reason(monkeypatch):
    def none():
        raise InvalidCxxCompiler

    monkeypatch.setattr(cpp_builder, "get_cpp_compiler", none)
    assert "no C++ compiler found; install one" in steps.why_not(torch.device("cpu"))
    assert steps.why_not(torch.device("cuda")) is None


def test_a_folder_with_a_space_is_a_reason(monkeypatch):
    monkeypatch.setattr(cpp_builder, "get_cpp_compiler", lambda: "g++")
    monkeypatch.setattr(torch, "__file__", "/home/some one/torch/__init__.py")
    assert "a folder whose name has a space (/home/some one/torch)" in steps.why_not(torch.device("cpu"))


def test_a_compiler_that_fails_is_named():
    def untraceable(x):
        return np.array([x.item()])

    with pytest.raises(steps.NotCompiled, match="engine compiled: the compiler failed"):
        steps.compiled(untraceable, (torch.zeros(1),))


def test_a_mass_that_is_none_is_refused(as_they_are):
    broken = tiny_llama(CONFIG, seed=11)
    broken.lm_head.weight[0, 0] = torch.nan
    how = {"count": 3, "engine": CompiledEngine(), "sampling": Sampling(), "uniforms": Uniforms(1)}
    for decoded in (
        lambda: autoregressive(broken, [1, 2], **how),
        lambda: speculative(broken, DRAFTERS["ngram"], [1, 2], gamma=2, **how),
    ):
        with pytest.raises(ValueError, match="target_probs after 2 tokens must be a distribution, got a mass of nan"):
            decoded()


def logits_of(rng, *shape):
    return rng.normal(scale=2.0, size=shape).round(1)  # rounded, so that ties occur


@pytest.mark.parametrize("sampling", SAMPLINGS, ids=str)
def test_distributions_are_the_references(sampling):
    logits = logits_of(np.random.default_rng(3), 200, 9)
    found = tensors.distribution(torch.from_numpy(logits), sampling).numpy()
    assert np.abs(found - distribution(logits, sampling)).max() < 1e-15


def test_draws_are_the_references():
    rng = np.random.default_rng(4)
    for _ in range(300):
        weights_V = rng.dirichlet(np.ones(6)) * (rng.random(6) < 0.6)
        if not weights_V.any():
            continue
        uniform = float(rng.choice([0.0, rng.random(), np.nextafter(1.0, 0.0)]))
        token, total = tensors.draw(torch.from_numpy(weights_V), torch.tensor(uniform, dtype=torch.float64))
        assert int(token) == int(draw(weights_V, np.array(uniform)))
        assert float(total) == pytest.approx(weights_V.sum())


@pytest.mark.parametrize("sampling", SAMPLINGS, ids=str)
@pytest.mark.parametrize("drafted", [0, 1, 3])
def test_verdicts_are_the_references(sampling, drafted):
    """Random rounds with three places, of which `drafted` are used; a third of them full accepts."""
    rng, lengths, G = np.random.default_rng(5), set(), 3
    for _ in range(200):
        p_GV = distribution(logits_of(rng, G + 1, 6), sampling)
        q_GV = distribution(logits_of(rng, G, 6), sampling) if rng.random() < 0.7 else p_GV[:G].copy()
        tokens_G, uniforms = draw(q_GV, rng.random(G)), rng.random(G + 1)
        n = drafted
        expected = verify(p_GV[None, : n + 1], q_GV[None, :n], tokens_G[None, :n], uniforms[None, :n], uniforms[G:])
        held = [torch.from_numpy(np.ascontiguousarray(x)) for x in (p_GV, q_GV, tokens_G)]
        found = tensors.judge(*held, torch.tensor(n), torch.from_numpy(uniforms[:G]), torch.tensor(uniforms[G]))
        assert (int(found.accept_len), int(found.token)) == (int(expected.accept_len_N[0]), int(expected.token_N[0]))
        assert found.accept_probs_G[:n].numpy() == pytest.approx(expected.accept_probs_NG[0], abs=1e-15)
        lengths.add(int(found.accept_len))
    assert lengths == set(range(drafted + 1))


def test_what_lies_behind_the_beginning_is_out_of_sight():
    """Rejected tokens stay in the ring, wherever it stands, and no later forward sees them."""
    tokens = np.random.default_rng(6).integers(7, size=80).tolist()
    session = engine("cached").open(TARGET, 80)
    ring = Ring.allocate(TARGET, layers=CONFIG.layers, widest=5, positions=96)
    for first in range(70):
        expected = session.forward(tokens[: first + 1], rows=1).logits_TV
        if first % 3 == 0:  # a round whose proposals are all rejected
            wrong = torch.tensor([[tokens[first], 6, 6, 6, 6]])
            TARGET.hidden(wrong, ring.at(torch.tensor(first)))
        found = TARGET.logits(TARGET.hidden(torch.tensor([[tokens[first]]]), ring.at(torch.tensor(first))))[0]
        assert (found - expected).abs().max() < 1e-4


@pytest.mark.parametrize("name", ["cached", "compiled"])
def test_clocks(as_they_are, name):
    """What is clocked adds up to nearly all; without clocks the text is the same and no phase is told."""
    executed = engine(name)
    clocked = decode(executed, "draft", 3, count=200)
    assert set(clocked.phase_s) == {"draft", "catch_up", "verify", "accept", "sync"}
    assert min(clocked.phase_s.values()) >= 0
    assert 0.9 * clocked.wall_s < sum(clocked.phase_s.values()) <= clocked.wall_s
    silent = decode(executed, "draft", 3, count=200, clocked=False)
    assert silent.tokens == clocked.tokens and silent.phase_s == {} and silent.wall_s > 0
