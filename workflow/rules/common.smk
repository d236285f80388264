# What the rules share. The checked configuration, folders, and what makes a job run again.
import json
import os
import sys

import yaml

from specledger.analysis.adoption import settle
from specledger.corpus.source import from_file, sha256
from specledger.corpus.text import check_usable, decode_utf8
from specledger.foundation import config as configuration
from specledger.foundation import drafters, duration, stages
from specledger.foundation.devices import resolve
from specledger.foundation.errors import UserError
from specledger.foundation.fingerprint import code_hash
from specledger.foundation.records import hash_text

# Every stage calls `python`, the one that runs Snakemake, in an activated environment or not.
os.environ.update(PATH=os.pathsep.join((os.path.dirname(sys.executable), *os.get_exec_path())))
ENVIRONMENT = "../envs/specledger.yaml"
WORKFLOW = Path(workflow.basedir) / "workflow"


# An executor of other machines counts nodes and has no cores (a dry run for it one); before each of its jobs the
# Snakefile is read once more, there.
ELSEWHERE = workflow.remote_exec or (
    workflow.resource_settings.nodes is not None and (workflow.resource_settings.cores or 1) == 1
)


def prepared():
    """The corpus file (or None), its sum, and whether a GPU is used; UserError before any job starts."""
    configuration.validate(config)
    device = config["device"] if ELSEWHERE else resolve(config["device"])
    if ELSEWHERE and device == "auto":
        raise UserError("config device: auto — the jobs run on other machines; allowed: cpu, cuda")
    path = os.environ.get("SPECLEDGER_CORPUS") or config["corpus"]["path"]
    for folder in (RESULTS, REPORT):
        there = next(p for p in (folder.absolute(), *folder.absolute().parents) if p.exists())
        if not os.access(there, os.W_OK):
            raise UserError(f"{there}: not writable; run in a folder of yours, or with snakemake --directory FOLDER")
    if path is None:
        return path, config["corpus"]["download"]["sha256"], device.startswith("cuda")
    raw = from_file(Path(path), config["corpus"]["sha256"])
    check_usable(
        decode_utf8(raw, path),
        name=path,
        context=config["model"]["context"],
        validation_fraction=config["corpus"]["validation_fraction"],
        prompt=config["corpus"]["prompt"],
        positions=config["acceptance"]["positions"] + 1,
    )
    return path, sha256(raw), device.startswith("cuda")


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
GPU = 1 if ON_GPU else 0  # a job on the CPU asks for no GPU, so that --resources gpu=1 doesn't queue it


def settings(stage, model=None):
    """The slice of the configuration that a stage depends on, as one string: no order, no swaps."""
    return stages.stage_settings(config, stage, model=model, corpus_identity=CORPUS_SHA256)


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


def word_about_time():
    """Say before the first job what runs where and, without a GPU, about how long it takes."""
    if ON_GPU:
        print(f"specledger: study '{STUDY}' with {len(SEEDS)} seed(s) on CUDA")
        return
    hours = duration.training_hours(config)
    about = f"{hours * 60:.0f} minutes" if hours < 1.5 else f"{hours:.0f} hours"
    print(
        f"specledger: study '{STUDY}' with {len(SEEDS)} seed(s) on the CPU: training takes about {about} "
        "of one core, and decoding comes on top; a CUDA device is used where there is one (device: auto)"
    )


wildcard_constraints:
    model="plain|mtp|draft",
    head="|".join(drafters.HEADS),
    seed="[0-9]+",
