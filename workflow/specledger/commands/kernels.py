"""Stage `kernels`: compile the engine `compiled` for this machine, or write why it can't be had."""

from pathlib import Path

from specledger.decoding.building import NotCompiled, build, compiler
from specledger.foundation.records import write_json


def add_arguments(parser) -> None:
    parser.add_argument("--output", type=Path, required=True)


def run(options, log) -> None:
    record = {"available": False, "why": None, "compiler": None, "compile_s": 0.0, "code_hash": options.code}
    try:
        path, seconds = build()
        record |= {"available": True, "compiler": compiler(), "compile_s": seconds, "library": path.name}
        log.say(f"kernels: compiled in {seconds:.1f} s")
    except NotCompiled as error:
        record["why"] = str(error)
        log.say(f"kernels: the engine compiled will be left out: {error}")
    write_json(options.output, record)
