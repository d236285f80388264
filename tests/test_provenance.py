"""What doesn't belong to a study is named; results that came without Snakemake's records are judged by hashes."""

import json
import shutil
from pathlib import Path

import pytest
from planning import Planned
from reruns import BRANCHING, EACH_SEED, HEADS, MEASURED, REPORT, jobs_of
from specledger.analysis.adoption import recorded
from specledger.analysis.provenance import mixed_lines, provenance, results_of, stale_beside, stale_lines
from specledger.foundation.errors import UserError
from specledger.foundation.records import certificate, hash_text, sum_of, weights_of

SEEDS = [1, 2]
ASKED = (*HEADS, "trees")
STEPS = {"training": {"draft": {"steps": 13}}}


@pytest.fixture(scope="module")
def finished(planned_study, tmp_path_factory):
    return planned_study.copy(tmp_path_factory.mktemp("a study"))


@pytest.fixture
def copied(finished, tmp_path):
    """The results in a clone of their own, with the times of copying, and nothing of Snakemake's."""
    ignored = shutil.ignore_patterns(".snakemake")
    shutil.copytree(finished.checkout, tmp_path / "copied", copy_function=shutil.copyfile, ignore=ignored)
    return Planned(tmp_path / "copied", finished.corpus)


def expected_of(study) -> dict:
    """The hashes of today's settings and code, from Snakemake's own plan."""
    study.jobs(executor="dryrun")
    return {
        model or rule: {"settings_hash": hash_text(params.settings), "code_hash": params.code}
        for (rule, model), params in study.params.items()
        if "settings" in params.keys()  # noqa: SIM118 (no dict)
    }


def test_each_result_says_what_made_it(finished):
    names = [made.name for made in results_of(finished.results, SEEDS, ASKED)]
    assert names[:3] == ["corpus", "ngram", "models/plain/1"]
    assert len(names) == 2 + 6 + 2 * len(EACH_SEED) + 1 + 2 * len(HEADS)
    assert names.count("controls/1") == 1 and "controls/2" not in names
    assert stale_lines(finished.results, SEEDS, expected_of(finished)) == []


@pytest.mark.parametrize("what", ["settings", "code"])
@pytest.mark.parametrize("name", "corpus ngram models/mtp/2 heads/eagle/1 trees/2 sweep/1 controls/1".split())
def test_another_hash_is_named(what, name, copied):
    expected = expected_of(copied)
    made = {made.name: made for made in results_of(copied.results, SEEDS, ASKED)}[name]
    record = json.loads(made.certificate.read_text())
    made.certificate.write_text(json.dumps({**record, f"{what}_hash": "0"}))
    assert stale_lines(copied.results, SEEDS, expected) == [f"{name}: made with other {what} than the study's"]


@pytest.mark.parametrize(
    ("file", "stale"),
    [
        ("models/draft/1/model.safetensors", [f"{stage}/1" for stage in MEASURED]),
        (
            "models/mtp/2/heads.safetensors",
            [*(f"{stage}/2" for stage in EACH_SEED), *(f"heads/{head}/2" for head in HEADS)],
        ),
        ("models/plain/2/model.safetensors", ["checks/2"]),
        ("heads/medusa1/1/heads.safetensors", ["heads/medusa2/1", *(f"{stage}/1" for stage in MEASURED)]),
    ],
)
def test_what_was_measured_with_other_weights_is_named(file, stale, copied):
    """Same settings, same code: only the sum of the weights tells it."""
    expected, model = expected_of(copied), file.split("/")[1]
    (copied.results / file).write_text("weights of another machine")
    lines = stale_lines(copied.results, SEEDS, expected)
    assert set(lines) == {f"{name}: made with other model {model} than the study's" for name in stale}


def test_what_was_measured_with_trees_of_other_shapes_is_named(copied):
    expected = expected_of(copied)
    (copied.results / "trees" / "2" / "shapes.csv").write_text("of other texts")
    named = {f"{stage}/2: made with other shapes of trees than the study's" for stage in BRANCHING}
    assert set(stale_lines(copied.results, SEEDS, expected)) == named


def test_what_was_made_from_another_text_is_named(copied):
    expected = expected_of(copied)
    (copied.results / "corpus" / "text.txt").write_text("another text")
    lines = stale_lines(copied.results, SEEDS, expected)
    found = 1 + 6 + 2 * len(HEADS) + 2 * len(EACH_SEED) + 1
    assert len(lines) == found and all("made with other text than" in line for line in lines)


def measured_beside(study, expected: dict) -> Path:
    """What benchmarks/ leaves beside a study, with the certificates of today's files."""
    folder = study.results / "peers"
    folder.mkdir()
    inputs = {model: sum_of(*weights_of(study.results / "models" / model / "1")) for model in ("mtp", "draft")}
    inputs["ngram"] = sum_of(study.results / "ngram" / "ngram.safetensors")
    trained = {"draft": expected["draft"]["settings_hash"]}
    text = {"text": sum_of(study.results / "corpus" / "text.txt")}
    for name, record in (
        ("certificate.json", {"settings": {"seed": 1}, "inputs": inputs}),
        ("training_certificate.json", {"settings": {"seed": 1, "trained": trained}, "inputs": text}),
    ):
        (folder / name).write_text(json.dumps(record))
    for name in ("peers.csv", "training_speed.csv"):
        (folder / name).write_text("program\n")
    return folder


def test_a_comparison_with_other_weights_is_named(copied):
    expected = expected_of(copied)
    assert stale_beside(copied.results, expected) == []  # nobody ran one
    folder = measured_beside(copied, expected)
    assert stale_beside(copied.results, expected) == []
    (copied.results / "models" / "draft" / "2" / "model.safetensors").write_text("not the seed that was compared")
    assert stale_beside(copied.results, expected) == []
    (copied.results / "models" / "draft" / "1" / "model.safetensors").write_text("trained once more")
    line = "peers/peers.csv: made with other model draft than the study's"
    assert stale_beside(copied.results, expected) == [line]
    (folder / "certificate.json").write_text(json.dumps({"settings": {"seed": 1}, "inputs": {}}))
    line = "peers/peers.csv: its certificate doesn't say which draft, mtp, ngram it was made with"
    assert stale_beside(copied.results, expected) == [line]
    (folder / "certificate.json").unlink()
    assert stale_beside(copied.results, expected) == [line]


def test_the_report_is_told_of_a_comparison_that_is_stale(copied):
    expected, about = expected_of(copied), {"stage": "", "settings": "{}", "code": "", "inputs": {}, "threads": 1}
    (measured_beside(copied, expected) / "certificate.json").unlink()
    for made in results_of(copied.results, SEEDS, expected):
        record = json.loads(made.certificate.read_text())
        made.certificate.write_text(json.dumps(certificate(**about, device="a") | record))
        (made.folder / "training.json").write_text('{"train_s": 1.0}')
        (made.folder / "runs.csv").write_text("wall_s\n2.0\n")
    found = provenance(copied.results, {"study": "tiny", "quick": True, "seeds": SEEDS}, "", expected)
    line = "peers/peers.csv: its certificate doesn't say which draft, mtp, ngram it was made with"
    assert found["stale"] == [line] and found["sweep_s"] == 4


def test_a_training_comparison_with_other_settings_or_text_is_named(copied):
    expected = expected_of(copied)
    measured_beside(copied, expected)
    other = expected | {"draft": {**expected["draft"], "settings_hash": "0"}}
    name = "peers/training_speed.csv: made with other"
    assert stale_beside(copied.results, other) == [f"{name} training settings of draft than the study's"]
    (copied.results / "corpus" / "text.txt").write_text("another text")
    assert stale_beside(copied.results, expected) == [f"{name} text than the study's"]


@pytest.mark.parametrize("name", ["model.safetensors", "history.csv"])
def test_a_file_that_changed_after_its_run_is_named(name, copied):
    """One byte of weights that nothing has measured yet: their own certificate tells it."""
    expected, folder = expected_of(copied), copied.results / "models" / "plain" / "2"
    record = json.loads((folder / "certificate.json").read_text())
    files = {path.name: sum_of(path) for path in folder.iterdir() if path.name != "certificate.json"}
    (folder / "certificate.json").write_text(json.dumps({**record, "files": files}))
    assert stale_lines(copied.results, SEEDS, expected) == []
    raw = (folder / name).read_bytes()
    (folder / name).write_bytes(raw[:-1] + bytes([raw[-1] ^ 1]))
    lines = stale_lines(copied.results, SEEDS, expected)
    assert f"models/plain/2: {name} changed after the run that wrote it" in lines
    assert set(copied.jobs()) >= jobs_of("plain", only=2)


def test_weights_that_were_deleted_make_nothing_stale(copied):
    expected = expected_of(copied)
    (copied.results / "models" / "draft" / "1" / "model.safetensors").unlink()
    assert stale_lines(copied.results, SEEDS, expected) == []


def test_a_certificate_that_is_gone_or_broken_is_one_line(copied):
    expected, path = expected_of(copied), copied.results / "sweep" / "1" / "certificate.json"
    path.write_text("{")
    with pytest.raises(UserError, match=r"sweep/1/certificate.json: not valid JSON .*; delete it and run"):
        stale_lines(copied.results, SEEDS, expected)
    path.unlink()
    with pytest.raises(UserError, match=r"sweep/1/certificate.json: missing; run snakemake again"):
        provenance(copied.results, {"seeds": SEEDS}, "", expected)


def test_results_of_different_machines_are_named():
    one = certificate(stage="sweep", settings="{}", code="c", inputs={}, device="a", threads=1)
    other = {**one, "device": "b", "versions": {**one["versions"], "torch": "1"}}
    lines = mixed_lines([one, other, one])
    assert lines[0] == "device: a, b" and len(lines) == 2 and lines[1].startswith("torch: 1, ")
    assert mixed_lines([one, one]) == []


# --- results without Snakemake's records ---


def test_valid_results_are_taken_over_once_and_for_all(copied):
    assert set(copied.jobs()) == jobs_of("tables")
    assert not recorded(copied.results / "models" / "plain" / "1" / "certificate.json")
    copied.jobs(executor="touch")  # tables and what follows are made, and recorded
    assert copied.jobs() == {}


def test_an_edit_is_noticed_long_after_and_can_be_taken_back(copied):
    copied.jobs(executor="touch")
    edited = copied.written("edited.yaml", STEPS)
    assert set(copied.jobs(config=edited)) == jobs_of("draft", follows=REPORT)
    assert set(copied.jobs()) <= jobs_of("tables")


def test_a_text_that_is_stale_comes_back(copied):
    other = copied.checkout.parent / "other.txt"
    other.write_text(copied.corpus.read_text() + "The end.\n")
    assert set(copied.jobs(corpus=other)) == jobs_of("everything")
    assert set(copied.jobs(corpus=other)) == jobs_of("everything")
    assert set(copied.jobs()) == jobs_of("tables")


@pytest.mark.parametrize("broken", ["", "[]", '{"settings_hash": 1}'])
def test_a_broken_certificate_is_stale(broken, copied):
    (copied.results / "models" / "draft" / "2" / "certificate.json").write_text(broken)
    assert set(copied.jobs()) >= jobs_of("draft", only=2)
    assert ("train", "mtp", 2) not in copied.jobs()


def test_what_snakemake_knows_is_left_alone(finished):
    before = {path: path.stat().st_mtime_ns for path in finished.results.rglob("*") if path.is_file()}
    finished.jobs(config=finished.written("edited.yaml", STEPS))
    assert {path: path.stat().st_mtime_ns for path in before} == before
