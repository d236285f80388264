"""The models have the sizes they claim, open in transformers, and a cache changes nothing but the time."""

import json

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from small import CPU, sizes, tiny_llama, tiny_mtp
from specledger.decoding.engines import engine
from specledger.drafters.mtp import FeatureProposer, load_mtp
from specledger.foundation.errors import UserError
from specledger.models.cache import Attended
from specledger.models.llama import LlamaConfig, count_parameters, rope_tables
from specledger.models.storage import load_model, save_model
from specledger.sampling.distributions import Sampling

TARGET = LlamaConfig(vocabulary=65, layers=4, width=128, heads=4, kv_heads=2, context=64)
DRAFT = LlamaConfig(vocabulary=65, layers=1, width=64, heads=4, kv_heads=2, context=64)
SMALL = sizes()
MODEL = tiny_llama(SMALL, seed=1)
MTP = tiny_mtp(SMALL, seed=2)
ROUNDING = 2e-5  # float32 sums in another order; the logits are of size 1 to 10


@pytest.mark.parametrize(("config", "hidden", "parameters"), [(TARGET, 344, 742_784), (DRAFT, 176, 54_592)])
def test_parameter_counts(config, hidden, parameters):
    assert config.hidden == hidden
    assert count_parameters(tiny_llama(config, seed=0)) == parameters


def test_mtp_parameter_count():
    assert count_parameters(tiny_mtp(TARGET, seed=0)) == 214_656


@pytest.mark.parametrize("changes", [{"width": 20}, {"kv_heads": 3}])
def test_sizes_that_do_not_fit_are_refused(changes):
    with pytest.raises(ValueError, match=f"must be a multiple .* got {changes.get('width', 4)}"):
        LlamaConfig(**{"vocabulary": 7, "layers": 1, "width": 16, "heads": 4, "kv_heads": 2, "context": 8, **changes})


@pytest.mark.parametrize("config", [TARGET, DRAFT], ids=["target", "draft"])
def test_transformers_gives_the_same_logits(config, tmp_path):
    transformers = pytest.importorskip("transformers")
    model = tiny_llama(config, seed=3, std=0.08)
    save_model(tmp_path, model, tiny_mtp(config, seed=4))
    theirs, info = transformers.LlamaForCausalLM.from_pretrained(
        tmp_path, attn_implementation="eager", output_loading_info=True
    )
    assert not any(info.values()), info
    tokens = torch.from_numpy(np.random.default_rng(0).integers(65, size=(3, 64)))
    with torch.inference_mode():
        ours, others = model(tokens), theirs.eval()(tokens).logits
    assert ours.std() > 0.3  # else any two models would agree
    torch.testing.assert_close(ours, others, rtol=0, atol=1e-5)


# --- the cache ---


def banded(model, tokens):
    """Logits [T, V] and trunk states [T, D] of one forward whose mask is the sliding window."""
    T, context = len(tokens), model.config.context
    cos, sin = rope_tables(model.config.head_width, T, model.config.rope_theta)
    ahead = torch.arange(T)[:, None] - torch.arange(T)[None, :]
    seen = Attended(cos_TE=cos, sin_TE=sin, mask_TS=(ahead >= 0) & (ahead < context))
    with torch.inference_mode():
        x_BTD = model.model.embed_tokens(torch.tensor([tokens]))
        for index, block in enumerate(model.model.layers):
            x_BTD = block(x_BTD, seen, index)
        return model.logits(x_BTD)[0], x_BTD[0]


def random_tokens(length: int, seed: int) -> list[int]:
    return np.random.default_rng(seed).integers(SMALL.vocabulary, size=length).tolist()


def test_the_band_matters():
    """Past the context the sliding rule differs from seeing everything: else the tests below say nothing."""
    tokens = random_tokens(40, 0)
    wide = tiny_llama(sizes(context=64), seed=1)
    with torch.inference_mode():
        everything = wide(torch.tensor([tokens]))[0]
    differences = (banded(MODEL, tokens)[0] - everything).abs().amax(dim=1)
    assert differences[: SMALL.context].max() < ROUNDING < 0.01 < differences[SMALL.context + 2 :].max()


def fed(tokens, cuts, rollbacks=()) -> torch.Tensor:
    """Logits [T, V] of a cached session that is fed in pieces; before each piece it may be rolled back."""
    session, rows = engine("cached").open(MODEL, len(tokens) + 8), []
    rollbacks = dict(rollbacks)
    with torch.inference_mode():
        for stop in [*cuts, len(tokens)]:
            first = session.cache.length
            if wrong := rollbacks.get(stop):
                # Proposals that are then rejected: they must leave no trace.
                session.forward(tokens[:first] + wrong, rows=len(wrong))
                session.rollback(first)
            if stop > first:
                rows.append(session.forward(tokens[:stop], rows=stop - first).logits_TV)
    return torch.cat(rows)


@settings(max_examples=60)
@given(st.data())
def test_cached_logits_are_the_sliding_windows(data):
    length = data.draw(st.integers(1, 45))
    tokens = random_tokens(length, data.draw(st.integers(0, 1000)))
    cuts = sorted(data.draw(st.sets(st.integers(1, length), max_size=8)))
    wrong = st.lists(st.integers(0, SMALL.vocabulary - 1), min_size=1, max_size=8)
    rollbacks = [(cut, data.draw(wrong)) for cut in cuts if data.draw(st.booleans())]
    torch.testing.assert_close(fed(tokens, cuts, rollbacks), banded(MODEL, tokens)[0], rtol=0, atol=ROUNDING)


def test_rollback_into_what_was_fed():
    """Rolled back deep into the window, then fed another continuation, as after a rejection."""
    tokens, other = random_tokens(40, 1), random_tokens(40, 2)
    session = engine("cached").open(MODEL, 40)
    with torch.inference_mode():
        session.forward(tokens, rows=1)
        for keep in (35, 30, 7, 0):
            session.rollback(keep)
            mixed = tokens[:keep] + other[keep:]
            again = session.forward(mixed, rows=40 - keep).logits_TV
            torch.testing.assert_close(again, banded(MODEL, mixed)[0][keep:], rtol=0, atol=ROUNDING)
            session.rollback(keep)
            session.forward(tokens, rows=1)


def test_cache_has_no_more_room_than_it_was_given():
    session = engine("cached").open(MODEL, 10)
    with torch.inference_mode(), pytest.raises(AssertionError, match="cache of 10 positions can't hold 11"):
        session.forward(random_tokens(11, 0), rows=1)


def test_recompute_sees_the_last_context_alone():
    tokens = random_tokens(30, 3)
    session = engine("recompute").open(MODEL, 40)
    with torch.inference_mode():
        output = session.forward(tokens, rows=3)
        window = MODEL(torch.tensor([tokens[-SMALL.context :]]))[0, -3:]
    assert output.first == 30 - SMALL.context
    torch.testing.assert_close(output.logits_TV, window, rtol=0, atol=0)


def mtp_rows(name: str, tokens: list[int], stops: list[int]) -> np.ndarray:
    """q [len(stops), V] of the module at each stop, as decoding asks for it."""
    executed, rows = engine(name), []
    target = executed.open(MODEL, len(tokens))
    module = executed.open_proposer(FeatureProposer, MODEL, MTP, sampling=Sampling(), capacity=len(tokens))
    with torch.inference_mode():
        for stop in stops:
            output = target.forward(tokens[: stop - 1], rows=1)
            rows.append(module.begin(output, tokens[:stop]))
            module.end(stop)
    return np.stack(rows)


@settings(max_examples=30)
@given(st.sets(st.integers(2, SMALL.context), min_size=1), st.integers(0, 1000))
def test_mtp_cached_is_uncached_within_the_window(stops, seed):
    stops = sorted(stops)
    tokens = random_tokens(max(stops), seed)
    cached, plain = (mtp_rows(name, tokens, stops) for name in ("cached", "recompute"))
    np.testing.assert_allclose(cached, plain, rtol=0, atol=ROUNDING)


def test_mtp_slides_past_the_window():
    """Fed token by token or at once, at three times the context."""
    tokens = random_tokens(36, 4)
    one_by_one = mtp_rows("cached", tokens, list(range(2, 37)))[-1]
    at_once = mtp_rows("cached", tokens, [36])[0]
    np.testing.assert_allclose(one_by_one, at_once, rtol=0, atol=ROUNDING)


def test_mtp_follows_deepseek_by_hand():
    """Eq. (21)-(23): block(W [norm(h); norm(emb)]), then norm and the shared head."""
    tokens = random_tokens(9, 5)
    hidden = banded(MODEL, tokens)[1]
    with torch.inference_mode():
        embedded = MODEL.model.embed_tokens(torch.tensor(tokens[1:]))
        norm = lambda x: x * (x.pow(2).mean(-1, keepdim=True) + SMALL.norm_eps).rsqrt()  # noqa: E731
        joined = torch.cat((norm(hidden[:-1]), norm(embedded)), dim=-1) @ MTP.projection.weight.T
        cos, sin = rope_tables(SMALL.head_width, 8, SMALL.rope_theta)
        out = MTP.block(joined[None], Attended(cos_TE=cos, sin_TE=sin, is_causal=True), 0)
        expected = norm(out[0]) @ MODEL.lm_head.weight.T
        got = MTP(MODEL, hidden[None, :-1], torch.tensor([tokens[1:]]))[0]
    torch.testing.assert_close(got, expected, rtol=0, atol=ROUNDING)


# --- on disk ---


@pytest.fixture
def folder(tmp_path):
    save_model(tmp_path / "mtp", MODEL, MTP)
    return tmp_path / "mtp"


def test_saved_and_loaded_are_the_same_bits(folder):
    model = load_model(folder, CPU)
    mtp = load_mtp(folder, model)
    for ours, theirs in ((MODEL, model), (MTP, mtp)):
        for (name, a), (other, b) in zip(ours.state_dict().items(), theirs.state_dict().items(), strict=True):
            assert name == other and torch.equal(a, b)
    assert model.config == SMALL and not model.training


def test_a_model_without_heads_says_so(tmp_path):
    save_model(tmp_path, MODEL)
    with pytest.raises(UserError, match=r"heads.safetensors: holds no MTP module"):
        load_mtp(tmp_path, load_model(tmp_path, CPU))


def cut(path):
    path.write_bytes(path.read_bytes()[:-100])


def scribble(path):
    path.write_bytes(b"\x00\xff not safetensors " * 20)


@pytest.mark.parametrize("name", ["model.safetensors", "heads.safetensors"])
@pytest.mark.parametrize(
    ("damage", "word"), [(cut, "damaged"), (scribble, "damaged"), (lambda p: p.unlink(), "missing")]
)
def test_damaged_and_missing_weights_are_refused(folder, name, damage, word):
    damage(folder / name)
    with pytest.raises(UserError) as error:
        load_mtp(folder, load_model(folder, CPU))
    assert str(folder / name) in str(error.value) and word in str(error.value) and "\n" not in str(error.value)


@pytest.mark.parametrize("name", ["model.safetensors", "heads.safetensors"])
def test_swapped_weights_are_refused(folder, tmp_path, name):
    """The draft's weights in the target's folder: the same names, other shapes."""
    other = sizes(layers=1, width=8)
    save_model(tmp_path / "draft", tiny_llama(other, seed=6), tiny_mtp(other, seed=7))
    (tmp_path / "draft" / name).replace(folder / name)
    with pytest.raises(UserError) as error:
        load_mtp(folder, load_model(folder, CPU))
    assert str(folder / name) in str(error.value) and "\n" not in str(error.value)
    assert "not the weights of this model" in str(error.value)


def test_damaged_config_is_refused(folder):
    path = folder / "config.json"
    path.write_text("{")
    with pytest.raises(UserError, match=r"config\.json: not valid JSON"):
        load_model(folder, CPU)
    path.write_text(json.dumps({"model_type": "llama"}))
    with pytest.raises(UserError, match=r"config.json: .*vocab_size"):
        load_model(folder, CPU)


def test_a_full_disk_is_named_in_one_line(tmp_path):
    """A limit on the size of files stands in for it: the weights are larger, config.json would not be."""
    resource = pytest.importorskip("resource")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, hard))
    try:
        with pytest.raises(UserError) as caught:
            save_model(tmp_path, tiny_llama(TARGET, seed=0))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    said = str(caught.value)
    assert said.startswith(f"{tmp_path / 'model.safetensors'}: could not be written (") and "\n" not in said
    assert list(tmp_path.iterdir()) == []
