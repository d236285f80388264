"""Stage `audit-gguf`: a model as a GGUF file, and llama.cpp asked whether it says the same as ours."""

import json
import subprocess
from pathlib import Path

import numpy as np

from specledger.audit.environments import python_of
from specledger.audit.process import Worker
from specledger.audit.workers import registry
from specledger.commands.folders import add_folder
from specledger.foundation.errors import UserError
from specledger.foundation.records import written_whole
from specledger.models.next_logits import next_logits

EXPORT = Path(registry.__file__).with_name("gguf_export.py")
LARGEST = 1e-4  # of the differences of log-probabilities
LENGTHS, EACH = (1, 2, 7, 24), 8  # prefixes that are compared


def add_arguments(parser) -> None:
    add_folder(parser, "--model", "files of a model")
    parser.add_argument("--environment", type=Path, required=True, help="installed.json of llama.cpp's")
    parser.add_argument("--output", type=Path, required=True)


def run(options, log) -> None:
    python, settings = python_of(options.environment.parent), json.loads(options.settings)
    with written_whole(options.output) as temporary:
        done = subprocess.run([python, EXPORT, options.model, temporary], capture_output=True, text=True)
        log.write(done.stdout + done.stderr)
        if done.returncode:
            raise UserError(f"{options.model}: could not be exported ({done.stderr.strip().splitlines()[-1]})")
        difference = round_trip(options.model, temporary, python, settings["threads"], options.log)
        log.say(f"audit: {options.output}: log-probabilities differ from ours by {difference:.1e} at most")
        if not difference <= LARGEST:
            raise UserError(f"{options.output}: llama.cpp's log-probabilities differ from ours by {difference:.1e}")


def round_trip(folder: Path, path: Path, python: Path, threads: int, log: Path) -> float:
    """The largest difference of log-probabilities between llama.cpp, on the file, and ours, on the folder."""
    logits, adapter, largest = next_logits(folder, threads), registry.adapter("llama.cpp"), 0.0
    arguments = {"target": str(path), "draft": "", "options": {}, "threads": threads, "context": 2 * max(LENGTHS)}
    command = [python, adapter.__file__]
    with Worker("llama.cpp", command, arguments, log=log.with_suffix(".worker.log")) as worker:
        for length in LENGTHS:
            vocabulary = logits(np.zeros((1, 1), dtype=np.int64)).shape[1]
            ids_NT = np.random.default_rng(length).integers(vocabulary, size=(EACH, length))
            # llama.cpp's end of text stands behind our vocabulary.
            theirs, ours = worker.logits(ids_NT)[:, :vocabulary], logits(ids_NT)
            largest = max(largest, float(np.abs(normalised(theirs) - normalised(ours)).max()))
    return largest


def normalised(logits_NV: np.ndarray) -> np.ndarray:
    """Logarithms of the probabilities."""
    shifted = logits_NV - logits_NV.max(axis=-1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))
