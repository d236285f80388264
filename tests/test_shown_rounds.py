"""The rounds that the report lays open: rows of one forward, and a verdict that follows from what is written."""

import numpy as np
import pytest
from small import drafters_of, sizes, tiny_llama
from specledger.decoding.engines import engine
from specledger.experiments.bundle import ModelBundle
from specledger.experiments.shown_rounds import GAMMA, shown_rounds
from specledger.sampling.distributions import GREEDY, Sampling
from specledger.sampling.verify import verify

TARGET = tiny_llama(sizes(context=24), seed=31)
BUNDLE = ModelBundle(target=TARGET, drafters=drafters_of(TARGET))
CONTEXTS = np.random.default_rng(0).integers(7, size=(3, 24))


def found(sampling: Sampling) -> list[dict]:
    return list(shown_rounds(BUNDLE, CONTEXTS, [24, 31, 40], engine("cached"), sampling=sampling, seed=4))


@pytest.mark.parametrize("sampling", [Sampling(), Sampling(temperature=0.7, top_k=3), GREEDY])
def test_the_verdict_follows_from_the_rows_and_uniforms_that_are_written(sampling):
    for row, context in zip(found(sampling), CONTEXTS, strict=True):
        p, q = np.array([row["p"]]), np.array([row["q"]])
        assert p.shape == (1, GAMMA + 1, 7) and q.shape == (1, GAMMA, 7)
        uniforms = np.array([row["accept_uniforms"]]), np.array([row["extra_uniform"]])
        verdict = verify(p, q, np.array([row["proposals"]]), *uniforms)
        assert (verdict.accept_len_N[0], verdict.token_N[0]) == (row["accept_len"], row["token"])
        assert row["context"] == context.tolist()
        assert row["alone_max_difference"] < 1e-5


def test_a_target_that_looks_ahead_shows_in_the_difference(monkeypatch):
    """Attention over all that is fed: a row then depends on the proposals behind it."""
    from specledger.models import llama

    def blind(*arguments, is_causal=False, attn_mask=None, **options):
        return attend(*arguments, is_causal=False, attn_mask=None, **options)

    attend = llama.F.scaled_dot_product_attention
    monkeypatch.setattr(llama.F, "scaled_dot_product_attention", blind)
    assert max(row["alone_max_difference"] for row in found(Sampling())) > 0.01


def test_a_seed_and_a_place_decide_the_round():
    assert found(Sampling()) == found(Sampling())
    other = list(shown_rounds(BUNDLE, CONTEXTS, [24, 31, 40], engine("cached"), sampling=Sampling(), seed=5))
    assert [row["extra_uniform"] for row in other] != [row["extra_uniform"] for row in found(Sampling())]
