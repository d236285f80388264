"""The same study again, on other cores and over a real SLURM with a job killed: the same bytes but for seconds."""

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pandas as pd
import pytest
import slurm
from clone import TINY, copy_checkout, snakemake, write_config
from small import play

# What a clock told: columns of CSV and keys of JSON by their names, and what is worked out from them.
SECONDS = re.compile(r"(_s|_us|_ms)$|^seconds")
RATIOS = re.compile(r"^(speedup|theorem38|cost_model|overhead|c$|v$)")
OF_SECONDS = {
    "tables/ledger.csv": RATIOS,
    "tables/forwards.csv": RATIOS,
    # One chain and one tree of a drafter here: which of several is the fastest would be the clock's word too.
    "tables/trees.csv": re.compile("speedup|^ratio|^(method|nodes_predicted|v_chain|v_tree|verdict)$|^most_ratio"),
    "tables/systems.csv": re.compile("^speedup|^train_share$"),
    "tables/heads.csv": re.compile("^train_share"),
    "tables/summary.json": re.compile("^(best|c|cost_model|noise|slowest|time)$"),
}
# Nothing but seconds and their ratios, and figures of these.
CLOCKED = {
    *(f"tables/{name}.csv" for name in ("time", "waterfall", "noise", "cost_model", "claims")),
    *(f"figures/{name}.svg" for name in ("wall_clock", "theory", "time_parts", "waterfall", "trees", "trees_speed")),
}
SMALL = {
    "seeds": [1],
    "training": {"target": {"steps": 6}, "draft": {"steps": 6}, "heads": {"steps": {"medusa1": 6}}},
    "acceptance": {"contexts": 2, "texts": 1},
    "sequences": {"texts": 5},
    "controls": {"texts": 3, "repeats": 3},
    "sweep": {
        "engines": ["recompute", "cached"],
        "gammas": {"draft": [1], "lookup": [2], "draft_dynamic": [2], "mtp2": [], "medusa1": [2]},
        "trees": {"ngram": []},
        "repeats": 1,
        "tokens": 12,
    },
}


pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    path = tmp_path_factory.mktemp("text") / "my play.txt"
    path.write_text(play(20_000), encoding="utf-8")
    return path


def made(folder: Path, corpus: Path, *arguments, changes=SMALL, **named) -> Path:
    """The results of a clean run."""
    checkout = copy_checkout(folder / "a clone")
    config = write_config(checkout / "tiny.yaml", changes)
    done = snakemake(checkout, *arguments, "--configfile", config, corpus=corpus, TMPDIR=str(folder), **named)
    assert done.returncode == 0, done.stdout + done.stderr
    return checkout / "results" / TINY["study"]


@pytest.fixture(scope="module")
def first(tmp_path_factory, corpus):
    return made(tmp_path_factory.mktemp("first"), corpus, "--cores", 2)


def without_seconds(value, more: re.Pattern):
    """JSON without what a clock told, and without a certificate's sums of files with seconds."""
    if isinstance(value, dict):
        kept = {key: item for key, item in value.items() if not (SECONDS.search(key) or more.search(key))}
        return {key: without_seconds(item, more) for key, item in kept.items() if key != "files"}
    return [without_seconds(item, more) for item in value] if isinstance(value, list) else value


def content(name: str, path: Path):
    """A file's bytes; of a table or a record with seconds, all but these."""
    more = OF_SECONDS.get(name, SECONDS)
    if path.suffix == ".csv":
        table = pd.read_csv(path, dtype=str, keep_default_na=False)
        return table[[name for name in table if not (SECONDS.search(name) or more.search(name))]].to_csv(index=False)
    return without_seconds(json.loads(path.read_text()), more) if path.suffix == ".json" else path.read_bytes()


def files(results: Path) -> dict[str, Path]:
    found = {str(path.relative_to(results)): path for path in results.rglob("*") if path.is_file()}
    return {name: path for name, path in found.items() if name.split("/")[0] not in ("logs", "benchmarks")}


def differing(one: Path, other: Path) -> list[str]:
    ours, theirs = files(one), files(other)
    assert ours.keys() == theirs.keys() and len(ours) > 40
    return sorted(name for name in ours.keys() - CLOCKED if content(name, ours[name]) != content(name, theirs[name]))


def test_a_clean_run_on_another_number_of_cores_is_the_same(first, corpus, tmp_path):
    again = made(tmp_path, corpus, "--cores", 1)
    assert differing(first, again) == []


class Watch:
    """A run over SLURM: how many jobs ran at once, and one that is killed while it runs."""

    def __init__(self, variables: dict):
        self.variables, self.most, self.killed = {**os.environ, **variables}, 0, None

    def __call__(self, command, **named) -> subprocess.CompletedProcess:
        process = subprocess.Popen(command, **named)
        end = time.monotonic() + 1200
        while True:
            try:
                out, err = process.communicate(timeout=0.5)
                return subprocess.CompletedProcess(command, process.returncode, out, err)
            except subprocess.TimeoutExpired:
                assert time.monotonic() < end, "the run over SLURM doesn't end"
                self._look()

    def _look(self) -> None:
        asked = ["squeue", "-h", "-t", "RUNNING", "-o", "%i %k"]
        listed = subprocess.run(asked, env=self.variables, capture_output=True, text=True).stdout.splitlines()
        self.most = max(self.most, len(listed))
        training = next((line.split()[0] for line in listed if "train" in line), None)
        if self.killed is None and training is not None:
            self.killed = training
            subprocess.run(["scancel", "--signal=KILL", "--full", training], env=self.variables, check=True)


@pytest.mark.cluster
def test_over_slurm_with_a_job_killed_it_is_the_same(first, corpus, tmp_path):
    if reason := slurm.lacking():
        pytest.skip(reason)
    pytest.importorskip("snakemake_executor_plugin_slurm")
    if " " in sys.executable:
        pytest.skip("a job on a cluster is started with Python's own path unquoted, and that has a space here")
    with slurm.cluster(tmp_path / "slurm") as variables:
        watch, said = Watch(variables), []

        def start(command, **named):
            said.append(watch(command, **{name: value for name, value in named.items() if name != "timeout"}))
            return said[0]

        profile = ("--workflow-profile", "profiles/slurm", "--jobs", 4)
        again = made(tmp_path, corpus, *profile, start=start, **variables)
    assert watch.most >= 2, "no two jobs ran at once"
    assert watch.killed is not None and "Trying to restart job" in said[0].stdout + said[0].stderr
    assert differing(first, again) == []
