"""Find the stage's module, read its arguments, and say in one line what went wrong."""

import argparse
import importlib
import json
import sys
import traceback
from pathlib import Path

from specledger.foundation.errors import UserError
from specledger.foundation.fingerprint import entry_of
from specledger.foundation.progress import Log
from specledger.foundation.slots import check_seen, gpu_of_its_own

STAGES = (
    "corpus",
    "train",
    "train-head",
    "ngram",
    "kernels",
    "trees",
    "checks",
    "acceptance",
    "sequences",
    "controls",
    "sweep",
    "tables",
    "figures",
    "page",
    "paper",
    "compare",
    "audit-environment",
    "audit-gguf",
    "audit-exact",
    "audit-row",
    "audit-table",
    "pair-weights",
    "pair",
    "pair-page",
)
LESS = {  # what a stage needs less memory with
    "train": "a smaller training.*.batch or model.context",
    "train-head": "a smaller training.heads.batch or model.context",
    "ngram": "a smaller ngram.order or a shorter text",
    "trees": "fewer trees.texts, or smaller sweep.trees",
    "checks": "smaller models or sweep.trees",
    "acceptance": "fewer acceptance.draws, .contexts or .text_tokens",
    "sequences": "fewer sequences.texts or .tokens",
    "controls": "fewer controls.draws or .texts",
    "sweep": "a smaller sweep.tokens",
    "pair": "pair.dtype: bfloat16, or smaller pair.batches.sizes",
}
COMPUTING = frozenset(
    {"train", "train-head", "trees", "checks", "acceptance", "sequences", "controls", "sweep", "pair"}
)  # these take a GPU
AUDIT = "audit"


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="specledger", description="Run one stage of the study.")
    stages = parser.add_subparsers(dest="stage", required=True)
    asked = arguments[0] if arguments else None
    stages.add_parser(AUDIT, help="does the speculative decoding of a server or a Python file keep the distribution?")
    for name in STAGES:
        stage = stages.add_parser(name)
        if name != asked:  # only the stage that runs is imported, and with it only what it needs
            continue
        stage.add_argument("--settings", default="{}", help="the stage's slice of the configuration, as JSON")
        stage.add_argument("--code", default="", help="the fingerprint of the code, for the certificate")
        stage.add_argument("--log", type=Path, help="where to write what happens, tracebacks included")
        module = importlib.import_module(entry_of(name))
        module.add_arguments(stage)
        stage.set_defaults(run=module.run)
    return parser.parse_args(arguments)


def main(arguments: list[str]) -> int:
    """Exit code 0, or 1 after one line on the terminal and the whole traceback in the log."""
    if arguments[:1] == [AUDIT]:  # for anyone, with options and exit codes of its own
        return importlib.import_module(entry_of(AUDIT)).main(arguments[1:])
    try:
        options = parse(arguments)
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("specledger"):
            raise
        print(f"specledger: {error.name} is missing; the study wants pip install 'specledger[study]'", file=sys.stderr)
        return 1
    log, device = Log(options.log), "cpu"
    try:
        device = json.loads(options.settings)["device"] if options.stage in COMPUTING else device
        with gpu_of_its_own(device, log.say) as gpu:
            if gpu is not None:
                check_seen(gpu)
            options.run(options, log)
    except KeyboardInterrupt:
        log.tell(f"specledger {options.stage}: interrupted", traceback.format_exc())
        return 130
    except Exception as error:
        line = one_line(error, options.log, options.stage, device)
        log.tell(f"specledger {options.stage}: {line}", traceback.format_exc())
        return 1
    return 0


def one_line(error: Exception, log: Path | None, stage: str = "", device: str = "cpu") -> str:
    """The user's error as it is; any other with its kind and where its traceback lies."""
    if isinstance(error, UserError):
        return str(error)
    text = " ".join(str(error).split()) or "no message"
    if isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError" or "can't allocate memory" in text:
        wanted = text.partition(". ")[0]
        less = LESS.get(stage, "fewer seeds, texts or methods")
        return f"out of memory ({wanted}); it takes less with {less}{', or device: cpu' if device != 'cpu' else ''}"
    where = f" (traceback in {log})" if log is not None else ""
    if isinstance(error, OSError) and error.filename:
        return f"{error.filename}: {error.strerror}{where}"
    return f"{type(error).__name__}: {text}{where}"
