"""Drafters that grow trees through the complete decoder: caches, masks, rollbacks, and what they cost nobody."""

import numpy as np
import pytest
import torch
from grown import HEAD_NAMES, TREE, grown_bundle, trees_in
from small import model_drafter, sizes, tiny_llama
from specledger.decoding.engines import engine
from specledger.decoding.loops import autoregressive, speculative
from specledger.experiments.block_law import drafts_of
from specledger.experiments.bundle import with_trees
from specledger.experiments.reference import proposed_logits
from specledger.experiments.remembered import Remembered
from specledger.experiments.sequences import Laws, sequence_rows
from specledger.experiments.shapes import rank_rows, rates_of, shape_rows, wide_tree
from specledger.experiments.sweep import serves, why_not_served
from specledger.foundation.drafters import base_of
from specledger.foundation.records import write_rows
from specledger.models.cache import tree_mask
from specledger.sampling.distributions import GREEDY, Sampling, distribution
from specledger.sampling.uniforms import Uniforms
from specledger.tables.raw import RAW
from specledger.theory.trees import Tree

CONFIG = sizes(context=24)
TARGET = tiny_llama(CONFIG, seed=31)
BUNDLE = grown_bundle(TARGET)
TREES = trees_in(BUNDLE)
PROMPT = [0, 3, 1, 4]
CACHED = engine("cached")
CHAINS = list(BUNDLE.lossless)


def decode(drafter, *, gamma, count=80, sampling=GREEDY, key="growing"):
    shared = {"engine": CACHED, "sampling": sampling, "uniforms": Uniforms(key)}
    return speculative(TARGET, drafter, PROMPT, gamma=gamma, count=count, **shared)


PLAIN = autoregressive(TARGET, PROMPT, count=80, engine=CACHED, sampling=GREEDY, uniforms=Uniforms("plain")).tokens


@pytest.mark.parametrize("name", CHAINS)
@pytest.mark.parametrize("gamma", [1, 2, 3, 4])
def test_greedy_chains_write_the_targets_text(name, gamma):
    """Far beyond the context of 24, through every rollback."""
    drafter = BUNDLE.drafters[name]
    if drafter.max_gamma is not None and gamma > drafter.max_gamma:
        with pytest.raises(ValueError, match=f"gamma must be from 1 to {drafter.max_gamma} for {name}, got {gamma}"):
            decode(drafter, gamma=gamma)
        return
    text = decode(drafter, gamma=gamma)
    assert text.tokens == PLAIN and text.accepted + len(text.rounds) == 80


@pytest.mark.parametrize("name", CHAINS)
def test_greedy_chains_write_the_targets_text_under_the_rule_window(name):
    """As far as the context reaches; beyond it plain and speculative decoding are two generators."""
    recompute, gamma = engine("recompute"), BUNDLE.drafters[name].max_gamma or 4
    shared = {"count": CONFIG.context - len(PROMPT) - gamma, "engine": recompute, "sampling": GREEDY}
    plain = autoregressive(TARGET, PROMPT, uniforms=Uniforms("plain"), **shared).tokens
    found = speculative(TARGET, BUNDLE.drafters[name], PROMPT, gamma=gamma, uniforms=Uniforms("window"), **shared)
    assert found.tokens == plain and found.draft_forwards > 0


def test_trees_are_served_where_text_is_shared():
    assert serves(CACHED, "draft_tree") and serves(engine("recompute"), "eagle")
    assert "each path of a tree would be cut at another place" in why_not_served(engine("recompute"), "medusa1_typical")


@pytest.mark.parametrize("name", sorted(TREES))
def test_greedy_trees_write_the_targets_text(name):
    text = decode(TREES[name], gamma=len(TREE.parents))
    assert text.tokens == PLAIN
    assert all(done.accept_len <= done.examined <= done.accept_len + 1 for done in text.rounds)


def test_a_perfect_drafter_loses_nothing_in_a_tree():
    """The target as its own draft model, greedily: every round accepts the whole depth."""
    text = decode(model_drafter(TARGET).in_tree(TREE), gamma=len(TREE.parents))
    assert text.tokens == PLAIN and {done.accept_len for done in text.rounds[:-1]} == {TREE.depth}


@pytest.mark.parametrize("name", CHAINS)
@pytest.mark.parametrize(("executed", "prompt"), [("cached", PROMPT), ("recompute", PROMPT * 7)])
def test_what_drafters_give_is_what_plain_forwards_give(name, executed, prompt):
    """Each proposal's row, round after round with caches and rollbacks, against batched forwards without any.

    Under the rule `window`, past the context, heads go on from the states of the target's last window.
    """
    drafter, gamma, checked = BUNDLE.drafters[name], BUNDLE.drafters[name].max_gamma or 3, 0
    session = drafter.open(engine(executed), Sampling(), 80)
    target = engine(executed).open(TARGET, 80)
    rng, tokens, generator, first = np.random.default_rng(3), list(prompt), np.random.default_rng(4), 0
    for _ in range(6):
        proposal = session.propose(tokens, gamma, generator)
        for place, row in enumerate(proposal.probs_GV):
            seen = [*tokens, *proposal.tokens[:place]]
            first = first if drafter.proposer.states else max(0, len(seen) - CONFIG.context) * (executed == "recompute")
            context = np.array([seen[first:]])
            if context.shape[1] <= CONFIG.context + drafter.proposer.states:  # of the last token no state is needed
                said = distribution(proposed_logits(drafter, context, place), Sampling())[0]
                assert row == pytest.approx(said, abs=1e-5)
                checked += 1
        output = target.forward(tokens + proposal.tokens, rows=1)
        kept = int(rng.integers(0, len(proposal.tokens) + 1))  # any number may be accepted
        tokens += [*proposal.tokens[:kept], int(rng.integers(CONFIG.vocabulary))]
        target.rollback(len(tokens) - 1)
        session.observe(output, len(tokens) - 1)
        first = output.first if executed == "recompute" else 0
    assert checked >= 2 * gamma


@pytest.mark.parametrize("name", [*(f"{name}_tree" for name in TREES), *HEAD_NAMES, "mtp_chained"])
def test_complete_decoders_of_trees_and_heads_follow_the_exact_law(name):
    """Two samplings, 400 texts each; under other seeds one of 6 p-values falls below 1e-4 about once in 1,600."""
    rows = list(
        sequence_rows(
            Laws(BUNDLE, PROMPT), [name], [Sampling(), Sampling(top_k=3)], Remembered(engine=CACHED),
            gamma=2, count=5, texts=400, seed=12, after_each=lambda: None,
        )
    )  # fmt: skip
    tests = ["2-gram", "3-gram", *([] if name.endswith("_tree") else ["acceptance"]), "accounting"]
    assert [row["test"] for row in rows] == tests * 2
    assert min(row["p_value"] for row in rows) > 1e-4


def test_cousins_do_not_see_each_other():
    tree = Tree.of((-1, -1, 0, 1))
    seen = tree_mask(tree, 4, 2, 24).astype(int).tolist()
    assert seen == [[1, 1, 1, 0, 0, 0], [1, 1, 0, 1, 0, 0], [1, 1, 1, 0, 1, 0], [1, 1, 0, 1, 0, 1]]
    narrow = tree_mask(tree, 4, 2, 2).astype(int).tolist()  # a context of 2: itself and what stands before it
    assert narrow == [[0, 1, 1, 0, 0, 0], [0, 1, 0, 1, 0, 0], [0, 0, 1, 0, 1, 0], [0, 0, 0, 1, 0, 1]]


def test_a_branch_is_what_the_same_tokens_in_a_line_are():
    """Logits along every path of a tree, past the context, against a fresh session over the path."""
    text, proposed = (
        [int(t) for t in np.random.default_rng(5).integers(CONFIG.vocabulary, size=40)],
        [1, 2, 3, 4, 0, 2, 1, 3, 0],
    )
    session = CACHED.open(TARGET, 60)
    session.forward(text[:-1], rows=1)
    logits = session.branch(text, proposed, TREE).logits_TV
    for node in range(-1, len(TREE.parents)):
        path = [proposed[step] for step in TREE.path(node)]
        alone = CACHED.open(TARGET, 60).forward(text + path, rows=1).logits_TV[0]
        torch.testing.assert_close(logits[node + 1], alone, atol=1e-4, rtol=1e-4)
    path = TREE.path(8)
    session.keep(path, len(proposed))
    kept = text + [proposed[step] for step in path]
    after = session.forward([*kept, 2], rows=1).logits_TV[0]
    torch.testing.assert_close(
        after, CACHED.open(TARGET, 60).forward([*kept, 2], rows=1).logits_TV[0], atol=1e-4, rtol=1e-4
    )


def test_shapes_come_from_measured_siblings(tmp_path):
    names = ["ngram", "medusa1"]
    ranks = list(
        rank_rows(
            BUNDLE, names, PROMPT, CACHED, texts=2, tokens=60, sampling=Sampling(), seed=1, after_each=lambda: None
        )
    )
    assert set(ranks[0]) == set(RAW["ranks"].names) and {row["drafter"] for row in ranks} == set(names)
    assert all(row["acceptance"] is None or 0 <= row["acceptance"] <= 1 for row in ranks)
    assert max(row["depth"] for row in ranks if row["drafter"] == "medusa1") == 4
    rows = shape_rows(BUNDLE, ranks, {"ngram_tree": [4, 9], "medusa1_typical": [6]}, seed=1)
    assert set(rows[0]) == set(RAW["shapes"].names)
    assert rows[1]["expected_tokens"] >= rows[0]["expected_tokens"] > 1
    write_rows(tmp_path / "shapes.csv", rows)
    bundle = with_trees(BUNDLE, tmp_path / "shapes.csv")
    assert set(bundle.trees) == {("ngram_tree", 4), ("ngram_tree", 9), ("medusa1_typical", 6)}
    lossy = bundle.drafter("medusa1_typical", 6)
    assert lossy.typical and base_of("medusa1_typical") == "medusa1"
    text = speculative(
        TARGET, lossy, PROMPT, gamma=6, count=40, engine=CACHED, sampling=GREEDY, uniforms=Uniforms("typical")
    )
    assert text.tokens == PLAIN[:40]  # greedy: only the likeliest token is typical


def test_rates_lean_on_their_rank_where_little_was_seen():
    rows = [
        {"depth": 1, "rank": 0, "examined": 100, "acceptance": 0.8},
        {"depth": 1, "rank": 1, "examined": 20, "acceptance": 0.5},
        {"depth": 2, "rank": 0, "examined": 0, "acceptance": None},
    ]
    rates = rates_of(rows, 3)
    assert rates[0] == pytest.approx([0.8, 0.5]) and rates[1] == rates[2] == pytest.approx([0.8, 0.5])
    assert wide_tree(2, 3).depths.count(1) == 3


def test_every_draft_of_a_tree_has_its_probability():
    q = [np.array([0.5, 0.3, 0.2]), np.full((3, 3), 1 / 3)]
    drafts, rows, weights = drafts_of(q, Tree.of((-1, -1, 0)))
    assert len(drafts) == 3 * 2 * 3 and weights.sum() == pytest.approx(1.0) and rows.sum(axis=2) == pytest.approx(1.0)
    assert (drafts[:, 0] != drafts[:, 1]).all()
    with pytest.raises(ValueError, match="more siblings than q has symbols"):
        drafts_of([np.array([1.0, 0.0])], Tree.of((-1, -1)))
