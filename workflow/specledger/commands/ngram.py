"""Stage `ngram`: count the training text."""

import json
import time
from pathlib import Path

from specledger.corpus.text import Corpus
from specledger.drafters.ngram import NGram
from specledger.foundation.records import hash_text, read_json, sum_of, write_json, written_whole


def add_arguments(parser) -> None:
    parser.add_argument("--text", type=Path, required=True)
    parser.add_argument("--record", type=Path, required=True)
    parser.add_argument("--output", type=Path, required=True, help="ngram.safetensors; ngram.json goes beside it")


def run(options, log) -> None:
    settings = json.loads(options.settings)
    corpus = Corpus.load(options.text, read_json(options.record))
    started = time.perf_counter()
    ngram = NGram.count(corpus.train, vocabulary=len(corpus.vocabulary), **settings)
    build_s = time.perf_counter() - started
    with written_whole(options.output) as temporary:
        ngram.save(temporary)
    started = time.perf_counter()
    loss = ngram.loss(corpus.validation)
    query_us = (time.perf_counter() - started) / len(corpus.validation) * 1e6
    write_json(
        options.output.with_name("ngram.json"),
        {
            **settings,
            "contexts": sum(len(level.contexts_C) for level in ngram.levels),
            "validation_loss": loss,
            "build_s": round(build_s, 3),
            "query_us": round(query_us, 2),
            "settings_hash": hash_text(options.settings),
            "code_hash": options.code,
            "inputs": {"text": sum_of(options.text)},
        },
    )
    log.say(f"ngram of order {ngram.order}: validation loss {loss:.4f}, built in {build_s:.2f} s")
