"""On a CUDA device the same holds as on the CPU."""

from dataclasses import replace

import pytest
import torch
from grown import HEAD_NAMES, TREE, grown_bundle, trees_in
from small import CPU, corpus_of, drafters_of, lookup_drafter, model_drafter, play, sizes, tiny_llama
from specledger.decoding.drafter import Parts
from specledger.decoding.engines import engine
from specledger.decoding.loops import autoregressive, speculative
from specledger.drafters.mtp import MTPModule
from specledger.drafters.registry import make
from specledger.sampling.distributions import GREEDY, Sampling
from specledger.sampling.uniforms import Uniforms
from specledger.training.loop import first_state
from specledger.training.settings import TrainingSettings
from specledger.training.step import update
from specledger.training.target import TargetTraining, build, train

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device, and PyTorch finds none"),
]

CONFIG = sizes(context=16)
PROMPT = [3, 1, 4]
INSIDE = CONFIG.context - len(PROMPT)
METHODS = [("draft", 1), ("draft", 3), ("draft_dynamic", 3), ("ngram", 3), ("lookup", 3), ("mtp", 1)]


@pytest.fixture(scope="module")
def bundle():
    """The target and its drafters on the device."""
    target = tiny_llama(CONFIG, seed=11).to("cuda")
    drafters = drafters_of(target)
    drafters["draft"] = model_drafter(drafters["draft"].parts[0].to("cuda"))
    drafters["draft_dynamic"] = model_drafter(drafters["draft"].parts[0], name="draft_dynamic", threshold=0.3)
    drafters["lookup"] = lookup_drafter(CONFIG.vocabulary, longest=4, shortest=1)
    drafters["mtp"] = make("mtp", Parts(target=target, mtp=drafters["mtp"].parts[1].to("cuda")))
    return target, drafters


def decode(bundle, name, drafter, gamma, count, sampling, seed=0):
    target, drafters = bundle
    executed = engine(name, "cuda") if isinstance(name, str) else name
    how = {"count": count, "engine": executed, "sampling": sampling, "uniforms": Uniforms(seed)}
    if drafter is None:
        return autoregressive(target, PROMPT, **how)
    return speculative(target, drafters[drafter], PROMPT, gamma=gamma, **how)


@pytest.mark.parametrize(("name", "count"), [("recompute", INSIDE), ("cached", 60), ("compiled", 60)])
@pytest.mark.parametrize(("drafter", "gamma"), METHODS)
def test_greedy_is_the_autoregressive_text(bundle, name, count, drafter, gamma):
    plain = decode(bundle, name, None, 0, count, GREEDY)
    assert decode(bundle, name, drafter, gamma, count, GREEDY).tokens == plain.tokens


@pytest.mark.parametrize("name", [*HEAD_NAMES, "mtp_chained"])
def test_greedy_heads_write_the_autoregressive_text(name):
    target = tiny_llama(CONFIG, seed=11).to("cuda")
    drafter = grown_bundle(target).drafters[name]
    how = {"count": 60, "engine": engine("cached"), "sampling": GREEDY, "uniforms": Uniforms(0)}
    plain = autoregressive(target, PROMPT, **how)
    assert speculative(target, drafter, PROMPT, gamma=2, **how).tokens == plain.tokens


def test_greedy_trees_write_the_autoregressive_text():
    target = tiny_llama(CONFIG, seed=11).to("cuda")
    how = {"count": 60, "engine": engine("cached"), "sampling": GREEDY, "uniforms": Uniforms(0)}
    plain = autoregressive(target, PROMPT, **how)
    for drafter in trees_in(grown_bundle(target)).values():
        assert speculative(target, drafter, PROMPT, gamma=len(TREE.parents), **how).tokens == plain.tokens


def test_greedy_is_the_text_of_the_cpu(bundle):
    on_cpu = autoregressive(
        tiny_llama(CONFIG, seed=11), PROMPT, count=60, engine=engine("cached"), sampling=GREEDY, uniforms=Uniforms(0)
    )
    assert decode(bundle, "cached", None, 0, 60, GREEDY).tokens == on_cpu.tokens


@pytest.mark.parametrize(("drafter", "gamma"), [(None, 0), *METHODS])
def test_engines_agree_inside_the_window(bundle, drafter, gamma):
    texts = [decode(bundle, name, drafter, gamma, INSIDE, Sampling()).tokens for name in ("recompute", "cached")]
    assert texts[0] == texts[1]


@pytest.mark.parametrize(("drafter", "gamma"), [(None, 0), *METHODS])
def test_captured_graphs_write_the_cached_text(bundle, drafter, gamma):
    executed = [engine("cached"), engine("compiled", "cuda")]  # one of each: nothing of a text may reach the next
    for seed in range(3):
        texts = [decode(bundle, one, drafter, gamma, 60, Sampling(), seed).tokens for one in executed]
        assert texts[0] == texts[1]


@pytest.mark.parametrize("name", ["cached", "compiled"])
def test_clock_accounts_for_all_of_the_time(bundle, name):
    decode(bundle, name, "draft", 3, 60, Sampling())
    text = decode(bundle, name, "draft", 3, 60, Sampling())
    assert 0 < sum(text.phase_s.values()) <= text.wall_s
    assert sum(text.phase_s.values()) > 0.9 * text.wall_s


def training(mtp_weight):
    return TrainingSettings(
        steps=20, batch=8, learning_rate=1e-2, warmup_steps=5, final_learning_rate_fraction=0.1, weight_decay=0.1,
        betas=(0.9, 0.95), clip_norm=1.0, evaluate_every=10, checkpoint="best", precision="float32",
        mtp_weight=mtp_weight,
    )  # fmt: skip


@pytest.mark.parametrize("precision", [torch.float32, torch.bfloat16])
def test_no_step_waits_for_the_device(precision):
    """Once warm: PyTorch raises where a step asks the device for an answer."""
    cuda, corpus = torch.device("cuda"), corpus_of(play(6000, seed=1))
    model, mtp = build(sizes(len(corpus.vocabulary), context=16, layers=1), mtp_of=MTPModule, seed=1)
    subject, tokens = TargetTraining(model, mtp, 0.3), torch.from_numpy(corpus.train).to(cuda)
    settings = replace(training(0.3), precision=str(precision).removeprefix("torch."))
    state = first_state(subject, settings, seed=1, device=cuda)
    take = lambda: update(subject, state, 1e-3, settings, tokens)  # noqa: E731
    for _ in range(3):
        take()
    torch.cuda.set_sync_debug_mode("error")
    try:
        losses = [take() for _ in range(3)]
    finally:
        torch.cuda.set_sync_debug_mode("default")
    assert all(torch.isfinite(loss) for loss in losses)


@pytest.mark.parametrize("mtp_weight", [None, 0.3])
def test_training_steps_run_and_repeat(mtp_weight):
    corpus = corpus_of(play(6000, seed=1))
    config = sizes(vocabulary=len(corpus.vocabulary), context=16, layers=1)
    settings = training(mtp_weight)

    def losses(device):
        done = train(config, settings, corpus, mtp_of=MTPModule, seed=1, device=device, on_step=lambda *_: None)
        return [row["validation_loss"] for row in done.history]

    first = losses(torch.device("cuda"))
    assert first[-1] < first[0]
    assert first == pytest.approx(losses(CPU), abs=1e-3)
