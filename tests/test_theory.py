"""The formulas against closed forms, worked values of the chapter, and their own special cases."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from specledger.theory.speculation import (
    best_gamma,
    expected_tokens_per_round,
    measured_cost_speedup,
    walltime_speedup,
)

ALPHAS = st.floats(0, 1)
GAMMAS = st.integers(0, 64)


@given(st.floats(0, 0.999), GAMMAS)
def test_eq1_is_its_closed_form(alpha, gamma):
    assert expected_tokens_per_round(alpha, gamma) == pytest.approx((1 - alpha ** (gamma + 1)) / (1 - alpha), rel=1e-9)


@given(GAMMAS)
def test_eq1_at_the_ends(gamma):
    assert expected_tokens_per_round(1.0, gamma) == gamma + 1
    assert expected_tokens_per_round(0.0, gamma) == 1


@given(ALPHAS, GAMMAS)
def test_eq1_lies_between_one_and_gamma_plus_one(alpha, gamma):
    assert 1 <= expected_tokens_per_round(alpha, gamma) <= gamma + 1


@pytest.mark.parametrize(("alpha", "gamma", "published"), [(0.717, 6, 3.192), (0.676, 8, 2.993)])
def test_eq1_gives_the_chapters_values(alpha, gamma, published):
    """The chapter prints alpha with three digits: half a unit of the last is worth about 0.006 tokens."""
    below, above = (expected_tokens_per_round(alpha + shift, gamma) for shift in (-0.0005, 0.0005))
    assert below - 0.0005 <= published <= above + 0.0005
    assert above - below < 0.012


def test_theorem_38_by_hand():
    # alpha 0.5, gamma 2: 1 + 0.5 + 0.25 tokens for 1 + 2c forwards.
    assert walltime_speedup(0.5, 2, 0.1) == pytest.approx(1.75 / 1.2)
    assert walltime_speedup(0.8, 0, 0.3) == 1


@given(ALPHAS, GAMMAS, st.floats(0, 10))
def test_theorem_38_is_eq1_over_its_cost(alpha, gamma, c):
    assert walltime_speedup(alpha, gamma, c) * (gamma * c + 1) == pytest.approx(expected_tokens_per_round(alpha, gamma))


@given(st.floats(0.01, 1), st.integers(1, 16), st.floats(0, 2), st.floats(1e-6, 1))
def test_measured_costs_contain_theorem_38(alpha, gamma, c, plain_s):
    measured = measured_cost_speedup(
        tokens_per_round=expected_tokens_per_round(alpha, gamma),
        plain_s=plain_s,
        verify_s=plain_s,
        draft_s=c * plain_s,
        gamma=gamma,
    )
    assert measured == pytest.approx(walltime_speedup(alpha, gamma, c))


def test_overhead_costs_time():
    costs = {"tokens_per_round": 2.0, "plain_s": 1.0, "verify_s": 1.0, "draft_s": 0.0, "gamma": 1}
    assert measured_cost_speedup(**costs) == 2
    assert measured_cost_speedup(**costs, overhead_s=1.0) == 1


def test_best_gamma():
    # With free drafts more is always better; with drafts as dear as the target, fewer.
    assert best_gamma(0.8, 0.0, [1, 2, 8, 4]) == 8
    assert best_gamma(0.8, 1.0, [8, 2, 1, 4]) == 1
    assert best_gamma(0.0, 0.0, [4, 2, 3]) == 2  # a tie


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: expected_tokens_per_round(1.5, 2), r"alpha must lie in \[0, 1\], got 1.5"),
        (lambda: expected_tokens_per_round(float("nan"), 2), r"alpha must lie in \[0, 1\], got nan"),
        (lambda: expected_tokens_per_round(0.5, -1), "gamma must be at least 0, got -1"),
        (lambda: walltime_speedup(0.5, 1, -0.25), "c must be at least 0, got -0.25"),
        (lambda: best_gamma(0.5, 0.1, []), "gammas must not be empty"),
        (
            lambda: measured_cost_speedup(tokens_per_round=1, plain_s=1, verify_s=0, draft_s=0, gamma=0),
            "must take time, got 0",
        ),
    ],
)
def test_errors_name_range_and_value(call, words):
    with pytest.raises(ValueError, match=words):
        call()
