"""Stage `sweep`: texts and seconds of every engine, drafter and gamma, in one process, of one seed."""

import fcntl
import os
import tempfile
from contextlib import contextmanager
from pathlib import Path

from specledger.commands import measuring
from specledger.decoding.engines import engine
from specledger.experiments.forward_costs import cost_rows
from specledger.experiments.sweep import Method, measure, methods_of, round_rows, token_kinds
from specledger.foundation.devices import describe
from specledger.foundation.progress import Progress
from specledger.foundation.records import write_json, write_rows
from specledger.sampling.distributions import Sampling
from specledger.sampling.uniforms import Uniforms

SAMPLE_TOKENS = 240

add_arguments = measuring.add_arguments


@contextmanager
def alone_on_the_machine(log):
    """Hold the machine's timing lock: two sweeps at once would each time the other."""
    path = Path(tempfile.gettempdir()) / f"specledger-timing-{os.getuid()}.lock"
    with path.open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            log.say("sweep: another timing run holds this machine; waiting for it to end")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def run(options, log) -> None:
    settings, corpus, cast = measuring.begin(options)
    sampling = Sampling(**settings["sampling"])
    engines = [engine(name) for name in settings["engines"]]
    methods = methods_of(engines, settings["gammas"])
    prompt = corpus.prompt.tolist()
    machine = {"device": describe(cast.target.lm_head.weight.device), "threads": settings["threads"]}
    total = len(methods) * settings["repeats"]
    label = f"sweep seed {options.seed}"
    with alone_on_the_machine(log), Progress(label, total, log, unit="text") as progress:
        runs = measure(
            cast,
            methods,
            prompt,
            count=settings["tokens"],
            repeats=settings["repeats"],
            warmup=settings["warmup_tokens"],
            sampling=sampling,
            seed=options.seed,
            after_each=progress.advance,
        )
        texts, rounds = [], []
        for row, text in runs:
            texts.append({**row, **machine})
            rounds += round_rows(row, text)
        write_rows(options.output / "runs.csv", texts)
        write_rows(options.output / "rounds.csv", rounds)
        tokens = corpus.validation[: 2 * cast.target.config.context].tolist()
        costs = cost_rows(cast, engines, settings["gammas"], tokens, threads=settings["threads"])
        costs = [{"seed": options.seed, **row, **machine} for row in costs]
        write_rows(options.output / "forwards.csv", costs)
    write_json(options.output / "sample.json", sample(cast, corpus, engines[-1], sampling, options.seed))
    measuring.certify(options, settings, cast)


def sample(cast, corpus, executed, sampling: Sampling, seed: int) -> dict:
    """A text that the target drafts for itself with its MTP module, with how each character came about."""
    prompt = corpus.prompt.tolist()
    method = Method(engine=executed, drafter="mtp", gamma=1)
    text = method.decode(cast, prompt, count=SAMPLE_TOKENS, sampling=sampling, uniforms=Uniforms("sample", seed))
    return {
        "engine": executed.name,
        "drafter": "mtp",
        "gamma": 1,
        "prompt": corpus.vocabulary.decode(prompt),
        "tokens": [
            {"text": corpus.vocabulary.symbols[token], "kind": kind, "round": number}
            for token, kind, number in token_kinds(text)
        ],
    }
