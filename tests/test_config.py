"""The configuration: what is wrong is said in one line, and each stage depends on its own keys only."""

import copy
import datetime
import json
import re
from pathlib import Path

import pytest
import yaml
from specledger.foundation import config as configuration
from specledger.foundation import drafters, duration, stages
from specledger.foundation.errors import UserError

CONFIG = Path(__file__).resolve().parents[1] / "config"
MISSING = object()


def study() -> dict:
    return yaml.safe_load((CONFIG / "config.yaml").read_text(encoding="utf-8"))


def edited(path: str, value) -> dict:
    """The study with one key set, or removed; a number in the path is an index."""
    config = study()
    at = config
    *parents, last = [int(part) if part.isdigit() else part for part in path.split("/")]
    for part in parents:
        at = at[part]
    if value is MISSING:
        del at[last]
    else:
        at[last] = value
    return config


BAD = [
    ("sweep/gammas/draft", [0, 1], ["sweep.gammas.draft[0]", "0", "from 1 to 63", "model.context 64"]),
    ("sweep/gammas/draft", [1, 64], ["sweep.gammas.draft[1]", "64", "from 1 to 63"]),
    ("sweep/gammas/ngram", [-1], ["sweep.gammas.ngram[0]", "-1", "from 1 to 63"]),
    ("sweep/gammas/ngram", [2, 2], ["sweep.gammas.ngram", "twice"]),
    ("sweep/gammas/draft", [1.5], ["sweep.gammas.draft[0]", "1.5", "whole number"]),
    ("sweep/gammas/draft", None, ["sweep.gammas.draft", "null", "[] leaves the drafter out"]),
    ("sweep/stop", MISSING, ["sweep.stop", "missing"]),
    ("sweep/stop/half_width", 1.5, ["sweep.stop.half_width", "1.5", "from 0"]),
    ("sweep/stop/blocks", 1, ["sweep.stop.blocks", "1", "from 2 to 10000"]),
    ("sweep/gammas/mtp", [2], ["sweep.gammas.mtp[0]", "2", "must be 1", "depth"]),
    ("sweep/gammas/medusa", [1], ["sweep.gammas.medusa", "unknown key", "draft, draft_dynamic, mtp"]),
    ("sweep/gammas/mtp", MISSING, ["sweep.gammas.mtp", "missing"]),
    ("sweep/gammas/mtp2", [3], ["sweep.gammas.mtp2[0]", "3", "from 1 to 2", "the depth of mtp2 is 2"]),
    ("sweep/gammas/parallel", [1, 4], ["sweep.gammas.parallel[1]", "4", "from 1 to 3", "the depth of parallel is 3"]),
    ("sweep/gammas/eagle", [64], ["sweep.gammas.eagle[0]", "64", "from 1 to 63", "model.context 64"]),
    ("sweep/gammas/medusa1", None, ["sweep.gammas.medusa1", "null", "[] leaves the drafter out"]),
    ("sweep/trees/ngram", [1], ["sweep.trees.ngram[0]", "1", "from 2 to 256"]),
    ("sweep/trees/ngram", [8, 257], ["sweep.trees.ngram[1]", "257", "from 2 to 256"]),
    ("sweep/trees/ngram", [8, 8], ["sweep.trees.ngram", "twice"]),
    ("sweep/trees/eagle", 8, ["sweep.trees.eagle", "8", "numbers of nodes", "[] leaves the trees out"]),
    ("sweep/trees/foo", [8], ["sweep.trees.foo", "unknown key", "draft, mtp, mtp_chained"]),
    ("sweep/trees/mtp2", [8], ["sweep.trees.mtp2", "unknown key", "medusa1_typical"]),  # its modules draft a chain
    ("sweep/trees", MISSING, ["sweep.trees", "missing"]),
    ("trees/texts", 0, ["trees.texts", "0", "from 1 to 1000000"]),
    ("trees/tokens", 1, ["trees.tokens", "1", "from 2 to 100000"]),
    ("sweep/engines", ["recompute", "compiled"], ["sweep.engines", "must hold cached", "sweep.trees.ngram"]),
    ("sweep/engines", ["turbo"], ["sweep.engines[0]", "turbo", "recompute, cached"]),
    ("sweep/engines", [], ["sweep.engines", "must not be empty"]),
    ("sweep/engines", ["cached", "cached"], ["sweep.engines", "twice"]),
    ("sweep/tokens", 0, ["sweep.tokens", "0", "from 2 to 100000"]),
    ("sweep/repeats", True, ["sweep.repeats", "true", "whole number"]),
    ("seeds", [], ["seeds", "[]", "must not be empty"]),
    ("seeds", [1, 2, 1], ["seeds[2]", "1", "once"]),
    ("seeds", [1, 1.0], ["seeds[1]", "once"]),
    ("seeds", ["one"], ["seeds[0]", "one", "whole number"]),
    ("seeds", [-1], ["seeds[0]", "-1", "from 0"]),
    ("seeds", 3, ["seeds", "3", "list"]),
    ("sampling/temperature", -0.5, ["sampling.temperature", "-0.5", "0 (greedy) or a number from 0.001 to 100"]),
    ("sampling/temperature", float("nan"), ["sampling.temperature", "NaN", "finite"]),
    ("training/target/clip_norm", float("inf"), ["training.target.clip_norm", "Infinity", "finite"]),
    ("training/draft/betas", [0.9, float("nan")], ["training.draft.betas[1]", "NaN", "finite"]),
    ("sampling/top_k", 0, ["sampling.top_k", "0", "from 1 to 1000000"]),
    ("sampling/top_p", 1.5, ["sampling.top_p", "1.5", "from 1e-6 to 1"]),
    ("device", "gpu", ["device", "gpu", "auto, cpu, cuda"]),
    ("device", "cuda:x", ["device", "cuda:x", "cuda:N"]),
    ("threads", 0, ["threads", "0", "from 1 to 512"]),
    ("study", "a/b", ["study", "a/b", "letters"]),
    ("study", "", ["study", "letters"]),
    ("quick", "yes", ["quick", "yes", "true or false"]),
    ("trainin", {}, ["trainin", "unknown key", "training"]),
    ("train\ning", {}, ["train\\ning", "unknown key"]),
    ("training/target/lr", 0.1, ["training.target.lr", "unknown key", "learning_rate"]),
    ("training/target/learning_rate", "1e-5", ["training.target.learning_rate", "1e-5", "1.0e-5"]),
    ("training/target/learning_rate", "0.1", ["training.target.learning_rate", "without quotes", "--config"]),
    ("model/target", 3, ["model.target", "3", "layers, width, heads, kv_heads"]),
    ("sampling", None, ["sampling", "null", "temperature, top_k, top_p"]),
    ("training/target/learning_rate", 0, ["training.target.learning_rate", "0", "from 1e-9 to 1"]),
    ("training/draft/warmup_steps", 5000, ["training.draft.warmup_steps", "5000", "less than steps"]),
    ("training/heads/warmup_steps", 500, ["training.heads.warmup_steps", "500", "less than steps.medusa2 = 500"]),
    ("training/heads/steps/mtp3", 5, ["training.heads.steps.mtp3", "unknown key", "mtp2, mtp4, parallel"]),
    ("training/heads/warmup_steps", 600, ["training.heads.warmup_steps", "600", "less than steps.medusa2 = 500"]),
    ("training/heads/steps/eagle", MISSING, ["training.heads.steps.eagle", "missing"]),
    ("training/heads/steps", 100, ["training.heads.steps", "100", "mtp2, mtp4, parallel"]),
    ("training/heads", MISSING, ["training.heads", "missing"]),
    ("training/heads/steps/eagle", 0, ["training.heads.steps.eagle", "0", "from 1 to"]),
    ("training/heads/trunk_learning_rate_fraction", 0, ["trunk_learning_rate_fraction", "0", "from 1e-6 to 1"]),
    ("training/draft/checkpoint", "first", ["training.draft.checkpoint", "first", "last, best"]),
    ("training/target/betas", [0.9], ["training.target.betas", "two numbers"]),
    ("training/target/steps", MISSING, ["training.target.steps", "missing"]),
    ("model/target/width", 130, ["model.target.width", "130", "multiple of"]),
    ("model/draft/kv_heads", 3, ["model.draft.kv_heads", "3", "divide heads"]),
    ("model/context", 8, ["8"]),
    ("checks/prefix_long", 65, ["checks.prefix_long", "65", "at most model.context 64"]),
    ("checks/prefix_short", 64, ["checks.prefix_short", "64", "less than model.context 64"]),
    ("checks/greedy_tokens", 49, ["checks.greedy_tokens", "49", "at most 48"]),
    ("checks/greedy_prompt", 60, ["checks.greedy_prompt", "60", "largest gamma 8", "model.context 64"]),
    ("acceptance/draws", 10, ["acceptance.draws", "10", "1000"]),
    ("acceptance/contexts", 0, ["acceptance.contexts", "0", "from 1 to 100000"]),
    ("sequences/tokens", 2, ["sequences.tokens", "2", "at least 3"]),
    ("corpus/prompt", "A" * 61, ["corpus.prompt", "at most 59 characters"]),
    ("sequences/tokens", 60, ["sequences.tokens", "60", "at most 55"]),
    ("controls/tokens", 2, ["controls.tokens", "2", "at least 3"]),
    ("sequences/samplings", [], ["sequences.samplings", "must not be empty"]),
    ("sequences/samplings", [{"temperature": 1.0}], ["sequences.samplings[0].top_k", "missing"]),
    ("controls/texts", 0, ["controls.texts", "0", "from 1 to 1000000"]),
    ("analysis/equivalence_margin", 0, ["analysis.equivalence_margin", "0", "from 1e-6 to 10"]),
    ("ngram/discount", 1, ["ngram.discount", "1", "from 0.001 to 0.999"]),
    ("report/language", "xx", ["report.language", "xx", "en, zh"]),
    ("ngram/order", 9, ["ngram.order", "9", "from 1 to 8"]),
    ("corpus/path", "", ["corpus.path", "path of a text file"]),
    ("corpus/sha256", "abc", ["corpus.sha256", "abc", "64 hexadecimal"]),
    ("corpus/offline_fallback", "wiki", ["corpus.offline_fallback", "wiki", "pydoc, none"]),
    ("corpus/download/urls", ["ftp://x"], ["corpus.download.urls[0]", "ftp://x", "https://"]),
    ("corpus/validation_fraction", 1.0, ["corpus.validation_fraction", "from 0.001 to 0.9"]),
    ("corpus/prompt", "", ["corpus.prompt", "at least two characters"]),
    # what YAML or the command line makes of words
    ("study", 2024, ["study", "2024", "YAML reads that as a number, write it in quotes"]),
    ("study", True, ["study", "true", "YAML reads that as true or false, write it in quotes"]),
    ("study", datetime.date(2024, 1, 2), ["study", "2024-01-02", "YAML reads that as a date, write it in quotes"]),
    ("corpus/prompt", 750, ["corpus.prompt", "750", "write it in quotes"]),  # 12:30, a number to base 60
    ("quick", "true", ["quick", "without quotes, in a file for --configfile"]),
    ("seeds", "[1, 2]", ["seeds", "without quotes, in a file for --configfile"]),
    ("study", "a\n", ["study", "letters"]),
    ("study", "a" * 300, ["study", "at most 100"]),
    ("device", "cpu\n", ["device"]),
    # bounds of numbers
    ("sampling/temperature", 1.0e-310, ["sampling.temperature", "1e-310", "0 (greedy) or a number from 0.001"]),
    ("sequences/samplings", [{"temperature": 1e-4, "top_k": None, "top_p": None}], ["sequences.samplings[0].temp"]),
    ("training/mtp_weight", 1.0e300, ["training.mtp_weight", "1e+300", "from 1e-6 to 100"]),
    ("threads", 100_000_000, ["threads", "from 1 to 512"]),
    ("sweep/tokens", 10**12, ["sweep.tokens", "from 2 to 100000"]),
    ("ngram/discount", 1e-310, ["ngram.discount", "from 0.001"]),
    ("training/target/steps", 10**30, ["training.target.steps", "from 1 to 10000000"]),
    ("training/target/betas", [0.9, 0.9999999], ["training.target.betas[1]", "from 0 to 0.99999"]),
    ("acceptance/text_tokens", 10**9, ["acceptance.text_tokens", "from 2 to 100000"]),
    ("corpus/download/timeout_s", 1e-300, ["corpus.download.timeout_s", "from 0.1 to 600"]),
    # the key that has to change first
    (
        "corpus/prompt",
        "a" * 70,
        ["at most 59 characters (model.context 64 less 3 tokens and sequences"],
    ),
    ("sweep/gammas/draft", [63], ["sweep.gammas", "63", "checks.greedy_prompt"]),
]


@pytest.mark.parametrize(("path", "value", "words"), BAD, ids=[f"{path}={value!r:.20}" for path, value, _ in BAD])
def test_a_bad_value_is_refused_in_one_line(path, value, words):
    with pytest.raises(UserError) as refused:
        configuration.validate(edited(path, value))
    message = str(refused.value)
    assert "\n" not in message
    assert message.startswith("config ")
    for word in words:
        assert word in message, f"{word!r} is not in {message!r}"


@pytest.mark.parametrize("drafter", study()["sweep"]["gammas"])
def test_an_empty_list_leaves_any_drafter_out(drafter):
    config = edited(f"sweep/gammas/{drafter}", [])
    configuration.validate(config)
    assert drafter not in drafters.methods(config)


def test_something_must_propose():
    config = study()
    config["sweep"]["gammas"] = {name: [] for name in config["sweep"]["gammas"]}
    with pytest.raises(UserError, match=r"^config sweep\.gammas: .* at least one drafter must have a gamma"):
        configuration.validate(config)


def test_a_small_context_can_be_reached_by_following_the_messages():
    """Each line names a key whose value can be made good; none asks for what there is no room for."""
    config = edited("model/context", 16)
    for _ in range(30):
        try:
            return configuration.validate(config)
        except UserError as refused:
            *parents, last = re.findall(r"\w+", str(refused).split(": ")[0].removeprefix("config "))
        at = config
        for part in parents:
            at = at[part]
        if isinstance(at, list):  # a gamma that is too large
            del at[int(last)]
        else:
            at[last] = SMALL[last]
    raise AssertionError("the messages lead nowhere")


SMALL = {
    "prefix_short": 8,
    "prefix_long": 16,
    "greedy_prompt": 2,
    "greedy_tokens": 6,
    "prompt": "RO",
}


def numbers_of(part: dict, path=()):
    """Every number of a schema, with where it stands."""
    kinds = part.get("type", [])
    if {"integer", "number"} & set([kinds] if isinstance(kinds, str) else kinds):
        yield path, part
    for key, value in part.items():
        if isinstance(value, dict):
            yield from numbers_of(value, (*path, key))


def test_every_number_has_two_bounds_and_a_reason():
    found = list(numbers_of(configuration.schema()))
    assert len(found) > 30
    told = (CONFIG / "README.md").read_text(encoding="utf-8").partition("## Bounds")[2]
    for path, part in found:
        assert f"{part['description']}; {part['$comment']}." in told, f"config/README.md tells no bounds of {path}"
        if path != ("$defs", "gammas", "items"):  # whose bounds are those of a context or a head
            assert part["maximum"] >= part.get("minimum", 0), path
            assert "minimum" in part or "anyOf" in part, path


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("seeds: [1]\nstudy: a\nseeds: [2]\n", "the key seeds stands there twice, in lines 1 and 3"),
        ("sweep: {tokens: 5, tokens: 6}\n", "the key tokens stands there twice, in lines 1 and 1"),
        ("model:\n  draft: {layers: 1}\n  draft: {layers: 2}\n", "the key draft stands there twice, in lines 2 and 3"),
    ],
)
def test_a_key_that_stands_there_twice_is_named(text, words, tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text(text)
    with pytest.raises(UserError, match=rf"mine\.yaml: {words}; one of them has no effect"):
        configuration.check_file(path)


def test_files_that_say_each_key_once_are_good(tmp_path):
    for path in CONFIG.glob("*.yaml"):
        if path.name != "claims.yaml":
            configuration.check_file(path)
    path = tmp_path / "merged.yaml"
    path.write_text("a: &a {x: 1}\nb: {<<: *a, x: 2}\nc: {<<: *a}\n")
    configuration.check_file(path)


def test_without_the_engine_of_trees_they_are_to_be_left_out():
    config = edited("sweep/engines", ["recompute"])
    with pytest.raises(
        UserError, match=r"must hold cached, the engine of sweep\.trees\.ngram \(\[\] leaves that out\)"
    ):
        configuration.validate(config)
    config["sweep"]["trees"] = {name: [] for name in config["sweep"]["trees"]}
    configuration.validate(config)


@pytest.mark.parametrize("kind", ["gammas", "trees"])
def test_an_empty_list_leaves_a_drafter_out(kind):
    config = edited(f"sweep/{kind}/eagle", [])
    configuration.validate(config)
    name = "eagle" if kind == "gammas" else "eagle_tree"
    assert drafters.methods(study()).keys() - drafters.methods(config).keys() == {name}
    assert "eagle" in drafters.heads_of(config)  # the other list still names it


@pytest.mark.parametrize("name", ["config.yaml", "quick.yaml"])
def test_the_configurations_that_are_shipped_are_good(name):
    config = study()
    lay_over(config, yaml.safe_load((CONFIG / name).read_text(encoding="utf-8")))
    configuration.validate(config)


def lay_over(below: dict, above: dict) -> None:
    for key, value in above.items():
        if isinstance(value, dict):
            lay_over(below[key], value)
        else:
            below[key] = value


STAGES = [("corpus", None), ("train", "plain"), ("train", "mtp"), ("train", "draft"), ("ngram", None)]
STAGES += [("head", name) for name in drafters.HEADS]
STAGES += [(stage, None) for stage in (*stages.MEASURING, "analysis", "figures", "report")]
ALL = {model or stage for stage, model in STAGES}
HEADS = set(drafters.HEADS)
MEASURED = {"trees", "checks", "acceptance", "sequences", "controls", "sweep"}

TOUCHES = [
    ("seeds", [1], {"analysis"}),
    ("quick", True, {"analysis"}),
    ("device", "cpu", {"plain", "mtp", "draft"} | HEADS | MEASURED),
    ("threads", 2, {"plain", "mtp", "draft"} | HEADS | MEASURED),
    ("corpus/path", "x.txt", set()),
    ("corpus/download/urls", ["https://x"], set()),
    ("corpus/prompt", "A", MEASURED),
    ("corpus/validation_fraction", 0.2, {"corpus"}),
    ("corpus/offline_fallback", "pydoc", set()),
    ("model/context", 65, {"plain", "mtp", "draft"}),
    ("model/target/layers", 3, {"plain", "mtp"}),
    ("model/draft/layers", 3, {"draft"}),
    ("training/target/steps", 4000, {"plain", "mtp"}),
    ("training/draft/steps", 4000, {"draft"}),
    ("training/mtp_weight", 0.1, {"mtp"}),
    ("training/heads/steps/eagle", 400, {"eagle"}),
    ("training/heads/batch", 16, HEADS),
    ("training/heads/trunk_learning_rate_fraction", 0.2, {"parallel", "medusa2"}),
    ("ngram/order", 4, {"ngram"}),
    ("sampling/temperature", 0.7, {"trees", "acceptance", "sweep"}),
    ("checks/greedy_tokens", 40, {"checks"}),
    ("acceptance/draws", 100_000, {"acceptance"}),
    ("sweep/gammas/draft", [1, 2], {"checks", "sweep"}),
    ("sweep/gammas/draft_dynamic", [5], {"checks", "acceptance", "sweep"}),
    ("sweep/gammas/eagle", [3], {"checks", "acceptance", "sweep"}),
    ("sweep/gammas/eagle", [], {"checks", "acceptance", "sequences", "sweep"}),
    ("sweep/gammas/mtp2", [], {"checks", "acceptance", "sequences", "sweep", "analysis"}),  # and so no head mtp2
    ("sweep/trees/eagle", [2, 4], {"trees", "checks", "acceptance", "sweep"}),
    ("sweep/trees/eagle", [], {"trees", "checks", "acceptance", "sequences", "sweep"}),
    ("sweep/trees/medusa1_typical", [8], {"trees", "checks", "acceptance", "sweep"}),
    ("sweep/trees/medusa1_typical", [], {"trees", "checks", "acceptance", "sweep"}),  # lossy, in no exact law
    ("sweep/trees", {}, {"trees", "checks", "acceptance", "sequences", "sweep", "analysis"}),
    ("trees/tokens", 300, {"trees"}),
    ("drafting/threshold", 0.5, {"checks", "acceptance", "sequences", "sweep"}),
    ("sweep/engines", ["cached"], {"checks", "sequences", "sweep"}),
    ("acceptance/contexts", 100, {"acceptance"}),
    ("sequences/texts", 100, {"sequences"}),
    ("sequences/gamma", 3, {"sequences", "controls"}),
    ("controls/draws", 50_000, {"controls"}),
    ("analysis/equivalence_margin", 0.02, {"analysis"}),
    ("sweep/tokens", 500, {"sweep"}),
    ("sweep/stop/blocks", 6, {"sweep"}),
]


def slices(config: dict) -> dict[str, str]:
    return {
        model or stage: stages.stage_settings(config, stage, model=model, corpus_identity="sum")
        for stage, model in STAGES
    }


@pytest.mark.parametrize(
    ("path", "value", "stages"), TOUCHES, ids=[f"{path}={value!r:.20}" for path, value, _ in TOUCHES]
)
def test_an_edit_touches_the_slices_of_its_stages_and_no_other(path, value, stages):
    before, after = slices(study()), slices(edited(path, value))
    assert {name for name in ALL if before[name] != after[name]} == stages | {"report"}


def test_another_text_touches_the_corpus():
    one, other = (stages.stage_settings(study(), "corpus", corpus_identity=sum_) for sum_ in "ab")
    assert one != other


def test_order_of_keys_and_whole_floats_make_no_difference():
    config = study()
    turned = json.loads(json.dumps(config), object_pairs_hook=lambda pairs: dict(reversed(pairs)))
    assert slices(config) == slices(turned)
    floated = copy.deepcopy(config)
    floated["sampling"]["temperature"] = 1
    floated["training"]["target"]["steps"] = 5000.0
    assert slices(config) == slices(floated)


def test_two_values_that_swap_are_two_settings():
    config = edited("training/target/weight_decay", 0.2)
    config["training"]["target"]["final_learning_rate_fraction"] = 0.1
    swapped = edited("training/target/weight_decay", 0.1)
    swapped["training"]["target"]["final_learning_rate_fraction"] = 0.2
    assert slices(config)["plain"] != slices(swapped)["plain"]


@pytest.mark.parametrize(
    ("gammas", "trees", "heads"),
    [
        ({}, {}, []),
        ({"mtp2": [1, 2], "eagle": [1]}, {}, ["mtp2", "eagle"]),
        ({"mtp_chained": [2], "medusa2": [1]}, {}, ["medusa1", "medusa2"]),  # begins with the heads of medusa1
        ({}, {"medusa1_typical": [16], "parallel": [4], "ngram": [4]}, ["parallel", "medusa1"]),
        ({"mtp4": []}, {"eagle": []}, []),
    ],
)
def test_only_heads_that_a_drafter_uses_are_trained(gammas, trees, heads):
    config = study()
    config["sweep"] |= {"gammas": {"draft": [1], "ngram": [1], "mtp": [1], **gammas}, "trees": trees}
    assert drafters.heads_of(config) == heads
    alone = study()
    alone["sweep"] |= {"gammas": {"draft": [1]}, "trees": {}}
    assert (duration.training_hours(config) > duration.training_hours(alone)) == bool(heads)
