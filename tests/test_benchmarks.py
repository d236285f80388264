"""The benchmarks run on a tiny study, compare like with like, and say in one line what they lack."""

import csv
import json
import math
import sys
from pathlib import Path

import pytest
import torch
import yaml
from scipy import stats
from small import CPU, corpus_of, play, sizes, tiny_llama, tiny_mtp
from specledger.decoding.engines import engine
from specledger.drafters.ngram import NGram
from specledger.foundation.errors import UserError
from specledger.foundation.records import sum_of, weights_of
from specledger.models.storage import load_model, save_model

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "benchmarks"))
import common
import peers
import training

TEXT = play(3000, seed=1)
CORPUS = corpus_of(TEXT)
CONTEXT = 16


@pytest.fixture(scope="module")
def study(tmp_path_factory) -> list[str]:
    """The arguments that name a tiny study whose models are there."""
    folder = tmp_path_factory.mktemp("study")
    results, vocabulary = folder / "results", len(CORPUS.vocabulary)
    target, draft = (sizes(vocabulary, context=CONTEXT, layers=n, width=w) for n, w in ((2, 16), (1, 8)))
    save_model(results / "models" / "mtp" / "1", tiny_llama(target, seed=1), tiny_mtp(target, seed=2))
    save_model(results / "models" / "draft" / "1", tiny_llama(draft, seed=3))
    (results / "ngram").mkdir()
    counted = NGram.count(CORPUS.train, vocabulary=vocabulary, order=3, discount=0.75)
    counted.save(results / "ngram" / "ngram.safetensors")
    (results / "corpus").mkdir()
    (results / "corpus" / "text.txt").write_text(TEXT, encoding="utf-8")
    record = {"vocabulary": list(CORPUS.vocabulary.symbols), "train_characters": len(CORPUS.train)}
    (results / "corpus" / "corpus.json").write_text(json.dumps({**record, "prompt": "ROMEO:\n"}))
    model = {
        name: {"layers": c.layers, "width": c.width, "heads": 4} for name, c in (("target", target), ("draft", draft))
    }
    config = {
        "study": "tiny",
        "device": "cpu",
        "threads": 1,
        "model": {"context": CONTEXT, **model},
        "checks": {"prefix_short": 8, "prefix_long": 16, "greedy_prompt": 4, "greedy_tokens": 4},
        "sequences": {"gamma": 1, "tokens": 3},
        "controls": {"tokens": 3},
        "sweep": {"engines": ["recompute", "cached"], "gammas": {"draft": [2], "ngram": [2], "mtp": [1]}},
    }
    (folder / "tiny.yaml").write_text(yaml.safe_dump(config))
    return ["--configfile", str(folder / "tiny.yaml"), "--results", str(results), "--blocks", "2"]


def table(study: list[str], name: str) -> list[dict]:
    with (Path(study[3]) / "peers" / name).open(encoding="utf-8", newline="") as lines:
        return list(csv.DictReader(lines))


def test_peers_run_on_the_same_weights(study):
    pytest.importorskip("transformers")
    peers.main([*study, "--tokens", "24"])
    rows = table(study, "peers.csv")
    found = {(row["program"], row["engine"], row["method"], row["drafter"]) for row in rows}
    for name in ("recompute", "cached"):
        assert {("specledger", name, "plain", "none"), ("specledger", name, "speculative", "draft")} <= found
    theirs = {row["method"]: row for row in rows if row["program"] == "transformers"}
    assert set(theirs) == {"generate", "assisted generation", "prompt lookup"}
    for row in rows:
        assert row["tokens"] == "24" and row["repeats"] == "2"
        assert 0 < float(row["seconds_lo"]) <= float(row["seconds"]) <= float(row["seconds_hi"])
        assert float(row["tokens_per_s"]) == pytest.approx(24 / float(row["seconds"]), rel=1e-6)
        assert bool(row["ratio_to_ours"]) == (row["program"] == "transformers")
    assert theirs["generate"]["ours"].endswith("plain")
    assert "speculative draft" in theirs["assisted generation"]["same_drafter"]
    runs = table(study, "runs.csv")
    assert len(runs) == 2 * len(rows) and {row["block"] for row in runs} == {"1", "2"}
    record = json.loads((Path(study[3]) / "peers" / "certificate.json").read_text())
    assert record["threads"] == 1 and record["versions"]["transformers"]
    models = Path(study[3]) / "models"
    sums = {model: sum_of(*weights_of(models / model / "1")) for model in ("mtp", "draft")}
    assert record["inputs"] == {**sums, "ngram": sum_of(Path(study[3]) / "ngram" / "ngram.safetensors")}
    assert 0 < max(record["settings"]["logits"].values()) < 1e-4


def test_an_engine_that_does_not_run_here_is_left_out(study, monkeypatch, capsys):
    decode = peers.Ours.decode

    def refuse(self, *arguments):
        if self.engine == "recompute":
            raise UserError("no compiler")
        return decode(self, *arguments)

    monkeypatch.setattr(peers.Ours, "decode", refuse)
    found = common.Study.of(common.arguments("", blocks=2).parse_args(study))
    methods = peers.load_ours(found, CPU, CORPUS.prompt.tolist())
    assert {method.engine for method in methods} == {"cached"}
    # Each method once: not the runs that test the clock.
    found = [(method.drafter, method.gamma) for method in methods]
    assert len(found) == len(set(found)) and {("none", 0), ("draft", 2), ("ngram", 2), ("mtp", 1)} <= set(found)
    assert all(method.way.counts for method in methods)
    assert capsys.readouterr().err == "peers: engine recompute is left out: no compiler\n"


def test_transformers_looks_back_as_far_as_we_do(study):
    """Opened as it is saved, without a sliding window, it would not; and other weights are refused."""
    pytest.importorskip("transformers")
    import theirs

    folder = Path(study[3]) / "models" / "mtp" / "1"
    text = CORPUS.validation[: 4 * CONTEXT].tolist()
    assert theirs.furthest_logits(folder, text, CPU) < 1e-4
    wide = theirs.transformers.LlamaForCausalLM.from_pretrained(folder).eval()
    ours = engine("cached").open(load_model(folder, CPU), len(text)).forward(text, rows=1).logits_TV[-1]
    with torch.inference_mode():
        assert (wide(torch.tensor([text])).logits[0, -1] - ours).abs().max() > 0.01


@pytest.mark.slow
def test_training_speed_compares_the_same_model(study):
    training.main([*study, "--steps", "2", "--models", "mtp", "draft"])
    rows = table(study, "training_speed.csv")
    assert {(row["model"], row["loop"]) for row in rows} == {
        (model, loop) for model in ("mtp", "draft") for loop in ("nanogpt_style", "specledger")
    }
    for row in rows:
        assert float(row["tokens_per_s"]) > 0 and row["blocks"] == "2"
        if row["loop"] == "nanogpt_style":
            assert float(row["ratio"]) == 1
    record = json.loads((Path(study[3]) / "peers" / "training_certificate.json").read_text())
    assert record["inputs"] == {"text": sum_of(Path(study[3]) / "corpus" / "text.txt")}
    assert set(record["settings"]["trained"]) == {"mtp", "draft"} and record["settings"]["steps"] == 2
    shares = table(study, "training_profile.csv")
    assert {row["part"] for row in shares} >= {"matrix products", "attention", "optimiser and clipping"}
    for loop in {(row["model"], row["loop"], row["precision"]) for row in shares}:
        parts = [float(r["share"]) for r in shares if (r["model"], r["loop"], r["precision"]) == loop]
        assert sum(parts) == pytest.approx(1) and all(part >= 0 for part in parts)


def test_both_loops_learn_alike(study):
    """The plain loop is a training too: the losses that it reads fall as ours do."""
    options = common.arguments("", blocks=2).parse_args(study)
    loops = training.loops_of(common.Study.of(options), CORPUS, "plain", CPU)
    assert [loop.name for loop in loops][:2] == ["nanogpt_style", "specledger"]
    windows = torch.from_numpy(CORPUS.validation[:160].reshape(10, 16))
    for loop in loops:
        loop.run(120)
        loss = training.losses(loop.modules[0], None, windows)[0].item()
        assert loss < torch.log(torch.tensor(len(CORPUS.vocabulary))).item() - 0.3


def test_intervals_by_hand():
    middle, lo, hi = common.paired_ratio([2.0, 4.0, 6.0], [1.0, 2.0, 3.0])
    assert (middle, lo, hi) == pytest.approx((2.0, 2.0, 2.0))
    # Of two blocks the bootstrap medians are a, (a + b) / 2 twice, and b: with t(1) it is Student's interval.
    middle, lo, hi = common.median([1.0, math.e])
    half = stats.t.ppf(0.975, 1) / 2
    assert middle == pytest.approx(math.exp(0.5))
    assert math.log(hi / middle) == pytest.approx(half, rel=0.05) and lo == pytest.approx(middle**2 / hi)
    middle, lo, hi = common.median([1.0, 2.0, 3.0, 4.0, 100.0])
    assert middle == pytest.approx(3.0) and 0 < lo < 3.0 < hi


def test_blocks_hold_every_method_once_in_changing_order():
    seen = []
    common.shuffled_blocks(list("abcdef"), 5, lambda method, block: seen.append((block, method)) or 0.0)
    orders = [tuple(method for at, method in seen if at == block) for block in range(5)]
    assert all(sorted(order) == list("abcdef") for order in orders) and len(set(orders)) > 1


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (["--results", "/nowhere/at/all"], "/nowhere/at/all: no such folder; run the study first"),
        (["--configfile", "/nowhere.yaml"], "/nowhere.yaml: can't be read"),
        (["--blocks", "1"], "--blocks: 1; must be at least 2"),
        (["--seed", "7"], "models/mtp/7/config.json: missing"),
    ],
)
def test_errors_are_one_line(study, change, expected):
    pytest.importorskip("transformers")
    with pytest.raises(UserError) as caught:
        peers.main([*study, *change])
    assert expected in str(caught.value) and "\n" not in str(caught.value)
