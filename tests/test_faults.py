"""Faults that no other file tries, and docs/faults.md: each row names the test that tries it, and each exists."""

import ast
import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path
from xml.etree import ElementTree

import pytest
import torch
from clone import ROOT, snakemake, write_config
from planning import Planned
from small import play
from specledger.analysis.raw import read_csv
from specledger.commands import run
from specledger.corpus.text import Corpus, Vocabulary
from specledger.foundation.errors import UserError
from specledger.foundation.records import write_rows, write_text
from test_bad_input import without_root_rights

TABLE = (ROOT / "docs" / "faults.md").read_text(encoding="utf-8")
ROWS = [
    [cell.strip() for cell in line[1:-1].split("|")]
    for line in TABLE.splitlines()
    if line.startswith("| ") and "::" in line
]


def defined_in(path: Path) -> set[str]:
    return {node.name for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.FunctionDef)}


def test_the_page_has_forty_faults_and_a_test_for_each():
    assert len(ROWS) >= 40 and len({row[0] for row in ROWS}) == len(ROWS)
    known = {path.name: defined_in(path) for path in (ROOT / "tests").glob("test_*.py")}
    for row in ROWS:
        assert len(row) == 4, row
        for file, name in re.findall(r"`(\w+\.py)::(\w+)`", row[3]):
            assert name in known[file], f"docs/faults.md: {file}::{name} is no test"


def test_what_the_page_quotes_is_said_somewhere():
    """The words of a line are those of the code: a message that changes must change there too."""
    sources = [*(ROOT / "workflow").rglob("*.py"), *(ROOT / "workflow").rglob("*.smk"), *(ROOT / "tests").glob("*.py")]
    sources.append(ROOT / "workflow" / "schemas" / "config.schema.yaml")
    said = " ".join(path.read_text(encoding="utf-8") for path in sources)
    for row in ROWS:
        for part in re.findall(r"`([^`]+)`", row[1]):
            for words in (words.strip() for words in part.split("…")):
                assert words in said, f"docs/faults.md: nothing says {words!r}"


# --- files that are not what they were ---


def test_a_text_that_was_swapped_is_named(tmp_path):
    text = play(3000)
    record = {"vocabulary": Vocabulary.of(text).symbols, "train_characters": 2700, "prompt": None, "sha256": "0" * 64}
    (tmp_path / "text.txt").write_text(text)
    with pytest.raises(UserError, match=r"text\.txt: not the text that corpus\.json describes; delete it and run"):
        Corpus.load(tmp_path / "text.txt", record)


@pytest.mark.parametrize("cut", [1, 3, 10])
def test_a_result_that_was_cut_off_is_named(cut, tmp_path):
    path = tmp_path / "runs.csv"
    write_rows(path, [{"seed": 1, "tokens": 600, "wall_s": 1.25}] * 3)
    assert len(read_csv(path, ["tokens"], 1)) == 3
    path.write_bytes(path.read_bytes()[:-cut])
    with pytest.raises(UserError, match=r"runs\.csv: cut off in its last line; delete it and run snakemake again"):
        read_csv(path, ["tokens"], 1)


def test_claims_that_are_no_yaml_are_named(tmp_path, capsys):
    study = Planned.in_folder(tmp_path)
    claims = study.checkout / "config" / "claims.yaml"
    for damage in ("claims: [1, 2\nx: 3", None):
        claims.unlink() if damage is None else claims.write_text(damage)
        with pytest.raises(SystemExit, match=r"claims\.yaml: .*; a readable YAML file is needed$"):
            study.jobs()


# --- the disk, memory, the clock ---


def test_a_full_disk_is_one_line_and_leaves_what_was_there(tmp_path):
    """A limit on the size of a file stands in for a full disk: the same error of the same call."""
    resource = pytest.importorskip("resource")
    path = tmp_path / "runs.csv"
    write_text(path, "as it was\n")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, hard))
    try:
        for write in (lambda: write_text(path, "x" * 9000), lambda: write_rows(path, [{"a": "x" * 9000}])):
            with pytest.raises(
                UserError, match=r"runs\.csv: could not be written \(.*\); make room, then run snakemake"
            ):
                write()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert path.read_text() == "as it was\n" and list(tmp_path.iterdir()) == [path]


def test_a_disk_that_is_really_full(tmp_path):
    """A file system of 64 kB, where this may be mounted."""
    if os.geteuid() != 0 or subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "none", tmp_path]).returncode:
        pytest.skip("no file system can be mounted here")
    try:
        with pytest.raises(UserError, match=r"text\.txt: could not be written \(No space left on device\)"):
            write_text(tmp_path / "text.txt", "x" * 100_000)
        assert list(tmp_path.iterdir()) == []
    finally:
        subprocess.run(["umount", tmp_path], check=True)


@pytest.mark.parametrize(
    "error",
    [
        torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 4 GiB"),
        RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory: you tried to allocate 8 bytes."),
        MemoryError("Unable to allocate 8.00 GiB for an array"),
    ],
    ids=["cuda", "cpu", "numpy"],
)
def test_memory_that_runs_out_is_one_line(error, tmp_path, monkeypatch, capsys):
    def fail(_options, _log):
        raise error

    monkeypatch.setattr("specledger.commands.figures.run", fail)
    log = tmp_path / "log"
    assert run.main(["figures", "--log", str(log), "--results", "r", "--output", "r/a.svg"]) == 1
    said = capsys.readouterr().err.splitlines()
    assert len(said) == 1 and said[0].startswith("specledger figures: out of memory (")
    assert said[0].endswith("; it takes less with fewer seeds, texts or methods")
    assert "Traceback" in log.read_text()


def test_a_memory_hint_names_what_the_stage_could_change():
    for stage in run.COMPUTING:
        assert (
            run.one_line(MemoryError("8 GiB"), None, stage, "cpu")
            == f"out of memory (8 GiB); it takes less with {run.LESS[stage]}"
        )
    said = run.one_line(MemoryError("8 GiB"), None, "train", "cuda")
    assert (
        said == "out of memory (8 GiB); it takes less with a smaller training.*.batch or model.context, or device: cpu"
    )


@pytest.mark.parametrize("years", [-30, 30])
def test_a_clock_that_goes_back_reruns_nothing(years, tmp_path):
    """Files are compared by content: those from the future, or older than what they were made from, are good."""
    study = Planned.in_folder(tmp_path)
    study.finish()
    then = time.time() + years * 365 * 86400
    for folder in (study.results / "models", study.results / "corpus"):
        for path in folder.rglob("*"):
            os.utime(path, (then, then))
    assert study.jobs() == {}


# --- processes and folders ---


KILLED = """
import os, signal, sys
from pathlib import Path
sys.path.insert(0, {tests!r})
from matplotlib.figure import Figure
from specledger.reporting.figures import draw_all
drawn, save = [], Figure.savefig
def die(figure, file, **named):
    drawn.append(file)
    if len(drawn) == 3:
        file.write("<svg half")
        os.kill(os.getpid(), signal.SIGKILL)
    save(figure, file, **named)
Figure.savefig = die
draw_all(Path({results!r}), Path({figures!r}), "en")
"""


def test_a_worker_killed_in_the_middle_of_a_figure_leaves_whole_ones(tmp_path):
    from synthetic import write_synthetic_study

    results, figures = tmp_path / "results", tmp_path / "figures"
    write_synthetic_study(results)
    script = KILLED.format(tests=str(ROOT / "tests"), results=str(results), figures=str(figures))
    variables = {**os.environ, "PYTHONPATH": str(ROOT / "workflow")}
    assert subprocess.run([sys.executable, "-c", script], env=variables).returncode == -9
    there = list(figures.iterdir())
    assert len(there) == 2
    for path in there:
        ElementTree.parse(path)


def test_a_clone_that_can_only_be_read(tmp_path):
    """The results go into the folder of --directory; nothing is written beside the workflow."""
    study = Planned.in_folder(tmp_path / "study")
    before = sorted(study.checkout.rglob("*"))
    command = without_root_rights()
    folders = [study.checkout, *(path for path in study.checkout.rglob("*") if path.is_dir())]
    work = tmp_path / "work"
    work.mkdir()
    config = write_config(tmp_path / "tiny.yaml")
    for folder in folders:
        folder.chmod(0o555)
    try:
        done = snakemake(
            study.checkout, "corpus", "--directory", work, "--cores", 1, "--configfile", config,
            corpus=study.corpus, before=command,
        )  # fmt: skip
    finally:
        for folder in folders:
            folder.chmod(0o755)
    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads((work / "results" / "tiny" / "corpus" / "corpus.json").read_text())["source"] == "file"
    assert sorted(study.checkout.rglob("*")) == before


@pytest.mark.slow
def test_two_runs_in_one_folder(tmp_path):
    """The second is refused with a line of Snakemake's, as after kill -9; the lock is taken away by --unlock."""
    study = Planned.in_folder(tmp_path)
    locks = study.checkout / ".snakemake" / "locks"
    locks.mkdir(parents=True)
    (locks / "0.output.lock").write_text("results/tiny/corpus/text.txt\n")
    ask = ("corpus", "--cores", 1, "--configfile", study.config)
    refused = snakemake(study.checkout, *ask, corpus=study.corpus)
    assert refused.returncode != 0 and "Directory cannot be locked" in refused.stderr
    assert not (study.results / "corpus" / "text.txt").exists()
    assert snakemake(study.checkout, "--unlock", *ask, corpus=study.corpus).returncode == 0
    assert snakemake(study.checkout, *ask, corpus=study.corpus).returncode == 0


def test_auto_is_refused_where_jobs_run_elsewhere(tmp_path):
    """Without cores, but with nodes, as with each executor of a cluster; the machine that asks has no say."""
    pytest.importorskip("snakemake_executor_plugin_slurm")
    study = Planned.in_folder(tmp_path)
    config = study.written("auto.yaml", {"device": "auto"})
    ask = ("--workflow-profile", "profiles/slurm", "--dry-run", "--configfile", config)
    done = snakemake(study.checkout, *ask, corpus=study.corpus)
    said = [line for line in done.stderr.splitlines() if line.startswith("specledger: ")]
    assert done.returncode != 0
    assert said == ["specledger: config device: auto — the jobs run on other machines; allowed: cpu, cuda"]
