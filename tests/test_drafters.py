"""Drafters that stop early, look up, or keep their rows; and how a clock tells catching up from drafting."""

import itertools

import numpy as np
import pytest
import torch
from scipy import stats
from small import drafters_of, lookup_drafter, model_drafter, sizes, tiny_llama
from specledger.decoding import counts
from specledger.decoding.counts import Clock
from specledger.decoding.engines import engine
from specledger.decoding.loops import speculative
from specledger.sampling.distributions import GREEDY, Sampling, distribution, draw
from specledger.sampling.uniforms import Uniforms, stream

TARGET = tiny_llama(sizes(vocabulary=5, context=16), seed=21)
DRAFT = model_drafter(drafters_of(TARGET)["draft"].parts[0], threshold=0.35)
LOOKUP = lookup_drafter(5, longest=3, shortest=1)
PROMPT = [1, 2, 3, 1, 2, 4, 0, 3, 1]
CACHED = engine("cached")


def propose(drafter, tokens, gamma, seed=0, sampling=Sampling()):  # noqa: B008
    session = drafter.open(CACHED, sampling, len(tokens) + gamma)
    return session.propose(tokens, gamma, stream("test", seed))


@pytest.mark.parametrize(
    ("tokens", "gamma", "expected"),
    [
        ([1, 2, 3, 4, 1, 2], 2, [3, 4]),
        ([1, 2, 3, 4, 1, 2], 8, [3, 4, 1, 2]),  # no further than the text goes
        ([4, 2, 0, 1, 2, 3, 1, 2], 1, [3]),  # the longest match, and not the last of the short ones
        ([2, 0, 2, 3, 2], 1, [3]),  # of equal ones the last
        ([0, 1, 2], 3, []),
        ([0], 3, []),
    ],
)
def test_lookup_by_hand(tokens, gamma, expected):
    found = propose(LOOKUP, tokens, gamma)
    assert found.tokens == expected and found.forwards == 0
    assert found.probs_GV.tolist() == np.eye(5)[expected].tolist()


def test_lookup_remembers_as_the_text_grows():
    session = LOOKUP.open(CACHED, Sampling(), 50)
    text = np.random.default_rng(1).integers(5, size=40).tolist()
    for end in range(1, 41, 3):
        assert session.propose(text[:end], 4, stream(0)).tokens == propose(LOOKUP, text[:end], 4).tokens


def test_lookup_needs_its_shortest():
    assert propose(lookup_drafter(5, longest=3, shortest=2), [1, 2, 0, 2], 2).tokens == []
    assert propose(lookup_drafter(5, longest=3, shortest=2), [1, 2, 0, 1, 2], 2).tokens == [0, 1]


def test_a_draft_stops_after_what_it_doubted():
    stopped = 0
    for seed in range(40):
        found = propose(DRAFT, PROMPT, 6, seed)
        given = [row[token] for row, token in zip(found.probs_GV, found.tokens, strict=True)]
        assert 1 <= len(found.tokens) == found.forwards <= 6
        assert all(prob >= 0.35 for prob in given[:-1])
        assert given[-1] < 0.35 or len(given) == 6
        whole = propose(model_drafter(DRAFT.parts[0]), PROMPT, 6, seed).tokens
        assert whole[: len(given)] == found.tokens  # the same draws, fewer of them
        stopped += len(given) < 6
    assert stopped > 10


def exact_law(count):
    """The target's law of `count` tokens after the prompt."""
    law = {(): 1.0}
    for _ in range(count):
        longer = {}
        for tail, mass in law.items():
            logits_TV = CACHED.open(TARGET, 20).forward([*PROMPT, *tail], rows=1).logits_TV
            for token, prob in enumerate(distribution(logits_TV[0].numpy(), Sampling())):
                longer[(*tail, token)] = mass * prob
        law = longer
    return law


@pytest.mark.parametrize("drafter", [DRAFT, LOOKUP], ids=["dynamic", "lookup"])
def test_texts_follow_the_targets_law(drafter):
    """4,000 texts of 3 tokens at gamma 2; falls below 1e-4 once in 10,000 if all is right, and the seed is fixed."""
    law, uniforms, drafted = exact_law(3), Uniforms("law"), 0
    observed = dict.fromkeys(itertools.product(range(5), repeat=3), 0)
    for _ in range(4000):
        text = speculative(
            TARGET, drafter, PROMPT, gamma=2, count=3, engine=CACHED, sampling=Sampling(), uniforms=uniforms
        )
        observed[tuple(text.tokens)] += 1
        drafted += text.drafted
    assert drafted > 1000
    cells = [cell for cell in law if law[cell] * 4000 >= 5]
    rest = 4000 - sum(observed[cell] for cell in cells)
    counts_of = np.array([observed[cell] for cell in cells] + [rest])
    expected = np.array([law[cell] * 4000 for cell in cells])
    expected = np.append(expected, 4000 - expected.sum())
    keep = expected > 1e-9
    assert stats.chisquare(counts_of[keep], expected[keep]).pvalue > 1e-4


@pytest.mark.parametrize("sampling", [Sampling(), GREEDY, Sampling(temperature=0.7, top_k=3)], ids=str)
def test_ngram_draws_are_those_of_draw(sampling):
    ngram = drafters_of(TARGET)["ngram"]
    for seed in range(20):
        found = propose(ngram, PROMPT, 4, seed, sampling)
        context = list(PROMPT)
        for row, token, uniform in zip(found.probs_GV, found.tokens, stream("test", seed).random(4), strict=True):
            with np.errstate(divide="ignore"):
                q_V = distribution(np.log(ngram.parts[0].probabilities(context)), sampling)
            assert row == pytest.approx(q_V, abs=1e-12)
            assert token == int(draw(row, uniform))
            context.append(token)


def test_ngram_rows_are_forgotten_before_they_fill_the_memory(monkeypatch):
    from specledger.drafters import ngram as module

    monkeypatch.setattr(module, "MEMO_BYTES", 3 * 5 * 8)
    ngram = drafters_of(TARGET)["ngram"]
    before = [propose(ngram, PROMPT, 6, seed).tokens for seed in range(5)]
    assert len(ngram.parts[0].rows(Sampling())) <= 3
    monkeypatch.undo()
    assert before == [propose(drafters_of(TARGET)["ngram"], PROMPT, 6, seed).tokens for seed in range(5)]


def clock_of(monkeypatch, times, laps):
    ticks = iter(times)
    monkeypatch.setattr(counts.time, "perf_counter", lambda: next(ticks))
    clock = Clock(torch.device("cpu"))
    for lap in laps:
        clock.lap_draft(lap) if isinstance(lap, int) else clock.lap(lap)
    return clock.stop()


def test_catching_up_is_what_such_proposals_take_longer(monkeypatch):
    """Proposals of 1, 1 and 3 s, the last with a token to catch up: 2 s of its 3."""
    wall_s, phases = clock_of(
        monkeypatch, [0.0, 0.0, 1.0, 5.0, 6.0, 10.0, 13.0, 17.0, 18.0], [0, "verify", 0, "verify", 1, "verify"]
    )
    assert wall_s == 18.0
    assert phases == {"draft": 3.0, "catch_up": 2.0, "verify": 12.0, "accept": 0.0, "sync": 0.0}


def test_without_a_proposal_to_compare_nothing_is_catching_up(monkeypatch):
    _, phases = clock_of(monkeypatch, [0.0, 0.0, 1.0, 3.0, 3.0], [1, 1])
    assert (phases["draft"], phases["catch_up"]) == (3.0, 0.0)
