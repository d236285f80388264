"""From logits to distributions and draws, for any logits that hypothesis thinks of."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats
from specledger.sampling.distributions import GREEDY, Sampling, distribution, draw
from specledger.sampling.uniforms import Uniforms
from specledger.sampling.warpers import MinP, Temperature, TopK, TopP

LARGEST_UNIFORM = np.nextafter(1.0, 0.0)
VOCABULARY = 9
ROWS = arrays(np.float64, (3, VOCABULARY), elements=st.floats(-60, 60, width=32))
TEMPERATURES = st.floats(0.05, 20)


SAMPLINGS = st.builds(
    Sampling,
    temperature=st.just(0.0) | TEMPERATURES,
    top_k=st.none() | st.integers(1, 12),
    top_p=st.none() | st.floats(0.01, 1),
    min_p=st.none() | st.floats(0.001, 1),
)


@given(ROWS, SAMPLINGS)
def test_every_row_is_a_distribution(logits, sampling):
    probs = distribution(logits, sampling)
    assert probs.dtype == np.float64 and (probs >= 0).all()
    assert np.abs(probs.sum(axis=-1) - 1).max() < 1e-12


@given(ROWS, SAMPLINGS)
def test_host_and_device_keep_the_same_symbols_to_the_bit(logits, sampling):
    """What each warper does to the same numbers, bit by bit; the probabilities up to the rounding of exp and sum."""
    on_host, on_device = logits - logits.max(axis=-1, keepdims=True), torch.from_numpy(logits.copy())
    on_device = on_device - on_device.amax(dim=-1, keepdim=True)
    for warper in sampling.warpers:
        on_host, on_device = warper(on_host), warper(on_device)
        assert (on_host == on_device.numpy()).all(), warper
    host, device = distribution(logits, sampling), distribution(torch.from_numpy(logits.copy()), sampling).numpy()
    np.testing.assert_allclose(device, host, rtol=1e-14, atol=0)


@pytest.mark.parametrize("bad", [np.nan, np.inf, "all -inf"])
@pytest.mark.parametrize(
    "sampling",
    [Sampling(), GREEDY, Sampling(temperature=0.05), Sampling(top_k=1), Sampling(top_p=0.3), Sampling(min_p=0.5)],
    ids=str,
)
def test_a_row_that_is_no_distribution_is_refused(sampling, bad):
    """On the host by its place; on the device it is NaN all over, whatever else stands in it and in other rows."""
    for place in range(VOCABULARY):
        logits = np.random.default_rng(place).normal(size=(2, 3, VOCABULARY))
        logits[1, 2, place] = np.nan if bad == "all -inf" else bad
        if bad == "all -inf":
            logits[1, 2] = -np.inf
        with pytest.raises(ValueError, match=r"logits row \(1, 2\) must have a finite largest number, got (nan|-?inf)"):
            distribution(logits, sampling)
        found = distribution(torch.from_numpy(logits), sampling)
        assert found[1, 2].isnan().all() and found.isnan().sum() == VOCABULARY
    logits[1, 2] = -np.inf
    logits[1, 2, 4] = 1.0  # -inf beside numbers is a symbol without probability
    assert (distribution(logits, sampling)[1, 2] == np.eye(VOCABULARY)[4]).all()


@given(ROWS, TEMPERATURES)
def test_temperature_is_softmax(logits, temperature):
    expected = np.exp(logits / temperature - np.logaddexp.reduce(logits / temperature, axis=-1, keepdims=True))
    np.testing.assert_allclose(
        distribution(logits, Sampling(temperature=temperature)), expected, rtol=1e-9, atol=1e-300
    )


@given(ROWS)
def test_greedy_is_one_hot_at_the_first_maximum(logits):
    probs = distribution(logits, GREEDY)
    assert (probs == np.eye(VOCABULARY)[logits.argmax(axis=-1)]).all()


@given(ROWS, TEMPERATURES, st.integers(1, VOCABULARY))
def test_top_k_keeps_the_k_largest_and_ties(logits, temperature, k):
    whole = distribution(logits, Sampling(temperature=temperature))
    probs = distribution(logits, Sampling(temperature=temperature, top_k=k))
    for row, full in zip(probs, whole, strict=True):
        kth = np.sort(full)[-k]
        # A tie is judged before normalising, so a symbol within rounding of the k-th may go either way.
        assert (row[full > kth * (1 + 1e-12)] > 0).all()
        assert (row[full < kth * (1 - 1e-12)] == 0).all()
        kept = row > 0
        np.testing.assert_allclose(row[kept], full[kept] / full[kept].sum(), rtol=1e-9)


@given(ROWS, TEMPERATURES, st.floats(0.01, 1))
def test_top_p_keeps_the_smallest_set_that_reaches_p(logits, temperature, p):
    whole = distribution(logits, Sampling(temperature=temperature))
    probs = distribution(logits, Sampling(temperature=temperature, top_p=p))
    for row, full in zip(probs, whole, strict=True):
        kept = row > 0
        assert full[kept].sum() >= p - 1e-9  # it reaches p,
        smallest = full[kept].min()
        larger = full > smallest * (1 + 1e-12)
        assert full[larger].sum() < p + 1e-9  # would not without its last symbol and what ties with that,
        assert (full[~kept] <= smallest).all()  # and nothing more probable was left out
        np.testing.assert_allclose(row[kept], full[kept] / full[kept].sum(), rtol=1e-9)


@given(ROWS, TEMPERATURES, st.floats(0.001, 1))
def test_min_p_keeps_what_is_likely_enough(logits, temperature, p):
    whole = distribution(logits, Sampling(temperature=temperature))
    probs = distribution(logits, Sampling(temperature=temperature, min_p=p))
    for row, full in zip(probs, whole, strict=True):
        kept = row > 0
        assert (full[kept] >= p * full.max() * (1 - 1e-9)).all() and (full[~kept] <= p * full.max() * (1 + 1e-9)).all()
        np.testing.assert_allclose(row[kept], full[kept] / full[kept].sum(), rtol=1e-9)


def test_cuts_by_hand():
    logits = np.log([0.4, 0.3, 0.2, 0.1])
    assert distribution(logits, Sampling(top_k=2)) == pytest.approx([4 / 7, 3 / 7, 0, 0])
    assert distribution(logits, Sampling(top_p=0.7)) == pytest.approx([4 / 7, 3 / 7, 0, 0])
    assert distribution(logits, Sampling(top_p=0.71)) == pytest.approx([4 / 9, 3 / 9, 2 / 9, 0])
    # top-k first: of (4/7, 3/7), 4/7 alone reaches one half.
    assert distribution(logits, Sampling(top_k=2, top_p=0.5)) == pytest.approx([1, 0, 0, 0])
    assert distribution(logits, Sampling(min_p=0.5)) == pytest.approx([4 / 9, 3 / 9, 2 / 9, 0])
    assert distribution(logits, Sampling(top_k=3, min_p=0.6)) == pytest.approx([4 / 7, 3 / 7, 0, 0])
    assert distribution(np.zeros(4), Sampling(top_p=0.5)) == pytest.approx([0.25] * 4)  # what ties is kept
    assert distribution(logits, Sampling(temperature=0.5)) == pytest.approx(np.array([16, 9, 4, 1]) / 30)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"temperature": -0.5}, "temperature must be at least 0 and finite, got -0.5"),
        ({"top_k": 0}, "top_k must be at least 1, got 0"),
        ({"top_p": 0.0}, r"top_p must lie in \(0, 1\], got 0.0"),
        ({"top_p": 1.5}, r"top_p must lie in \(0, 1\], got 1.5"),
        ({"temperature": float("nan")}, "temperature must be at least 0 and finite, got nan"),
        ({"min_p": 0.0}, r"min_p must lie in \(0, 1\], got 0.0"),
    ],
)
def test_settings_out_of_range(wrong, words):
    with pytest.raises(ValueError, match=words):
        Sampling(**wrong)


def test_warpers_are_those_that_are_set():
    assert Sampling().warpers == (Temperature(1.0),) and Sampling(top_p=0.9).warpers == (Temperature(1.0), TopP(0.9))
    assert Sampling(temperature=0.5, top_k=3, min_p=0.1).warpers == (Temperature(0.5), TopK(3), MinP(0.1))


WEIGHTS = arrays(np.float64, VOCABULARY, elements=st.just(0.0) | st.floats(1e-12, 1e3)).filter(lambda w: w.sum() > 0)
UNIFORMS = st.floats(0, LARGEST_UNIFORM) | st.sampled_from([0.0, 5e-324, LARGEST_UNIFORM])


@given(WEIGHTS, UNIFORMS)
def test_draw_never_returns_a_symbol_without_weight(weights, uniform):
    assert weights[int(draw(weights, uniform))] > 0


@given(WEIGHTS)
def test_draw_at_the_ends(weights):
    there = np.flatnonzero(weights)
    assert draw(weights, 0.0) == there[0]
    # The last symbol may be lighter than one rounding of the sum; then the largest uniform can't reach it.
    assert weights[int(draw(weights, LARGEST_UNIFORM))] > 0
    if weights[there[-1]] > 1e-9 * weights.sum():
        assert draw(weights, LARGEST_UNIFORM) == there[-1]


def test_draw_from_the_smallest_weight_there_is():
    """Here uniform * total rounds up to the total itself, past the last symbol that has weight."""
    for uniform in (0.0, 0.5, LARGEST_UNIFORM):
        assert draw(np.array([0.0, 5e-324, 0.0]), uniform) == 1


@given(WEIGHTS)
def test_draw_inverts_the_cdf(weights):
    """On a grid of n midpoints each symbol comes out within one of n times its share."""
    n = 4001
    grid = (np.arange(n) + 0.5) / n
    counts = np.bincount(draw(np.broadcast_to(weights, (n, VOCABULARY)), grid), minlength=VOCABULARY)
    assert (np.abs(counts - n * weights / weights.sum()) <= 1 + 1e-6).all()


def test_draw_frequencies():
    """Chi-square of 100,000 draws: a right draw falls below this bound at one seed in 1,000; the seed is fixed."""
    weights = np.array([0.5, 0.0, 0.2, 0.299, 0.001])
    tokens = draw(np.broadcast_to(weights, (100_000, 5)), np.random.default_rng(1).random(100_000))
    counts = np.bincount(tokens, minlength=5)
    assert counts[1] == 0
    there = weights > 0
    assert stats.chisquare(counts[there], 100_000 * weights[there]).pvalue > 1e-3


def test_streams_are_independent_and_repeat():
    one, same, other = Uniforms(3, 1), Uniforms(3, 1), Uniforms(3, 2)
    numbers = [generator.random(1000) for generator in (one.draft, one.accept, one.extra, other.draft)]
    assert np.array_equal(numbers[0], same.draft.random(1000))
    for i in range(4):
        for j in range(i):
            # |r| above 0.15 at n = 1,000 has odds of 2e-6.
            assert abs(np.corrcoef(numbers[i], numbers[j])[0, 1]) < 0.15
