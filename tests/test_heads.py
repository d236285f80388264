"""Heads of a target: what they are trained on, that a frozen target stays as it is, and their files."""

import copy

import pytest
import torch
from small import CPU, SCHEDULE, corpus_of, sizes, tiny_llama, tiny_mtp
from specledger.drafters.mtp import MTPModule
from specledger.drafters.registry import begin, build_head, load_head, save_head
from specledger.foundation.drafters import HEADS, JOINT
from specledger.foundation.errors import UserError
from specledger.models.llama import count_parameters, initialise
from specledger.training.batches import sample_batch
from specledger.training.loop import fit
from specledger.training.settings import TrainingSettings
from specledger.training.target import train

CONTEXT = 12
CYCLE = "abcdefg"  # of seven, so that each offset up to 5 has a symbol of its own
CORPUS = corpus_of(CYCLE * 300 + "ROMEO:\n")
CONFIG = sizes(len(CORPUS.vocabulary), context=CONTEXT, layers=2)
SETTINGS = TrainingSettings(
    steps=30, batch=8, **SCHEDULE, evaluate_every=10, checkpoint="last", precision="float32", mtp_weight=None
)


def changed(**settings) -> TrainingSettings:
    return TrainingSettings(**{**vars(SETTINGS), **settings})


def bits(module) -> dict:
    return {name: tensor.clone() for name, tensor in module.state_dict().items()}


def same(one: dict, other: dict) -> bool:
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


@pytest.fixture(scope="module")
def taught():
    """A target that knows the cycle, with its MTP module."""
    settings = changed(steps=80, mtp_weight=0.3)
    done = train(CONFIG, settings, CORPUS, mtp_of=MTPModule, seed=1, device=CPU, on_step=lambda *_: None)
    return done.model.eval().requires_grad_(False), done.mtp.eval().requires_grad_(False)


def subject_of(name: str, target, mtp, seed: int = 1):
    medusa1 = None
    if name == "medusa2":
        medusa1 = build_head("medusa1", target.config)
        medusa1.begin_as(target)
    return begin(name, target, mtp, seed=seed, trunk_share=0.25, first=medusa1)


def fitted(subject, seed: int = 1, **settings):
    return fit(subject, changed(**settings), CORPUS, seed=seed, device=CPU, on_step=lambda *_: None)


# --- what is built ---


def test_names_are_those_of_the_configuration():
    with pytest.raises(ValueError, match=r"head must be one of mtp2, .*, got mtp3"):
        build_head("mtp3", CONFIG)


def test_parameters_by_hand():
    """Of the study's target: an MTP module has 2 D^2 + 3 D more than its block."""
    config = sizes(65, context=64, layers=4, width=128)
    width = 128
    found = {name: count_parameters(build_head(name, config)) for name in HEADS}
    block = count_parameters(build_head("parallel", config)) // 3
    medusa = 4 * (width * width + width + width * 65)
    assert block == 2 * width * width + 2 * width * 64 + 3 * width * 344 + 2 * width
    assert found == {
        "mtp2": 2 * (block + 2 * width * width + 3 * width),
        "mtp4": 4 * (block + 2 * width * width + 3 * width),
        "parallel": 3 * block,
        "medusa1": medusa,
        "medusa2": medusa,
        "eagle": block + 2 * width * width + width,
    }


# --- what is learned ---


@pytest.mark.parametrize("name", HEADS)
def test_each_offset_is_learned(name, taught):
    """In abcdefgabc… each token ahead is certain, and any other offset would be wrong all the time."""
    subject = subject_of(name, *taught)
    done = fitted(subject, steps=150)
    ahead = {key: loss for key, loss in done.losses.items() if key.startswith("ahead")}
    assert len(ahead) == {"mtp2": 2, "mtp4": 4, "parallel": 4, "medusa1": 4, "medusa2": 5, "eagle": 1}[name]
    text = torch.tensor(CORPUS.vocabulary.encode(CYCLE * 10))[None, : CONTEXT + subject.ahead]
    with torch.inference_mode():
        on_the_cycle = dict(zip(subject.names, subject.losses(text), strict=True))
    # The first position has no past, and tells the cycle's place all the same.
    assert all(on_the_cycle[key] < 0.3 for key in ahead), on_the_cycle
    assert done.history[-1]["train_loss"] < done.history[0]["train_loss"]


def test_a_drafter_says_the_right_token(taught):
    """Through the models' own interfaces, as decoding calls them."""
    target, _ = taught
    text = torch.tensor(CORPUS.vocabulary.encode(CYCLE * 10))
    tokens = text[None, :CONTEXT]
    at = lambda k: text[None, k : k + CONTEXT]  # noqa: E731
    for name in ("mtp4", "medusa1", "parallel", "eagle"):
        subject = subject_of(name, *taught)
        fitted(subject, steps=150)
        head, own = subject.head.eval(), subject.target.eval()
        with torch.inference_mode():
            before, hidden = own.streams(tokens)
            match name:
                case "mtp4":
                    said = head(own, hidden, [at(k) for k in (1, 2, 3, 4)])
                case "medusa1":
                    said = head(own, hidden)
                case "parallel":
                    said = [head(own, before, number) for number in range(3)]
                case "eagle":
                    said = [head.logits(own, head.state(own, hidden, at(1)))]
        for k, logits in enumerate(said):
            assert torch.equal(logits.argmax(dim=-1)[:, 2:], at(k + 2)[:, 2:]), (name, k)
    assert torch.equal(target(tokens).argmax(dim=-1)[:, 2:], at(1)[:, 2:])


@pytest.mark.parametrize("name", HEADS)
def test_only_a_joint_trunk_changes(name, taught):
    target, mtp = taught
    before, before_mtp = bits(target), bits(mtp)
    subject = subject_of(name, target, mtp)
    fitted(subject, steps=3)
    assert same(bits(target), before) and same(bits(mtp), before_mtp)
    assert all(parameter.grad is None for parameter in [*target.parameters(), *mtp.parameters()])
    assert same(bits(subject.target), before) != (name in JOINT)
    assert (subject.target is target) != (name in JOINT)


def test_where_heads_begin(taught):
    """Depths as the target's module, Medusa heads as its output head, parallel heads as its last block."""
    target, mtp = taught
    tokens = torch.tensor(CORPUS.vocabulary.encode(CYCLE * 2))[None, :CONTEXT]
    chain, medusa, parallel = (subject_of(name, *taught).head for name in ("mtp4", "medusa1", "parallel"))
    assert all(same(bits(module), bits(mtp)) for module in chain.depths)
    before, hidden = target.streams(tokens)
    for logits in medusa(target, hidden):
        torch.testing.assert_close(logits, target.logits(hidden))
    torch.testing.assert_close(parallel(target, before, 2), target.logits(hidden))
    one, same_seed, other = (subject_of("eagle", *taught, seed=seed).head for seed in (1, 1, 2))
    assert same(bits(one), bits(same_seed)) and not same(bits(one), bits(other))


# --- how it is computed ---


def test_heads_one_after_another_give_the_gradients_of_the_sum():
    """Gloeckle's figure 2: the trunk goes backward once, with what all heads have added up."""
    target, mtp = tiny_llama(CONFIG, seed=3), tiny_mtp(CONFIG, seed=4)
    subject = subject_of("parallel", target, mtp)
    initialise(subject.head, torch.Generator().manual_seed(5), std=0.4)
    stretch = torch.randint(CONFIG.vocabulary, (4, CONTEXT + 4), generator=torch.Generator().manual_seed(6))
    parameters = [p for part in subject.parts for p in part.parameters()]
    total, *each = subject.losses(stretch)
    expected = torch.autograd.grad(total, parameters)
    found = subject.accumulate(stretch, torch.Generator())
    assert found.item() == pytest.approx(sum(loss.item() for loss in each)) == pytest.approx(total.item())
    for parameter, gradient in zip(parameters, expected, strict=True):
        torch.testing.assert_close(parameter.grad, gradient, rtol=1e-4, atol=1e-6)
        assert gradient.abs().max() > 0


def test_losses_by_hand():
    """The weights of the papers: a mean over depths, 0.8^k, 0.2 beside the backbone, a sum, 0.1 of the classes."""
    target, mtp = tiny_llama(CONFIG, seed=3), tiny_mtp(CONFIG, seed=4)
    tokens = torch.arange(2000) * 7919 % CONFIG.vocabulary
    for name in HEADS:
        subject = subject_of(name, target, mtp)
        stretch = sample_batch(
            tokens, batch=4, context=CONTEXT, ahead=subject.ahead, generator=torch.Generator().manual_seed(1)
        )
        with torch.no_grad():
            loss, *each = (found.item() for found in subject.losses(stretch))
        medusa = sum(0.8**k * x for k, x in enumerate(each[-4:], 1))
        assert loss == pytest.approx(
            {
                "mtp2": sum(each) / 2,
                "mtp4": sum(each) / 4,
                "parallel": sum(each),
                "medusa1": medusa,
                "medusa2": each[0] + 0.2 * medusa,
                "eagle": each[0] + 0.1 * each[1],
            }[name],
            rel=1e-5,
        )


def test_a_trunk_learns_at_its_share_of_the_rate(taught):
    """AdamW's first step is as long as the rate, whatever the gradient: 0.25 of it for the trunk."""
    subject = subject_of("medusa2", *taught)
    before = [copy.deepcopy(part) for part in subject.parts]
    fitted(subject, steps=1, warmup_steps=0, learning_rate=1e-3, weight_decay=0.0, evaluate_every=1)
    moved = [
        max((a - b).abs().max().item() for a, b in zip(now.parameters(), then.parameters(), strict=True))
        for now, then in zip(subject.parts, before, strict=True)
    ]
    assert moved == pytest.approx([1e-3, 0.25e-3], rel=0.02)


def test_noise_is_on_the_features_of_a_step_alone(taught):
    subject = subject_of("eagle", *taught)
    stretch = torch.tensor(CORPUS.vocabulary.encode(CYCLE * 4))[None, : CONTEXT + 1]
    with torch.no_grad():
        clear = subject.losses(stretch)[0]
        assert torch.equal(clear, subject.losses(stretch)[0])
    noisy = [subject.accumulate(stretch, torch.Generator().manual_seed(seed)).item() for seed in (1, 1, 2)]
    assert noisy[0] == noisy[1] != noisy[2] and clear.item() not in noisy
    assert noisy[0] == pytest.approx(clear.item(), rel=0.1)


# --- files ---


@pytest.mark.parametrize("name", HEADS)
def test_a_head_comes_back_from_its_file(name, taught, tmp_path):
    target, mtp = taught
    subject = subject_of(name, target, mtp)
    fitted(subject, steps=2)
    joint = name in JOINT
    save_head(tmp_path, name, subject.head, subject.target if joint else None)
    head, own = load_head(tmp_path, name, target)
    assert same(bits(head), bits(subject.head)) and same(bits(own), bits(subject.target))
    assert (own is target) != joint
    for module in (head, own):
        assert not module.training and not any(p.requires_grad for p in module.parameters())


def test_a_wrong_file_is_named_in_one_line(taught, tmp_path):
    target, mtp = taught
    path = tmp_path / "heads.safetensors"
    with pytest.raises(UserError, match=r"heads\.safetensors: missing; run snakemake again"):
        load_head(tmp_path, "mtp2", target)
    save_head(tmp_path, "mtp2", subject_of("mtp2", target, mtp).head)
    for name in ("mtp4", "medusa1", "medusa2", "parallel", "eagle"):
        with pytest.raises(UserError, match=r"heads\.safetensors: not the weights of this model") as caught:
            load_head(tmp_path, name, target)
        assert "\n" not in str(caught.value)
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(UserError, match=r"heads\.safetensors: damaged .*; delete it and run snakemake again"):
        load_head(tmp_path, "mtp2", target)
