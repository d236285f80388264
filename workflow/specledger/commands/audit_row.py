"""Stage `audit-row`: one mode of one system, sampled and tested against the exact distribution."""

import json
import sys
from pathlib import Path

from specledger.audit import sampled
from specledger.audit.environments import python_of
from specledger.audit.evidence import White
from specledger.audit.exact import exact_cells
from specledger.audit.greedy_row import greedy_row
from specledger.audit.measure import Plan, measure
from specledger.audit.process import Worker
from specledger.audit.settings import SamplingSettings
from specledger.audit.workers import registry
from specledger.corpus.text import Corpus
from specledger.foundation.records import read_json, write_json


def add_arguments(parser) -> None:
    parser.add_argument("--text", type=Path, required=True)
    parser.add_argument("--record", type=Path, required=True)
    parser.add_argument(
        "--target", type=Path, nargs="+", required=True, help="files of the target's folder, or one GGUF"
    )
    parser.add_argument("--draft", type=Path, nargs="+", required=True, help="the same of the draft model")
    parser.add_argument("--environment", type=Path, nargs="*", default=[], help="installed.json of the system's")
    parser.add_argument("--tree", type=Path, nargs="*", default=[], help="what `audit-exact` wrote")
    parser.add_argument("--plain", type=Path, nargs="*", default=[], help="our target's files, for greedy rows")
    parser.add_argument("--output", type=Path, required=True)


def served(files: list[Path]) -> str:
    """A model as the system opens it: the one file, or the folder of several."""
    return str(files[0] if len(files) == 1 else files[0].parent)


def run(options, log) -> None:
    settings = json.loads(options.settings)
    row, adapter = settings["row"], registry.adapter(settings["row"]["system"])
    sampling = SamplingSettings(**settings["sampling"])
    corpus = Corpus.load(options.text, read_json(options.record), settings["start"])
    symbols = corpus.vocabulary.symbols
    prompt = sampled.prompt_ids(row["prompt"], corpus.prompt, corpus.validation)
    arguments = {"target": served(options.target), "draft": served(options.draft), "options": row["options"]}
    arguments |= {"threads": settings["threads"], "context": settings["context"]}
    python = python_of(options.environment[0].parent) if options.environment else sys.executable
    with Worker(
        row["system"],
        [python, adapter.__file__],
        arguments,
        log=options.log.with_suffix(".worker.log"),
        seconds=settings["time_limit_s"],
    ) as worker:
        if sampling.temperature == 0:
            from specledger.models.next_logits import next_logits  # PyTorch, which no other row needs

            logits = next_logits(options.plain[0].parent, settings["threads"])
            measured = greedy_row(worker, logits, corpus, sampling, row)
            write_json(options.output, measured.to_json())
            return
        if row["own_vocabulary"]:
            prompt = [token % row["own_vocabulary"] for token in prompt]
            tree = exact_cells(worker.logits, prompt, sampling, order=adapter.ORDER)
        else:
            tree = sampled.kept_tree(options.tree[0])
        measured = measure(
            [worker],
            White(tree if row["draft"] and not row["own_vocabulary"] else sampled.without_draft(tree)),
            prompt,
            sampling,
            Plan(texts=settings["texts"], level=settings["level"], family=settings["family"]),
            mode=row["mode"],
            prompt=row["prompt"],
            control=row["control"],
            decode=None if row["own_vocabulary"] else lambda ids: "".join(symbols[token] for token in ids),
            told=lambda line: log.say(f"audit: {row['system']}, {row['mode']}: {line}"),
        )
    write_json(options.output, measured.to_json())
