"""The rule `head` in a study: what it runs, and what it runs on."""

import json

import pytest
from clone import copy_checkout, snakemake, write_config
from small import play

HEADS = ("medusa1", "medusa2", "eagle")
pytestmark = pytest.mark.slow  # the study of test_workflow.py trains two heads too, without one that waits for another


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A study of which two heads alone were asked for."""
    folder = tmp_path_factory.mktemp("heads")
    corpus, checkout = folder / "play.txt", copy_checkout(folder / "a clone")
    corpus.write_text(play(20_000), encoding="utf-8")
    write_config(checkout / "tiny.yaml", {"sweep": {"gammas": {"medusa2": [2], "eagle": [2]}}})
    asked = [f"results/tiny/heads/{head}/2/heads.safetensors" for head in ("medusa2", "eagle")]
    done = snakemake(checkout, *asked, "--cores", "2", "--configfile", "tiny.yaml", corpus=corpus)
    assert done.returncode == 0, done.stdout + done.stderr
    return checkout


def test_a_head_needs_its_target_and_medusa2_the_heads_of_medusa1(trained):
    results = trained / "results" / "tiny"
    assert {path.name for path in (results / "heads").iterdir()} == set(HEADS)
    assert [path.name for path in (results / "models").iterdir()] == ["mtp"]
    for head in HEADS:
        folder = results / "heads" / head / "2"
        names = {"heads.safetensors", "history.csv", "training.json", "certificate.json"}
        assert {path.name for path in folder.iterdir()} == names
        record = json.loads((folder / "certificate.json").read_text())
        assert set(record["inputs"]) == {"text", "mtp", *(["medusa1"] if head == "medusa2" else [])}
        assert json.loads((folder / "training.json").read_text())["steps"] == 8
        assert (results / "benchmarks" / "head" / f"{head}-2.tsv").exists()
    assert not (results / "checkpoints").exists()
