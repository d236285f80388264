"""Training repeats to the bit, treats plain and MTP alike, learns, and keeps the checkpoint that it says."""

import math
import shutil

import numpy as np
import pytest
import torch
from small import CPU, SCHEDULE, corpus_of, play, sizes
from specledger.drafters.mtp import MTPModule
from specledger.foundation.errors import UserError
from specledger.training import precision as precisions
from specledger.training import step
from specledger.training.batches import sample_batch, validation_windows
from specledger.training.loop import evaluate
from specledger.training.schedule import learning_rate
from specledger.training.settings import TrainingSettings
from specledger.training.target import TargetTraining, build, train

CORPUS = corpus_of(play(6000, seed=1))
CONFIG = sizes(vocabulary=len(CORPUS.vocabulary), context=16, layers=1)
SETTINGS = {
    "steps": 40,
    "batch": 8,
    **SCHEDULE,
    "evaluate_every": 10,
    "checkpoint": "last",
    "precision": "auto",
    "mtp_weight": None,
}


def trained(*, seed=1, on_step=lambda step, read_loss: None, **changes):
    return train(
        CONFIG,
        TrainingSettings(**{**SETTINGS, **changes}),
        CORPUS,
        seed=seed,
        device=CPU,
        on_step=on_step,
        mtp_of=MTPModule,
    )


def bits(module) -> dict:
    return {name: tensor.clone() for name, tensor in module.state_dict().items()}


def same(one: dict, other: dict) -> bool:
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


@pytest.mark.parametrize("mtp_weight", [None, 0.3])
def test_the_same_seed_gives_the_same_bits(mtp_weight):
    torch.manual_seed(1)
    one = trained(mtp_weight=mtp_weight)
    torch.manual_seed(2)  # a global seed must not matter
    np.random.seed(3)
    other = trained(mtp_weight=mtp_weight)
    assert same(bits(one.model), bits(other.model))
    if mtp_weight:
        assert same(bits(one.mtp), bits(other.mtp))
    for a, b in zip(one.history, other.history, strict=True):
        assert {**a, "elapsed_s": 0} == {**b, "elapsed_s": 0}
    assert not same(bits(one.model), bits(trained(seed=2).model))


def test_plain_and_mtp_start_from_the_same_trunk():
    plain, none = build(CONFIG, mtp_of=None, seed=5)
    with_head, mtp = build(CONFIG, mtp_of=MTPModule, seed=5)
    assert none is None and mtp is not None
    assert same(bits(plain), bits(with_head))
    other, _ = build(CONFIG, mtp_of=None, seed=6)
    assert not same(bits(plain), bits(other))


def test_seeds_do_not_reuse_each_others_numbers():
    """The module of one seed must not begin with the trunk's numbers of another."""
    first = [build(CONFIG, mtp_of=MTPModule, seed=seed) for seed in (1, 2)]
    drawn = [module.embed_tokens.weight.flatten()[:50] for module in (first[0][0].model, first[1][0].model)]
    drawn += [mtp.projection.weight.flatten()[:50] for _, mtp in first]
    for i in range(4):
        assert all(not torch.equal(drawn[i], drawn[j]) for j in range(i))


def test_plain_and_mtp_see_the_same_batches(monkeypatch):
    def batches_of(**changes) -> list:
        seen = []

        def recording(*arguments, **named):
            seen.append(sample_batch(*arguments, **named))
            return seen[-1]

        monkeypatch.setattr(step, "sample_batch", recording)
        trained(**changes)
        return seen

    plain, mtp, other = batches_of(), batches_of(mtp_weight=0.3), batches_of(seed=2)
    assert len(plain) == SETTINGS["steps"]
    assert all(torch.equal(a, b) for a, b in zip(plain, mtp, strict=True))
    assert not all(torch.equal(a, b) for a, b in zip(plain, other, strict=True))


def test_batches_reach_both_ends_and_stay_inside():
    """3,000 draws of 21 starts: one missing has odds of 21 * (20/21)^3000 = 1e-62."""
    tokens = torch.arange(30)
    stretch = sample_batch(tokens, batch=3000, context=8, ahead=2, generator=torch.Generator().manual_seed(0))
    assert stretch.shape == (3000, 10)
    assert torch.equal(stretch - stretch[:, :1], torch.arange(10).expand(3000, 10))
    assert set(stretch[:, 0].tolist()) == set(range(21))


def test_validation_windows_tile_the_text():
    windows = validation_windows(np.arange(50), context=8, ahead=2)
    assert windows.shape == (6, 10) and windows[:, 0].tolist() == [0, 8, 16, 24, 32, 40]
    thinned = validation_windows(np.arange(50), context=8, ahead=2, limit=3)
    assert thinned[:, 0].tolist() == [0, 16, 40]


@pytest.mark.parametrize(("mtp_weight", "steps"), [(None, 120), (0.3, 120)])
def test_the_loss_falls(mtp_weight, steps):
    done = trained(mtp_weight=mtp_weight, steps=steps, evaluate_every=20)
    history = done.history
    assert [row["step"] for row in history] == [20, 40, 60, 80, 100, 120]
    assert history[-1]["validation_loss"] < history[0]["validation_loss"] - 0.2
    assert done.validation_loss < math.log(CONFIG.vocabulary) - 0.5  # better than a uniform guess
    if mtp_weight:
        assert done.validation_mtp_loss < math.log(CONFIG.vocabulary) - 0.5
    else:
        assert done.mtp is None and done.validation_mtp_loss is None
        assert all(row["validation_mtp_loss"] is None for row in history)


def test_mtp_is_trained_on_the_token_after_the_next():
    """Text abcabc…: from hidden state i and token i + 1 the module predicts token i + 2, and nothing else would do."""
    tokens = np.tile(np.arange(3), 400)
    mtp_settings = {**SETTINGS, "steps": 150, "mtp_weight": 1.0}
    corpus = corpus_of("abc" * 500 + "ROMEO:\n" * 2)
    config = sizes(vocabulary=len(corpus.vocabulary), context=16, layers=1)
    done = train(
        config, TrainingSettings(**mtp_settings), corpus, mtp_of=MTPModule, seed=0, device=CPU, on_step=lambda *_: None
    )
    a = corpus.vocabulary.encode("abc")
    stretch = torch.from_numpy(a[tokens[:20]])[None]
    with torch.inference_mode():
        hidden = done.model.hidden(stretch[:, :16])
        said = done.mtp(done.model, hidden, stretch[:, 1:17])[0].argmax(dim=-1)
    assert torch.equal(said[3:], stretch[0, 2:18][3:])


def test_schedule_by_hand():
    rate = lambda step: learning_rate(step, steps=110, peak=1.0, warmup_steps=10, final_fraction=0.1)  # noqa: E731
    assert [rate(0), rate(4), rate(9)] == pytest.approx([0.1, 0.5, 1.0])
    assert rate(10) == pytest.approx(1.0)
    assert rate(60) == pytest.approx(0.55)  # half of the cosine
    assert rate(110) == pytest.approx(0.1)
    assert all(rate(s) > rate(s + 1) for s in range(10, 109))
    assert learning_rate(0, steps=5, peak=0.3, warmup_steps=0, final_fraction=0.0) == pytest.approx(0.3)


def test_the_schedule_reaches_the_optimizer():
    done = trained(steps=20, evaluate_every=5)
    expected = [learning_rate(s - 1, steps=20, peak=1e-2, warmup_steps=5, final_fraction=0.1) for s in (5, 10, 15, 20)]
    assert [row["learning_rate"] for row in done.history] == pytest.approx(expected)


def interim(done) -> float:
    windows = torch.from_numpy(validation_windows(CORPUS.validation, context=CONFIG.context, ahead=2, limit=256))
    return evaluate(TargetTraining(done.model, done.mtp, None), windows)["loss"]


@pytest.mark.parametrize("mtp_weight", [None, 0.3])
def test_best_checkpoint_is_restored(mtp_weight):
    """A rate that is far too high late makes the last weights worse than earlier ones."""
    wild = {"steps": 60, "learning_rate": 0.6, "warmup_steps": 59, "evaluate_every": 5, "mtp_weight": mtp_weight}
    best, last = trained(checkpoint="best", **wild), trained(checkpoint="last", **wild)
    by_step = {row["step"]: row["validation_loss"] for row in best.history}
    assert best.chosen_step == min(by_step, key=by_step.get) < 60
    assert by_step[60] > by_step[best.chosen_step] + 0.03
    assert interim(best) == pytest.approx(by_step[best.chosen_step], abs=1e-6)
    assert last.chosen_step == 60 and interim(last) == pytest.approx(by_step[60], abs=1e-6)


def test_the_last_step_is_evaluated_even_off_the_grid():
    assert [row["step"] for row in trained(steps=13, evaluate_every=10).history] == [10, 13]


def test_a_loss_that_is_no_number_is_refused():
    """The first update overflows; what step 2 computes is named, though step 10 is the first to be evaluated."""
    with pytest.raises(UserError, match=r"the loss is nan at step 2; lower training\.\*\.learning_rate$"):
        trained(learning_rate=1e38, warmup_steps=0, clip_norm=1e30)


def test_on_step_is_called_after_each_update():
    seen = []
    trained(steps=7, on_step=lambda step, read_loss: seen.append((step, read_loss())))
    assert [step for step, _ in seen] == list(range(1, 8))
    assert all(0 < loss < 10 for _, loss in seen)


# --- precision ---


def losses_on_the_cpu(model, mtp, precision, stretch):
    subject = TargetTraining(model, mtp, None)
    subject.prepare(CPU, precision)
    return subject.losses_of_a_step(stretch)


def test_bfloat16_is_for_the_products_alone():
    """Weights, gradients, moments and losses stay in float32, and the gradients are near those of float32."""
    stretch = torch.from_numpy(CORPUS.train[: 8 * 18].reshape(8, 18))
    model, mtp = build(CONFIG, mtp_of=MTPModule, seed=1)
    with torch.no_grad():
        for parameter in [*model.parameters(), *mtp.parameters()]:
            parameter *= 4  # logits that differ
    found = {}
    for precision in (torch.float32, torch.bfloat16):
        main, after = losses_on_the_cpu(model, mtp, precision, stretch)
        found[precision] = [main, after, *torch.autograd.grad(main + after, [*model.parameters(), *mtp.parameters()])]
    assert all(tensor.dtype == torch.float32 for tensor in found[torch.bfloat16])
    assert not torch.equal(found[torch.float32][0], found[torch.bfloat16][0])  # it is another computation
    for exact, rounded in zip(found[torch.float32], found[torch.bfloat16], strict=True):
        assert (exact - rounded).norm() < 0.05 * exact.norm()


def test_auto_is_bfloat16_where_the_processor_has_it(monkeypatch):
    for able, precision in (({"avx2": True}, torch.float32), ({"avx512_bf16": True}, torch.bfloat16)):
        monkeypatch.setattr(torch.cpu, "get_capabilities", lambda able=able: able)
        assert precisions.precision_of("auto", CPU) == precision
        assert precisions.precision_of("float32", CPU) == torch.float32
        assert precisions.precision_of("bfloat16", CPU) == torch.bfloat16


@pytest.mark.parametrize("mtp_weight", [None, 0.3])
def test_both_precisions_repeat_and_learn_alike(mtp_weight):
    runs = {p: [trained(precision=p, mtp_weight=mtp_weight) for _ in range(2)] for p in ("float32", "bfloat16")}
    for one, other in runs.values():
        assert same(bits(one.model), bits(other.model))
    exact, rounded = (runs[p][0] for p in runs)
    assert not same(bits(exact.model), bits(rounded.model))
    assert rounded.validation_loss == pytest.approx(exact.validation_loss, abs=0.02)


@pytest.mark.slow
def test_a_compiled_step_computes_the_same(monkeypatch):
    """What a GPU runs, where a C++ compiler stands in for the GPU's."""
    if not (shutil.which("g++") or shutil.which("clang++")):
        pytest.skip("needs a C++ compiler")
    if " " in torch.__file__:
        pytest.skip("PyTorch calls the compiler with its own path unquoted, and that has a space here")
    stretch = torch.from_numpy(CORPUS.train[: 8 * 18].reshape(8, 18))
    model, _ = build(CONFIG, mtp_of=None, seed=1)
    plain = losses_on_the_cpu(model, None, torch.float32, stretch)[0]
    monkeypatch.setattr(precisions, "_compiles", lambda device: True)
    compiled = losses_on_the_cpu(model, None, torch.float32, stretch)[0]
    assert compiled.item() == pytest.approx(plain.item(), abs=1e-5)
    for a, b in zip(*(torch.autograd.grad(x, list(model.parameters())) for x in (plain, compiled)), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-3, atol=1e-5)
