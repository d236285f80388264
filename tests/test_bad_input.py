"""What can't be run ends before any training, in one line with the key, the value and what is allowed.

One case of each kind starts the real command line, the others read the Snakefile in this process; the schema's every
key is tried without it in test_config.py.
"""

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from clone import ROOT, snakemake, write_config
from planning import environment, plan
from small import play

TARGET_LR = {"training": {"target": {"learning_rate": "1e-5"}}}  # as YAML reads 1e-5
CASES = {
    "gamma 0": ({"sweep": {"gammas": {"draft": [0, 1]}}}, ["sweep.gammas.draft[0]", "0", "from 1 to 63"]),
    "gamma above context": ({"sweep": {"gammas": {"ngram": [64]}}}, ["sweep.gammas.ngram[0]", "64", "from 1 to 63"]),
    "no seeds": ({"seeds": []}, ["seeds", "[]", "must not be empty"]),
    "duplicate seed": ({"seeds": [1, 2, 1]}, ["seeds[2]", "1", "once"]),
    "negative temperature": (
        {"sampling": {"temperature": -0.5}},
        ["sampling.temperature", "-0.5", "from 0.001 to 100"],
    ),
    "unknown drafter": ({"sweep": {"gammas": {"medusa": [1]}}}, ["sweep.gammas.medusa", "draft, draft_dynamic"]),
    "missing device": ({"device": "cuda:99"}, ["device", "cuda:99", "allowed: auto, cpu"]),
    "1e-5 is text": (TARGET_LR, ["training.target.learning_rate", "1e-5", "1.0e-5"]),
    "unknown drafter of trees": (
        {"sweep": {"trees": {"foo": [8]}}},
        ["sweep.trees.foo", "unknown key", "medusa1_typical"],
    ),
    "a tree of one node": ({"sweep": {"trees": {"ngram": [1]}}}, ["sweep.trees.ngram[0]", "1", "from 2 to 256"]),
    "deeper than a head": ({"sweep": {"gammas": {"mtp2": [3]}}}, ["sweep.gammas.mtp2[0]", "3", "from 1 to 2"]),
    "trees without their engine": ({"sweep": {"engines": ["recompute"]}}, ["sweep.engines", "must hold cached"]),
    "warm-up of a head": (
        {"training": {"heads": {"warmup_steps": 8}}},
        ["training.heads.warmup_steps", "8", "less than steps.mtp2 = 8"],
    ),
    "steps of no head": ({"training": {"heads": {"steps": {"mtp3": 8}}}}, ["training.heads.steps.mtp3", "unknown key"]),
    "unknown key": ({"sweep": {"token": 5}}, ["sweep.token", "unknown key", "tokens"]),
}


@pytest.fixture
def folder(tmp_path):
    """A folder with a space in its name that holds results of an earlier run."""
    old = tmp_path / "a study" / "results" / "tiny" / "models" / "plain" / "1" / "model.safetensors"
    old.parent.mkdir(parents=True)
    old.write_bytes(b"weights that took hours")
    (tmp_path / "my play.txt").write_text(play(20_000), encoding="utf-8")
    return tmp_path


def contents(folder) -> dict:
    """Every file but Snakemake's own, with its bytes and its time."""
    paths = [path for path in folder.rglob("*") if path.is_file() and ".snakemake" not in path.parts]
    return {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in paths}


def run(folder, *, corpus=None, before=()):
    return snakemake(
        ROOT,
        "--snakefile", ROOT / "Snakefile", "--directory", folder / "a study", "--cores", 1,
        "--configfile", folder / "config.yaml",
        corpus=corpus or folder / "my play.txt", before=before,
    )  # fmt: skip


def the_line(done) -> str:
    """The one line that says what is wrong; there is no traceback and no job was started."""
    said = done.stdout + done.stderr
    assert done.returncode != 0, said
    assert "Traceback" not in said and "localrule" not in said and "rule corpus" not in said, said
    lines = [line for line in said.splitlines() if line.startswith("specledger: ")]
    assert len(lines) == 1, said
    return lines[0]


def the_line_here(folder, *, corpus=None) -> str:
    """The same line, from the Snakefile read in this process."""
    here = Path.cwd()
    try:
        with environment(SPECLEDGER_CORPUS=str(corpus or folder / "my play.txt")), pytest.raises(SystemExit) as ended:
            plan(ROOT / "Snakefile", folder / "a study", folder / "config.yaml")
    finally:
        os.chdir(here)
    line = str(ended.value)
    assert line.startswith("specledger: ") and "\n" not in line
    return line


@pytest.mark.parametrize("case", CASES)
def test_bad_config(case, folder):
    changes, words = CASES[case]
    write_config(folder / "config.yaml", changes)
    before = contents(folder)
    line = the_line_here(folder)
    for word in words:
        assert word in line
    assert contents(folder) == before


def test_bad_config_on_the_command_line(folder):
    changes, words = CASES["gamma 0"]
    write_config(folder / "config.yaml", changes)
    before = contents(folder)
    line = the_line(run(folder))
    assert line == the_line_here(folder)
    for word in words:
        assert word in line
    assert contents(folder) == before


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        (play(60).encode(), ["characters", "model.context 64", "needed"]),
        (play(3000).encode() + b"\xff", ["not UTF-8", "byte 3000 is 0xff"]),
        (play(3000).replace(":", ";").encode(), ["lacks ':'", "corpus.prompt"]),
        (None, ["No such file"]),
    ],
    ids=["short", "not-utf8", "prompt", "absent"],
)
def test_bad_corpus(raw, words, folder):
    corpus = folder / "bad play.txt"
    if raw is not None:
        corpus.write_bytes(raw)
    write_config(folder / "config.yaml")
    before = contents(folder)
    # One of them on the command line too.
    for line in (the_line_here(folder, corpus=corpus), *([] if raw else [the_line(run(folder, corpus=corpus))])):
        for word in ["bad play.txt", *words]:
            assert word in line
    assert contents(folder) == before


def test_corpus_with_another_sum(folder):
    corpus, asked = folder / "my play.txt", "0" * 64
    write_config(folder / "config.yaml", {"corpus": {"sha256": asked}})
    before = contents(folder)
    line = the_line_here(folder)
    assert str(corpus) in line and asked in line and "corpus.sha256" in line
    assert contents(folder) == before


def without_root_rights() -> tuple[str, ...]:
    """What to put before a command so that the folder's permissions count for root too."""
    if os.geteuid() != 0:
        return ()
    rights = "-dac_override,-dac_read_search"
    command = ("setpriv", f"--bounding-set={rights}", f"--inh-caps={rights}")
    if shutil.which("setpriv") is None or subprocess.run([*command, "true"], capture_output=True).returncode != 0:
        pytest.skip("this is root, for whom every folder is writable, and there is no setpriv to give that up")
    return command


@pytest.mark.parametrize("closed", [pytest.param("a study", marks=pytest.mark.slow), "a study/results/tiny"])
def test_unwritable_folder(closed, folder):
    before, command = contents(folder), without_root_rights()
    write_config(folder / "config.yaml")
    (folder / closed).chmod(0o555)
    try:
        done = run(folder, before=command)
    finally:
        (folder / closed).chmod(0o755)
    line = the_line(done)
    assert str(folder / closed) in line and "not writable" in line
    assert contents(folder).items() >= before.items()


@pytest.mark.slow
def test_broken_yaml(folder):
    (folder / "config.yaml").write_text("seeds: [1, 2\nstudy: x\n")
    done = run(folder)
    said = done.stdout + done.stderr
    assert done.returncode != 0 and "Traceback" not in said and "config" in said.lower()
