"""The n-gram is the formula of interpolated absolute discounting, whole, saved or fast."""

import statistics
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small import play
from specledger.corpus.text import Vocabulary, max_order
from specledger.drafters.ngram import NGram
from specledger.foundation.errors import UserError


def by_definition(tokens: list[int], context: list[int], vocabulary: int, discount: float) -> np.ndarray:
    """P(next | context) [V], straight from the formula with counts made anew."""
    lower = by_definition(tokens, context[1:], vocabulary, discount) if context else np.full(vocabulary, 1 / vocabulary)
    n = len(context)
    following = [tokens[i + n] for i in range(len(tokens) - n) if tokens[i : i + n] == context]
    if not following:
        return lower
    counts = np.bincount(following, minlength=vocabulary)
    distinct = np.count_nonzero(counts)
    return (np.maximum(counts - discount, 0) + discount * distinct * lower) / counts.sum()


def test_worked_by_hand():
    """Text 0 1 0 1 1, order 2, discount 1/2.

    P(0) = (2 - .5)/5 + .5*2/5 * 1/2 = .4 and P(1) = .6. After 0 came 1 twice:
    P(1|0) = (2 - .5)/2 + .5*1/2 * .6 = .9. After 1 came 0 once and 1 once:
    P(0|1) = .5/2 + .5*2/2 * .4 = .45.
    """
    ngram = NGram.count(np.array([0, 1, 0, 1, 1]), vocabulary=2, order=2, discount=0.5)
    assert ngram.probabilities([]) == pytest.approx([0.4, 0.6])
    assert ngram.probabilities([0]) == pytest.approx([0.1, 0.9])
    assert ngram.probabilities([1]) == pytest.approx([0.45, 0.55])
    assert ngram.probabilities([0, 0, 1, 1]) == pytest.approx([0.45, 0.55])  # only the last order - 1 count


@settings(max_examples=50)
@given(st.data())
def test_is_the_formula(data):
    vocabulary, order = data.draw(st.integers(2, 5)), data.draw(st.integers(1, 4))
    symbol = st.integers(0, vocabulary - 1)
    tokens = data.draw(st.lists(symbol, min_size=order, max_size=60))
    context = data.draw(st.lists(symbol, max_size=6))
    discount = data.draw(st.floats(0.05, 0.95))
    ngram = NGram.count(np.array(tokens), vocabulary=vocabulary, order=order, discount=discount)
    probs_V = ngram.probabilities(context)
    recent = context[max(0, len(context) - order + 1) :]
    assert probs_V == pytest.approx(by_definition(tokens, recent, vocabulary, discount), abs=1e-12)
    assert probs_V.sum() == pytest.approx(1, abs=1e-12) and (probs_V > 0).all()


@pytest.fixture(scope="module")
def text():
    """As long as tiny shakespeare, with noise so that there are many contexts."""
    written = play(1_115_394, seed=3)
    tokens = Vocabulary.of(written).encode(written)
    rng = np.random.default_rng(0)
    noise = rng.random(len(tokens)) < 0.2
    return np.where(noise, rng.integers(tokens.max() + 1, size=len(tokens)), tokens)


@pytest.fixture(scope="module")
def big(text):
    started = time.perf_counter()
    ngram = NGram.count(text, vocabulary=int(text.max()) + 1, order=5, discount=0.75)
    assert time.perf_counter() - started < 20  # 1 s on an idle core
    return ngram


def test_rows_of_a_big_table_sum_to_one(text, big):
    for start in np.random.default_rng(1).integers(len(text) - 5, size=200):
        probs_V = big.probabilities(text[start : start + 4])
        assert abs(probs_V.sum() - 1) < 1e-9 and (probs_V > 0).all()


def test_loss_is_the_mean_of_minus_logs(text, big):
    some = text[:300]
    expected = -np.mean([np.log(big.probabilities(some[:t])[some[t]]) for t in range(len(some))])
    assert big.loss(some) == pytest.approx(expected)


def test_a_query_takes_microseconds(text, big, tmp_path):
    """First queries, which find nothing remembered; the median forgives a busy machine."""
    big.save(tmp_path / "table.safetensors")
    fresh = NGram.load(tmp_path / "table.safetensors")
    contexts = [text[i : i + 4].tolist() for i in np.random.default_rng(2).integers(len(text) - 5, size=2000)]
    seconds = []
    for context in contexts:
        started = time.perf_counter()
        fresh.probabilities(context)
        seconds.append(time.perf_counter() - started)
    assert statistics.median(seconds) < 100e-6


def test_saved_and_loaded_are_the_same_bits(text, big, tmp_path):
    big.save(tmp_path / "table.safetensors")
    loaded = NGram.load(tmp_path / "table.safetensors")
    assert (loaded.order, loaded.vocabulary, loaded.discount) == (big.order, big.vocabulary, big.discount)
    rng = np.random.default_rng(4)
    for _ in range(300):
        context = rng.integers(big.vocabulary, size=rng.integers(0, 7)).tolist()
        assert np.array_equal(loaded.probabilities(context), big.probabilities(context))


@pytest.mark.parametrize("order", [0, 11])
def test_order_out_of_range(order):
    assert max_order(65) == 10
    with pytest.raises(ValueError, match=f"order must be from 1 to 10 at vocabulary 65, got {order}"):
        NGram.count(np.zeros(20, dtype=np.int64), vocabulary=65, order=order, discount=0.5)


def test_the_longest_order_does_not_overflow():
    """At order 10 the codes of 65 symbols come within a seventh of 2^63."""
    tokens = np.array([64] * 12 + [63, 64])
    ngram = NGram.count(tokens, vocabulary=65, order=10, discount=0.5)
    expected = by_definition(tokens.tolist(), [64] * 9, 65, 0.5)
    assert ngram.probabilities([64] * 9) == pytest.approx(expected, abs=1e-12)


def test_damaged_table_is_refused(tmp_path):
    path = tmp_path / "table.safetensors"
    with pytest.raises(UserError, match=r"table\.safetensors: missing"):
        NGram.load(path)
    NGram.count(np.array([0, 1, 0]), vocabulary=2, order=2, discount=0.5).save(path)
    path.write_bytes(path.read_bytes()[:-7])
    with pytest.raises(UserError, match=r"table\.safetensors: damaged"):
        NGram.load(path)
