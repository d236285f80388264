"""Stage `audit-exact`: the exact distribution of the first tokens after a prompt, which audited rows share."""

import json
from pathlib import Path

from specledger.audit.exact import exact_cells
from specledger.audit.sampled import keep_tree, prompt_ids
from specledger.audit.settings import SamplingSettings
from specledger.commands.folders import add_folder
from specledger.corpus.text import Corpus
from specledger.foundation.records import read_json
from specledger.models.next_logits import next_logits


def add_arguments(parser) -> None:
    parser.add_argument("--text", type=Path, required=True)
    parser.add_argument("--record", type=Path, required=True)
    add_folder(parser, "--target", "files of the target")
    add_folder(parser, "--draft", "files of the draft model")
    parser.add_argument("--output", type=Path, required=True)


def run(options, log) -> None:
    settings = json.loads(options.settings)
    corpus = Corpus.load(options.text, read_json(options.record), settings["start"])
    tree = exact_cells(
        next_logits(options.target, settings["threads"]),
        prompt_ids(settings["prompt"], corpus.prompt, corpus.validation),
        SamplingSettings(**settings["sampling"]),
        draft_logits=next_logits(options.draft, settings["threads"]),
        order=settings["order"],
    )
    log.write(f"{tree.forwards} forward passes, {len(tree.levels[-1].probs_N)} texts of {tree.depth} tokens")
    keep_tree(options.output, tree)
