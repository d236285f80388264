"""A whole tiny study in a folder with a space, run as a user runs it."""

import json
import os
import re
import resource
import shutil
import signal
import subprocess
import time
from functools import partial

import pandas as pd
import pytest
from clone import STUDY, TINY, TO_THE_END, copy_checkout, merged, planned, snakemake, write_config
from small import play
from specledger.foundation.drafters import heads_of

HEADS = heads_of(merged(STUDY, TINY))
EACH_SEED = ("trees", "checks", "acceptance", "sequences", "sweep")
TABLES = (
    "ledger time forwards acceptance prefix greedy seeds models oracle contexts p_values sequences controls "
    "false_alarms rates independence gap differences heads ranks trees typical systems"
).split()


class Study:
    """A finished study: run it, or ask what would run."""

    def __init__(self, checkout, corpus):
        self.checkout, self.corpus = checkout, corpus
        self.config = write_config(checkout / "tiny.yaml")
        self.results = checkout / "results" / "tiny"

    def run(self, *arguments, config=None, start=TO_THE_END):
        return snakemake(
            self.checkout,
            *arguments,
            "--cores",
            2,
            "--configfile",  # last: it takes all names that follow it
            config or self.config,
            start=start,
            corpus=self.corpus,
            TMPDIR=str(self.checkout.parent),  # another study's timing lock is not waited for
        )

    def plan(self) -> dict[str, int]:
        """Jobs of a dry run."""
        return planned(self.run("--dry-run"))


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    folder = tmp_path_factory.mktemp("a study")
    corpus = folder / "my play.txt"
    corpus.write_text(play(20_000), encoding="utf-8")
    made = Study(copy_checkout(folder / "a clone"), corpus)
    made.done = made.run()
    assert made.done.returncode == 0, made.done.stdout + made.done.stderr
    return made


@pytest.fixture
def another(study, tmp_path):
    """The finished study once more, to be damaged."""
    shutil.copytree(study.checkout, tmp_path / "a clone")
    return Study(tmp_path / "a clone", study.corpus)


# --- the study ---


def test_report_is_there(study):
    page = study.checkout / "report" / "tiny" / "index.html"
    paper = study.checkout / "report" / "tiny" / "report.pdf"
    assert "</html>" in page.read_text(encoding="utf-8")
    assert paper.read_bytes().startswith(b"%PDF-") and paper.stat().st_size > 20_000


def test_the_user_is_told_where_and_how_long(study):
    said = study.done.stdout + study.done.stderr
    assert "the report lies in report/tiny/index.html and report/tiny/report.pdf" in said
    assert "study 'tiny' with 2 seed(s) on the CPU: the trainings of an empty folder take about" in said
    assert "(2 trainings at once, one thread each, on cores of a 2020s server that do nothing else)" in said


def test_the_run_is_told_job_by_job(study):
    """No terminal here: a plain line for each job that ends, and none of Snakemake's own about jobs."""
    said = (study.done.stdout + study.done.stderr).splitlines()
    ends = [line for line in said if re.match(r"specledger: .* took [^:]+: \d+ of \d+ jobs, ", line)]
    assert len(ends) == len(list((study.results / "benchmarks").rglob("*.tsv")))
    assert [int(re.search(r": (\d+) of", line)[1]) for line in ends] == list(range(1, len(ends) + 1))
    assert all(" left" in line for line in ends[:-1]) and " left" not in ends[-1]
    for words in ("Select jobs", "rule train", "jobid", "Finished job", "\x1b"):
        assert not any(words in line for line in said), words


def test_tables_are_there(study):
    for name in TABLES:
        text = (study.results / "tables" / f"{name}.csv").read_text(encoding="utf-8")
        assert len(text.splitlines()) > 1, name
        assert not {"nan", "None", "NaN"} & set(text.replace("\n", ",").split(",")), name  # missing is empty
    # The text is not the chapter's, so that no published reading is judged.
    assert len(pd.read_csv(study.results / "tables" / "claims.csv")) == 0
    json.loads((study.results / "tables" / "summary.json").read_text())
    ledger = pd.read_csv(study.results / "tables" / "ledger.csv")
    methods = {("none", 0), ("draft", 1), ("draft", 2), ("ngram", 2), ("mtp", 1), ("lookup", 2), ("draft_dynamic", 2)}
    methods |= {("mtp2", 2)}
    trees = {("ngram_tree", 4), ("medusa1_tree", 4), ("medusa1_typical", 4)}
    assert set(ledger.engine) - {"compiled"} == {"recompute", "cached"}  # compiled: where there is a compiler
    for engine in set(ledger.engine):
        rows = ledger[ledger.engine == engine]
        assert set(zip(rows.drafter, rows.gamma, strict=True)) == methods | (set() if engine == "recompute" else trees)
    assert set(ledger.drafter[~ledger.lossless & (ledger.context_rule == "sliding")]) == {"medusa1_typical"}
    assert (ledger.tokens == 24).all() and (ledger.seeds == 2).all() and (ledger.repeats == 2).all()


def test_greedy_identity_and_prefixes_hold(study):
    greedy = pd.read_csv(study.results / "tables" / "greedy.csv")
    ledger = pd.read_csv(study.results / "tables" / "ledger.csv")
    ledger = ledger[(ledger.engine != "compiled") & (ledger.drafter != "none")]
    methods = set(zip(ledger.engine, ledger.drafter, ledger.gamma, strict=True))
    assert set(zip(greedy.engine, greedy.drafter, greedy.gamma, strict=True)) == methods and len(methods) == 2 * 7 + 3
    assert greedy.identical.all() and len(greedy) == 2 * len(methods)
    prefix = pd.read_csv(study.results / "tables" / "prefix.csv")
    assert prefix[prefix.precision == "float32"].max_abs_difference.max() < 1e-4
    assert prefix[prefix.precision == "float64"].max_abs_difference.max() < 1e-12


def test_models_have_the_chapters_sizes_apart_from_the_vocabulary(study):
    """Embedding and head grow with the vocabulary, 128 or 64 each a symbol; the chapter has 65."""
    V = len(json.loads((study.results / "corpus" / "corpus.json").read_text())["vocabulary"])
    found = pd.read_csv(study.results / "tables" / "seeds.csv").set_index(["model", "seed"])
    for seed in (1, 2):
        assert found.loc[("plain", seed), "parameters"] == 742_784 + (V - 65) * 2 * 128
        assert found.loc[("draft", seed), "parameters"] == 54_592 + (V - 65) * 2 * 64
        assert found.loc[("mtp", seed), "head_parameters"] == 214_656


def test_every_job_left_a_log_and_a_benchmark(study):
    jobs = [f"train/{model}-{seed}" for model in ("plain", "mtp", "draft") for seed in (1, 2)]
    jobs += [f"head/{head}-{seed}" for head in HEADS for seed in (1, 2)]
    jobs += [f"{stage}/{seed}" for stage in EACH_SEED for seed in (1, 2)]
    for job in [*jobs, "controls/1", "corpus", "ngram", "tables", "figures", "page", "paper"]:
        assert (study.results / "logs" / f"{job}.log").is_file(), job
        assert (study.results / "benchmarks" / f"{job}.tsv").stat().st_size > 0, job


def test_no_checkpoint_stays(study):
    assert not (study.results / "checkpoints").exists()


def test_each_result_has_its_certificate(study):
    folders = [study.results / "models" / m / s for m in ("plain", "mtp", "draft") for s in "12"]
    folders += [study.results / "heads" / head / s for head in HEADS for s in "12"]
    folders += [study.results / stage / s for stage in EACH_SEED for s in "12"]
    folders.append(study.results / "controls" / "1")
    for folder in folders:
        record = json.loads((folder / "certificate.json").read_text())
        assert len(record["settings_hash"]) == 64 and record["code_hash"] and record["versions"]["torch"]


# --- nothing runs again; what each edit does run is in test_reruns.py ---


def test_nothing_to_do_after_a_finished_run(study):
    """Found out in under 4 s of a processor, which is what it takes on a machine that does nothing else."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert study.plan() == {}
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < 4


def test_touch_reruns_nothing(study):
    for folder in (study.results, study.checkout / "report", study.checkout / "workflow", study.checkout / "config"):
        for path in folder.rglob("*"):
            if path.is_file():
                os.utime(path)
    os.utime(study.checkout / "Snakefile")
    assert study.plan() == {}


def test_lint_is_clean(study):
    done = snakemake(study.checkout, "--lint", corpus=None)
    assert done.returncode == 0, done.stdout + done.stderr


# --- the study again, damaged ---


def test_results_copied_without_snakemakes_records_are_taken_over(study, tmp_path):
    """Real certificates and sums: nothing is trained or measured, tables and report are made anew."""
    ignored = shutil.ignore_patterns(".snakemake")
    shutil.copytree(study.checkout, tmp_path / "copy", copy_function=shutil.copyfile, ignore=ignored)
    assert Study(tmp_path / "copy", study.corpus).plan() == {"tables": 1, "figures": 1, "page": 1, "paper": 1, "all": 1}


def test_the_report_names_results_of_other_settings(another):
    """Snakemake is told to look at times alone, and so doesn't see the edit; the hashes do."""
    config = write_config(another.checkout / "edited.yaml", {"training": {"draft": {"steps": 13}}})
    done = another.run("page", "--rerun-triggers", "mtime", "--forcerun", "page", config=config)
    assert done.returncode == 0, done.stdout + done.stderr
    page = (another.checkout / "report" / "tiny" / "index.html").read_text(encoding="utf-8")
    for seed in (1, 2):
        line = f"models/draft/{seed}: made with other settings than the study"
        assert line in page and line in done.stderr
    assert "models/mtp/1: made" not in page


@pytest.mark.slow
def test_the_engine_compiled_in_a_study(another):
    """All engines, compiled in earnest; without a compiler it is left out with a word."""
    changes = {"seeds": [1], "sweep": {"engines": STUDY["sweep"]["engines"]}}
    config = write_config(another.checkout / "all.yaml", changes)
    done = another.run("ledger", config=config)
    assert done.returncode == 0, done.stdout + done.stderr
    ledger = pd.read_csv(another.results / "tables" / "ledger.csv")
    engines = pd.read_csv(another.results / "tables" / "engines.csv").set_index("engine")
    assert set(ledger.engine) == set(engines.index[engines.available])
    assert engines.available["compiled"] or "sweep: engine compiled is left out: " in done.stderr


@pytest.mark.slow
def test_aggregates_take_exactly_the_configured_seeds(another):
    config = write_config(another.checkout / "one.yaml", {"seeds": [2]})
    done = another.run("results/tiny/tables/seeds.csv", config=config)
    assert done.returncode == 0, done.stdout + done.stderr
    assert set(pd.read_csv(another.results / "tables" / "seeds.csv").seed) == {2}
    assert (another.results / "sweep" / "1" / "runs.csv").is_file()


@pytest.mark.parametrize(
    ("number", "to"),
    [
        pytest.param(signal.SIGINT, "group", id="ctrl-c"),  # a terminal sends it to Snakemake and its jobs
        pytest.param(signal.SIGTERM, "snakemake", id="kill", marks=pytest.mark.slow),
        pytest.param(signal.SIGHUP, "group", id="closed", marks=pytest.mark.slow),  # and this when it is closed
        pytest.param(signal.SIGINT, "snakemake", id="int", marks=pytest.mark.slow),
    ],
)
def test_a_run_ends_soon_and_the_next_goes_on(another, number, to, ctrl_c):
    """The checkpoint is written, no job stays, no lock is left; Snakemake removes what the job declared."""
    config = write_config(another.checkout / "long.yaml", {"training": {"draft": {"steps": 800}}})
    model, log = "results/tiny/models/draft/1/model.safetensors", another.results / "logs" / "train" / "draft-1.log"
    log.unlink()
    process = another.run(model, config=config, start=partial(subprocess.Popen, start_new_session=True))
    while process.poll() is None and not (log.exists() and "training draft" in log.read_text()):
        time.sleep(0.01)
    time.sleep(0.3)
    os.killpg(process.pid, number) if to == "group" else process.send_signal(number)
    begun = time.monotonic()
    stopped = "".join(process.communicate(timeout=120))
    assert time.monotonic() - begun < 10 * max(1.0, os.getloadavg()[0] / os.cpu_count())
    assert process.returncode != 0 and re.search(r"specledger train: stopped by \w+; the checkpoint of step ", stopped)
    assert f"specledger: stopped by {signal.Signals(number).name}; the same command goes on where it was" in stopped
    with pytest.raises(ProcessLookupError):
        os.killpg(process.pid, 0)
    assert not (another.checkout / model).exists()
    done = another.run(model, config=config)
    assert done.returncode == 0 and "the training goes on after step " in done.stderr
    assert (another.checkout / model).is_file() and not (another.results / "checkpoints").exists()


def test_a_damaged_model_stops_with_one_line_and_the_log_has_the_traceback(another):
    """The shapes of trees are the first thing that is measured with it; the checks wait for them."""
    path = another.results / "models" / "draft" / "1" / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-50])
    done = another.run("results/tiny/checks/1/greedy.csv")
    assert done.returncode != 0
    said = [line for line in (done.stdout + done.stderr).splitlines() if line.startswith("specledger trees: ")]
    assert len(said) == 1 and "models/draft/1/model.safetensors: damaged" in said[0]
    assert "Traceback" not in done.stdout + done.stderr
    assert "Traceback" in (another.results / "logs" / "trees" / "1.log").read_text()
