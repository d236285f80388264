"""The audit's core: warpers, exact trees, the two-sample tests, looks, and verdicts on a stand-in of ours.

Seeds are fixed; bounds of simulated rates are those of `calibration`.
"""

from dataclasses import replace

import numpy as np
import pytest
from calibration import slack, within
from scipy import stats
from specledger.audit.evidence import Black, Evidence, White, span_cells
from specledger.audit.exact import exact_cells
from specledger.audit.measure import Measured, Plan, measure
from specledger.audit.settings import ENDED, Batch, SamplingSettings, checked_ids, joined
from specledger.audit.standin import FAULTS, TinyDecoder, TinyModel
from specledger.audit.verdicts import COLUMNS, judge, judge_white, table, trusted, whole
from specledger.audit.warpers import near_a_cut, warped
from specledger.statistics import power, two_samples
from specledger.statistics.looks import ONE_LOOK, Looks

MODEL = TinyModel.made(0)
PROMPT = [0, 0]
SIX = SamplingSettings(tokens=6)
PLAN = Plan(texts=1500, family=40)


def tree_of(settings=SIX, **options):
    return exact_cells(MODEL.next_logits, PROMPT, settings, draft_logits=MODEL.draft_logits, **options)


@pytest.fixture(scope="module")
def tree():
    return tree_of()


# ---- settings and batches


@pytest.mark.parametrize(
    ("name", "value"),
    [("temperature", -1), ("top_k", 0), ("top_p", 0), ("min_p", 2), ("repetition_penalty", 0), ("tokens", 0)],
)
def test_settings_name_the_value_and_the_range(name, value):
    with pytest.raises(ValueError, match=rf"{name} must .*{value}"):
        SamplingSettings(**{name: value})


def test_batches_are_joined_and_a_count_that_one_lacks_is_lacking():
    one = Batch(ids=np.array([[1, 2], [3, ENDED]]), seconds=1.0, forwards=2, accepted=1, drafted=4)
    both = joined([one, replace(one, accepted=None, seconds=2.0)])
    assert (both.seconds, both.forwards, both.accepted) == (3.0, 4, None)
    assert both.tokens_per_forward() == 6 / 4 and one.acceptance() == 0.25


@pytest.mark.parametrize("ids", [[[1, 2, 3]], [[0.5, 1]], [[-2, 1]]])
def test_what_a_system_gives_is_checked(ids):
    with pytest.raises(ValueError, match="mine: "):
        checked_ids(ids, 1, 2, "mine")


# ---- warpers and the exact tree


def test_warpers_are_those_of_transformers():
    torch = pytest.importorskip("torch")
    process = pytest.importorskip("transformers.generation.logits_process")
    random = np.random.default_rng(0)
    logits, context = random.normal(size=(5, 40)) * 3, random.integers(40, size=(5, 7))
    settings = SamplingSettings(temperature=0.7, top_k=20, top_p=0.9, min_p=0.02, repetition_penalty=1.3)
    chain = [
        process.RepetitionPenaltyLogitsProcessor(1.3),
        process.TemperatureLogitsWarper(0.7),
        process.TopKLogitsWarper(20),
        process.TopPLogitsWarper(0.9),
        process.MinPLogitsWarper(0.02),
    ]
    scores = torch.tensor(logits)
    for step in chain:
        scores = step(torch.tensor(context), scores)
    found = warped(logits, settings, context_NC=context)
    assert np.abs(found - torch.softmax(scores, -1).numpy()).max() < 1e-12
    assert (found == 0).any()


def test_the_order_of_warpers_matters():
    logits = np.log([[0.5, 0.3, 0.15, 0.05]])
    hot = SamplingSettings(temperature=2.0, top_p=0.75)
    assert (warped(logits, hot, order="llama.cpp") > 0).sum() == 2  # top-p looks at the untempered .5 + .3
    assert (warped(logits, hot, order="transformers") > 0).sum() == 3
    assert warped(logits, SamplingSettings(temperature=0)).tolist() == [[1, 0, 0, 0]]


def test_a_cut_that_a_rounding_decides_is_found():
    ties, clear = np.array([[2.0, 1.0, 1.0, 0.0]]), np.array([[2.0, 1.5, 1.0, 0.0]])
    for settings in (SamplingSettings(top_k=2), SamplingSettings(temperature=0, top_k=1)):
        assert not near_a_cut(clear, settings)[0]
    assert near_a_cut(ties, SamplingSettings(top_k=2))[0] and not near_a_cut(ties, SamplingSettings(top_k=3))[0]
    assert near_a_cut(np.log([[0.5, 0.3, 0.2]]), SamplingSettings(top_p=0.8))[0]
    assert near_a_cut(np.log([[0.5, 0.25, 0.125, 0.125]]), SamplingSettings(min_p=0.5))[0]
    assert not near_a_cut(ties, SamplingSettings())[0]


@pytest.mark.parametrize("settings", [SIX, replace(SIX, temperature=0.7, top_k=5), replace(SIX, top_p=0.8)])
def test_the_tree_is_the_whole_enumeration(settings):
    found = tree_of(settings, prune=0.0, depth=3)
    p = warped(MODEL.target_VVV.reshape(-1, 16), settings).reshape(16, 16, 16)
    joint = p[0, 0][:, None, None] * p[0][:, :, None] * p
    cells = found.prefixes(3)
    assert np.abs(found.levels[2].probs_N - joint[tuple(cells.T)]).max() < 1e-15
    if settings is not SIX:  # a cut makes tokens impossible, whose texts have a cell of their own
        best = cells[np.argmax(found.levels[2].probs_N)]
        gone = int(np.argmin(p[0, 0]))
        assert found.located(np.array([[*best, 0, 0, 0], [gone, *best[1:], 0, 0, 0]]), 3)[1] == -2


def test_cells_hold_all_texts_and_all_probability(tree):
    ids = TinyDecoder(MODEL, gamma=0).sample(PROMPT, 4000, SIX).ids
    for span in tree.spans():
        cells, counts = tree.cells(span), tree.counts(ids, span)
        assert counts.sum() == 4000 and cells.probs_C.sum() == pytest.approx(1) and counts[-1] == 0
        assert cells.draft_C.sum() == pytest.approx(1)
    for depth in (2, 4):
        common = tree.common(depth, 4000, 10)
        counts = common.counts(ids)
        assert counts.sum() == 4000 and common.probs_C.sum() == pytest.approx(1)
        assert (common.probs_C >= 0).all() and common.draft_C.sum() == pytest.approx(1)


def test_common_prefixes_are_the_tree_s_own(tree):
    """The cell of a common first token that is common in no continuation has just its probability."""
    common = tree.common(1, 1000, 10)
    first = warped(MODEL.target_VVV[0, :1], SIX)[0]
    big = np.sort(first[first >= 0.01])
    assert np.sort(common.probs_C[1:-1]) == pytest.approx(big)
    assert common.probs_C[0] == pytest.approx(first[first < 0.01].sum(), abs=1e-9)


def test_a_text_that_ends_has_nothing_after_it():
    ending = replace(MODEL, end=3)
    found = exact_cells(ending.next_logits, PROMPT, SIX, end_ids=[3])
    ids = TinyDecoder(ending).sample(PROMPT, 3000, SIX).ids
    assert (ids == ENDED).any()
    for span in found.spans():
        assert found.counts(ids, span)[-1] == 0
    assert all(one.p_value > 0.001 for one in White(found).tests([ids]))


def test_a_small_budget_leaves_a_larger_rest(tree):
    small = tree_of(most=50)
    assert small.forwards <= 50 < tree.forwards
    assert small.cells("tokens 1-4").probs_C[-2] > tree.cells("tokens 1-4").probs_C[-2]


def test_a_doubtful_prefix_joins_the_rest():
    """Two tokens that tie at the cut after one first token: its texts are not judged by which of them came."""
    target = MODEL.target_VVV.copy()
    best = int(np.argmax(target[0, 0]))
    top = np.sort(target[0, best])
    target[0, best][target[0, best] == top[-4]] = top[-3]
    tied = replace(MODEL, target_VVV=target)
    found = exact_cells(tied.next_logits, PROMPT, replace(SIX, top_k=3), depth=2)
    ids = np.array([[best, token, 0, 0, 0, 0] for token in range(16)])
    assert (found.located(ids, 2) == -1).all()


# ---- two samples


def test_two_sample_chisquare_is_scipys():
    one, two = np.array([40, 30, 20, 60]), np.array([55, 20, 35, 90])
    expected = stats.chi2_contingency([one, two], correction=False)
    found = two_samples.two_sample_chisquare(one, two)
    assert (found.chi2, found.df, found.p_value) == pytest.approx((expected.statistic, 3, expected.pvalue))
    with pytest.raises(ValueError, match="hold something"):
        two_samples.two_sample_chisquare([0, 0], [1, 2])


def test_mmd_is_the_mean_of_its_kernel_over_pairs():
    random = np.random.default_rng(1)
    x, y = random.integers(3, size=(30, 4)), random.integers(4, size=(20, 4))

    def kernel(a, b):
        return (a[:, None] == b[None]).mean(axis=2).mean()

    found = two_samples.hamming_mmd(x, y, random, resamples=99)
    assert found.mmd2 == pytest.approx(kernel(x, x) + kernel(y, y) - 2 * kernel(x, y), abs=1e-6)


def test_mmd_holds_its_size_and_sees_a_shift():
    random = np.random.default_rng(2)
    p = [
        two_samples.hamming_mmd(*random.integers(5, size=(2, 40, 3)), random, resamples=39).p_value for _ in range(400)
    ]
    assert within(np.mean(np.array(p) <= 0.05), 0.05, 400)
    assert two_samples.hamming_mmd(np.zeros((50, 3)), np.ones((50, 3)), random, resamples=99).p_value == 0.01


def test_span_cells_look_at_both_samples_alike():
    tokens = np.array([[0, 0]] * 30 + [[0, 1]] * 3 + [[0, 2]] * 2 + [[1, 0]] * 4)
    which = span_cells(tokens, 20, 19, 5.0)
    assert len(set(which[:30])) == 1 and len(set(which[30:35])) == 1 and which[0] != which[30]
    assert set(which[35:]).isdisjoint(which[:35])
    mixed = np.random.default_rng(0).permutation(len(tokens))
    again = span_cells(tokens[mixed], 20, 19, 5.0)
    assert len({(a, b) for a, b in zip(which[mixed], again, strict=True)}) == len(set(which))


@pytest.mark.parametrize("samples", [1, 2])
def test_detectable_tv_is_seen_nine_times_in_ten(samples):
    cells, n, trials = 30, 6000, 1000
    p = np.random.default_rng(3).dirichlet(np.full(cells, 3.0))
    tv = power.detectable_tv(cells - 1, n, None if samples == 1 else n, level=0.01)
    signs = np.where(np.arange(cells) % 2, 1, -1)
    tilted = p * (1 + 2 * tv * (signs - (p * signs).sum()))
    assert 0.5 * np.abs(tilted - p).sum() == pytest.approx(tv, rel=0.05)
    random = np.random.default_rng(4)
    second = random.multinomial(n, tilted, size=trials)
    if samples == 1:
        chi2 = ((second - n * p) ** 2 / (n * p)).sum(axis=1)
        seen = np.mean(stats.chi2.sf(chi2, cells - 1) < 0.01)
    else:
        first = random.multinomial(n, p, size=trials)
        seen = np.mean(
            [two_samples.two_sample_chisquare(*pair).p_value < 0.01 for pair in zip(first, second, strict=True)]
        )
    assert abs(seen - 0.9) < 0.02 + slack(0.9, trials)
    assert power.draws_for_tv(cells - 1, tv, samples=samples, level=0.01) == pytest.approx(n, abs=2)


def test_looks_spend_the_level_and_no_more():
    looks, random = Looks(), np.random.default_rng(5)
    sizes = looks.sizes(800)
    assert sizes == [100, 200, 400, 800]
    walks = np.cumsum(random.normal(size=(4000, 800)), axis=1)[:, np.array(sizes) - 1] / np.sqrt(sizes)
    p = [looks.spent(2 * stats.norm.sf(np.abs(row))) for row in walks]
    rate = np.mean(np.array(p) < 0.05)
    assert 0.03 < rate < 0.05 + slack(0.05, 4000)
    assert ONE_LOOK.spent([0.3]) == 0.3 and np.isnan(looks.spent([float("nan")]))


@pytest.mark.parametrize("options", [{"shares": (0.5,)}, {"weights": (0.5, 0.5)}, {"shares": (1.0, 0.5, 0.2, 1.0)}])
def test_looks_refuse_what_spends_too_much(options):
    with pytest.raises(ValueError, match="must"):
        Looks(**options)


# ---- whole rows


def audited(fault, box, tree, *, seed=0, plan=PLAN, mode=None):
    settings = replace(SIX, seed=seed)
    arms = [TinyDecoder(MODEL, fault=fault)]
    if box == "black":
        arms = [TinyDecoder(MODEL, gamma=0), *arms]
    instrument = tree if isinstance(tree, White) else White(tree) if box == "white" else Black()
    return measure(arms, instrument, PROMPT, settings, plan, mode=mode or fault or "right")


@pytest.mark.parametrize("box", ["white", "black"])
def test_each_fault_departs_and_the_right_decoder_is_kept(tree, box):
    rows = [audited(fault, box, tree) for fault in [None, *FAULTS]]
    found = {one.row.mode: one.verdict for one in judge(rows)}
    assert found == {"right": "kept", **dict.fromkeys(FAULTS, "departs")}
    assert max(row.n for row in rows[1:]) <= 1500 and min(row.n for row in rows[1:]) < 1500  # clear cases stop early


def test_what_departs_is_named(tree):
    shown = audited("twice", "white", tree).shown[0]
    assert shown.prefix[-1] == shown.token and shown.share == 1.0 and shown.wanted < 0.1
    (most,) = [one for one in audited("always", "black", tree).shown if one.prefix == ()][:1]
    first = warped(MODEL.target_VVV[0, :1], SIX)[0]
    assert most.wanted == pytest.approx(first[most.token], abs=0.06) and abs(most.share - most.wanted) > 0.1


def test_a_measured_row_survives_its_json(tree):
    row = audited("cut-drafts", "white", tree)
    assert Measured.from_json(row.to_json()) == row


def row_of(p_first, p_again=None, *, mode="a", control=""):
    first = tuple(Evidence(test=f"t{i}", n=9, statistic=1.0, df=1, p_value=p) for i, p in enumerate(p_first))
    again = tuple(Evidence(test=f"t{i}", n=9, statistic=1.0, df=1, p_value=p) for i, p in enumerate(p_again or ()))
    return Measured(
        system="s", version="1", mode=mode, prompt="p", settings=SIX, n=9, first=first, again=again, control=control
    )


@pytest.mark.parametrize(
    ("rows", "verdicts"),
    [
        ([row_of([0.3])], ["kept"]),
        ([row_of([1e-6], [1e-3])], ["departs"]),
        ([row_of([1e-30], [0.5])], ["undecided"]),  # seen once and not again
        ([row_of([0.04], [0.5])], ["kept"]),
        ([row_of([0.04, 0.5], [1e-9, 0.5])], ["departs"]),
        ([row_of([0.5], [1e-9])], ["kept"]),  # a second sample counts only where the first asked for it
        ([row_of([2e-3], [0.03])], ["departs"]),  # together 6e-4, below .01
        ([row_of([2e-3], [0.03]), *[row_of([0.5])] * 40], ["kept"] * 41),
        ([row_of([float("nan")])], ["undecided"]),
        ([row_of([])], ["undecided"]),
    ],
)
def test_verdicts(rows, verdicts):
    assert [one.verdict for one in judge_white(rows, level=0.01)] == verdicts


def test_texts_that_repeat_depart_without_a_test(tree):
    arms = [TinyDecoder(MODEL)]
    row = measure(arms, White(tree), PROMPT, SIX, PLAN, mode="m", check=lambda batches: "repeats its texts")
    (judged,) = judge([row])
    assert (judged.verdict, judged.why, row.n) == ("departs", "repeats its texts", 188)
    assert len(table([judged])) == 1


def test_a_run_with_a_wrong_control_is_undecided():
    departs, kept = row_of([1e-9], [1e-9]), row_of([0.5])
    assert whole(judge([kept])) == "kept" and whole(judge([kept, departs])) == "departs"
    null, lossy = replace(departs, control="null"), replace(kept, control="lossy")
    assert whole(judge([kept, null])) == whole(judge([kept, lossy])) == whole(judge([departs, lossy])) == "undecided"
    assert len(trusted(judge([kept, null, lossy]))) == 2
    right = judge([kept, replace(kept, control="null"), replace(departs, control="lossy")])
    assert trusted(right) == [] and whole(right) == "kept"


def test_the_table_has_the_columns_of_the_contract(tree):
    lines = table(judge([audited(None, "white", tree)]))
    assert [line["test"] for line in lines] == ["token 1", "tokens 1-2", "tokens 3-4", "tokens 1-4", "score"]
    assert all(list(line) == COLUMNS for line in lines)
    near = lines[1]
    assert 0 < near["detectable_tv_draft"] < near["detectable_tv_any"] < 0.2 and near["tv"] < near["detectable_tv_any"]


def test_a_row_stops_at_the_first_look_that_sees_as_near_as_wanted(tree):
    row = audited(None, "white", tree, plan=replace(PLAN, texts=8000, wanted_tv=0.15))
    assert row.n < 8000
    assert next(one for one in row.first if one.test == "tokens 1-2").detectable_tv_any <= 0.15


@pytest.mark.parametrize("box", ["white", "black"])
def test_false_alarms_of_a_right_decoder(tree, box):
    """200 audits at the level .05, each with looks and a second sample where the first asks for one."""
    plan = Plan(texts=400, level=0.05, family=5 if box == "white" else 4)
    instrument = White(tree) if box == "white" else tree
    rows = [audited(None, box, instrument, seed=seed * 17, plan=plan) for seed in range(200)]
    alarms = sum(judge([row], level=0.05)[0].verdict == "departs" for row in rows)
    sampled_again = sum(bool(row.again) for row in rows)
    assert alarms <= stats.binom.isf(0.001, 200, 0.05)
    assert 2 <= sampled_again <= stats.binom.isf(0.001, 200, 0.05 * plan.family)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"temperature": 0.6},
        {"top_k": 5},
        {"top_p": 0.7},
        {"min_p": 0.1},
        {"temperature": 1.3, "top_k": 9, "top_p": 0.8},
    ],
)
def test_warpers_are_those_of_the_study(options):
    """The audit's are its own for the order of other systems; in the study's order they say what the study's say."""
    from specledger.sampling.distributions import Sampling, distribution

    logits = np.random.default_rng(6).normal(size=(20, 30)) * 2
    assert np.abs(warped(logits, SamplingSettings(**options)) - distribution(logits, Sampling(**options))).max() < 1e-14
