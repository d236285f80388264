# What the rules share. The checked configuration, folders, and what makes a job run again.
import contextlib
import json
import os
import sys
import time
from functools import cache

import yaml

from specledger.analysis.adoption import settle
from specledger.corpus import source
from specledger.corpus.text import check_fits, check_usable, decode_utf8
from specledger.foundation import config as configuration
from specledger.foundation import drafters, duration, ending, fingerprint, stages, view
from specledger.foundation.devices import resolve
from specledger.foundation.ending import end_jobs_on_signals
from specledger.foundation.errors import UserError
from specledger.foundation.records import hash_text
from specledger.foundation.view import written_since
from specledger.tables import registry

# Every stage calls `python`, the one that runs Snakemake, in an activated environment or not.
os.environ.update(PATH=os.pathsep.join((os.path.dirname(sys.executable), *os.get_exec_path())))
ENVIRONMENT = "../envs/specledger.yaml"
WORKFLOW = Path(workflow.basedir) / "workflow"
code_hash = cache(fingerprint.code_hash)  # several rules ask for the same one


# An executor of other machines counts nodes and has no cores (a dry run for it one); before each of its jobs the
# Snakefile is read once more, there.
ELSEWHERE = workflow.remote_exec or (
    workflow.resource_settings.nodes is not None and (workflow.resource_settings.cores or 1) == 1
)


def prepared():
    """The corpus file (or None), its sum, and whether a GPU is used; UserError before any job starts."""
    if set("{}") & set(str(workflow.basedir)):
        raise UserError(f"{workflow.basedir}: Snakemake reads braces as names to fill in; move the clone below another")
    for path in workflow.configfiles:
        configuration.check_file(path)
    configuration.validate(config)
    device = config["device"] if ELSEWHERE else resolve(config["device"])
    if ELSEWHERE and device == "auto":
        raise UserError("config device: auto — the jobs run on other machines; allowed: cpu, cuda")
    path = os.environ.get("SPECLEDGER_CORPUS") or config["corpus"]["path"]
    for folder in (RESULTS, REPORT):
        configuration.check_place(folder)
    asked = configuration.asked_of_text(config)
    if path is None:
        found = config["corpus"]["download"]["sha256"]
        if found == source.TINY_SHAKESPEARE:
            check_fits(source.TINY_CHARACTERS, source.TINY_SYMBOLS, name="tiny shakespeare", **asked)
        return path, found, device.startswith("cuda")
    raw = source.from_file(Path(path), config["corpus"]["sha256"])
    check_usable(decode_utf8(raw, path), name=path, **asked)
    return path, source.sha256(raw), device.startswith("cuda")


STUDY = str(config.get("study"))
RESULTS = Path("results") / STUDY
REPORT = Path("report") if STUDY == "study" else Path("report") / STUDY
LOGS = RESULTS / "logs"
BENCHMARKS = RESULTS / "benchmarks"
MODELS = RESULTS / "models"
try:
    CORPUS_PATH, CORPUS_SHA256, ON_GPU = prepared()
except UserError as error:
    sys.exit(f"specledger: {error}")

HEADS = drafters.heads_of(config)
TREES = drafters.trees_of(config)
SEEDS = [int(seed) for seed in config["seeds"]]
# Jobs of one core that run side by side.
AT_ONCE = max((workflow.resource_settings.cores or 1) // config["threads"], 1)
GPU = 1 if ON_GPU else 0  # a job on the CPU asks for no GPU, so that --resources gpu=1 doesn't queue it


def settings(stage, model=None):
    """The slice of the configuration that a stage depends on, as one string: no order, no swaps."""
    return stages.stage_settings(config, stage, model=model, corpus_identity=CORPUS_SHA256)


@cache
def expected():
    """What the certificate of each stage must say, as JSON, so that the report can name what is stale."""
    made = [("corpus", None), ("ngram", None), *(("train", m) for m in ("plain", "mtp", "draft"))]
    made += [("head", name) for name in HEADS]
    measuring = ["checks", "acceptance", "sequences", "controls", "sweep", *(["trees"] if TREES else [])]
    made += [(stage, None) for stage in measuring]
    return json.dumps(
        {
            model
            or stage: {
                "settings_hash": hash_text(settings(stage, model)),
                "code_hash": code_hash("train-head" if stage == "head" else stage),
            }
            for stage, model in made
        },
        sort_keys=True,
    )


if workflow.is_main_process:
    try:
        STALE = settle(RESULTS, SEEDS, json.loads(expected()))
    except OSError as error:
        sys.exit(f"specledger: {error.filename}: {error.strerror}; results that were copied here must be writable")
    if STALE:
        print(f"specledger: {', '.join(STALE)}: copied here, not of this study's making, made anew", file=sys.stderr)


def model_files(model):
    """The files of a trained model, with the wildcard {seed} left in."""
    return [MODELS / model / "{seed}" / name for name in ("config.json", "model.safetensors", "heads.safetensors")]


def head_files(head):
    """The files of a trained head, with the wildcard {seed} left in."""
    return [RESULTS / "heads" / head / "{seed}" / "heads.safetensors"]


def files_of_first(head, seed):
    """The files of the head that another one's training begins with; none for most."""
    first = drafters.SPECS[head].begins_with
    return [str(path).format(seed=seed) for path in head_files(first)] if first else []


def meaning_of(path):
    """A hash of what a YAML file says, whatever its comments and its format."""
    try:
        return hash_text(json.dumps(yaml.safe_load(path.read_text(encoding="utf-8")), sort_keys=True, default=str))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        sys.exit(f"specledger: {path}: {' '.join(str(error).split())}; a readable YAML file is needed")


def templates(*patterns):
    """What a report is made of besides code; a caption or an editor's backup is not."""
    return tuple(path for pattern in patterns for path in (WORKFLOW / "report").rglob(pattern))


def results_folder(wildcards, input):
    """The folder of the study's results, which holds the corpus record two levels down."""
    return str(Path(input.record).parents[1])


STARTED = time.time()


def say(line):
    """A line to the user; a terminal that was closed is no error."""
    with contextlib.suppress(OSError):
        print(f"specledger: {line}", flush=True)


def word_about_time():
    """What runs where and, without a GPU, about how long the trainings take, and what that assumes."""
    about = f"study '{STUDY}' with {len(SEEDS)} seed(s)"
    if ON_GPU:
        return f"{about} on CUDA"
    return f"{about} on the CPU: {duration.in_words(config, AT_ONCE)}"


def show_the_run():
    """Tell the view of the run, where Snakemake has one, which jobs there are and how long such jobs took before."""
    if view.current is None:
        return
    run = view.Run(AT_ONCE)
    for job in workflow.dag.needrun_jobs():
        if job.output:
            past_s = past_seconds(Path(job.benchmark)) if job.benchmark else None
            named = {"past_s": past_s, "alone": job.rule.name == "sweep_of_seed"}
            found = view.Job.of(job.rule.name, job.wildcards_dict, **named)
            if found.past_s is None and not ON_GPU:
                found.past_s = duration.training_s(config, found.kind.split()[-1])
            run.jobs[workflow.dag.jobid(job)] = found
    view.current.begin(run)


def past_seconds(benchmark):
    """How long this job took when it ran last, or else one of its kind did."""
    kind = benchmark.name.rpartition("-")[0]
    same = [path for path in benchmark.parent.glob("*.tsv") if path.name.rpartition("-")[0] == kind]
    found = [view.seconds_in(path) for path in (benchmark, *same)]
    return next((seconds for seconds in found if seconds is not None), None)


def how_it_ended():
    if ending.asked():
        return f"stopped by {ending.asked()}; the same command goes on where it was"
    return f"a stage failed; its line is above, its whole log in {RESULTS / 'logs'}"


wildcard_constraints:
    model="plain|mtp|draft",
    head="|".join(drafters.HEADS),
    seed="[0-9]+",
