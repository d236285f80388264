"""Stage `sweep`: texts and seconds of every engine, drafter and gamma, in one process, of one seed."""

import fcntl
import os
import tempfile
from contextlib import contextmanager
from pathlib import Path

from specledger.commands import measuring
from specledger.decoding.engines import usable
from specledger.experiments.agreement import agreement_rows
from specledger.experiments.bundle import ModelBundle
from specledger.experiments.forward_costs import cost_rows, over_blocks
from specledger.experiments.sweep import (
    PLAIN,
    Method,
    Stop,
    measure,
    methods_of,
    round_rows,
    token_kinds,
    warm_up,
    why_not_served,
)
from specledger.experiments.texts import chosen_rounds
from specledger.foundation.devices import describe
from specledger.foundation.progress import Progress
from specledger.foundation.records import write_json, write_rows
from specledger.sampling.distributions import Sampling
from specledger.sampling.uniforms import Uniforms
from specledger.tables.raw import RAW

SAMPLE_TOKENS = 240
COST_PLACES = 4

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
    settings, corpus, bundle = measuring.begin(options)
    with alone_on_the_machine(log):
        engines, left_out = warm_engines(bundle, settings, corpus.prompt.tolist(), seed=options.seed, log=log)
        methods = methods_of(engines, settings["gammas"])
        texts, costs = timed(bundle, engines, methods, corpus, settings, options.seed, log)
        write(options, settings, corpus, bundle, engines, left_out, texts, costs, log)
    measuring.certify(options, settings, bundle)


def write(
    options, settings: dict, corpus, bundle: ModelBundle, engines: list, left_out: dict, texts: list, costs: list, log
) -> None:
    """Every file of the stage but its certificate."""
    output, seed, prompt, sampling = options.output, options.seed, corpus.prompt.tolist(), sampling_of(settings)
    machine = {"device": describe(bundle.target.lm_head.weight.device), "threads": settings["threads"]}
    write_rows(output / "forwards.csv", [{"seed": seed, **row, **machine} for row in costs])
    counted = [(method, row, text) for method, row, text in texts if method.counts]
    write_rows(output / "runs.csv", [{**row, **machine} for _, row, _ in texts])
    rounds = [line for _, row, text in counted if row["counted"] for line in round_rows(row, text)]
    write_rows(output / "rounds.csv", rounds)
    # Where no two engines share a rule of context, as without a compiler, there is nothing to compare.
    found = agreement_rows(bundle, counted, prompt, count=settings["tokens"], sampling=sampling)
    write_rows(output / "agreement.csv", list(found), RAW["agreement"].names)
    write_rows(output / "engines.csv", [{"seed": seed, **row} for row in engine_rows(settings, engines, left_out)])
    window = [executed for executed in engines if executed.context_rule == "window"]
    blocks = len(window) * blocks_apart(settings)
    with Progress(f"sweep seed {seed}, texts that are not timed", blocks, log, unit="block") as progress:
        told = progress.advance
        apart = [row for executed in window for row in rounds_apart(bundle, executed, prompt, settings, seed, told)]
    write_rows(output / "apart.csv", apart, RAW["apart"].names)
    write_json(output / "sample.json", sample(bundle, corpus, engines[-1], sampling, seed))


def sampling_of(settings: dict) -> Sampling:
    return Sampling(**settings["sampling"])


def timed(bundle: ModelBundle, engines: list, methods: list[Method], corpus, settings: dict, seed: int, log) -> tuple:
    """Every text of the sweep, with its method and its row, and the costs of the pieces, block by block."""
    sampling, total, repeats = sampling_of(settings), len(methods) * settings["repeats"], settings["repeats"]
    pieces: list[dict] = []

    def costs(repeat: int, left: list[Method]) -> None:
        progress.expect(progress.done + len(left) * (repeats - repeat + 1))
        reach = bundle.target.config.context
        tokens = corpus.validation[: reach * (2 + repeat % COST_PLACES)].tolist()
        for one in engines:
            gammas: dict[str, list[int]] = {}
            for method in left:
                if method.engine is one and method.drafter != PLAIN and method.counts:
                    gammas.setdefault(method.drafter, []).append(method.gamma)
            pieces.extend(cost_rows(bundle, [one], gammas, tokens, sampling=sampling))

    shared = {"count": settings["tokens"], "repeats": repeats, "sampling": sampling, "seed": seed}
    shared["stop"] = Stop(**settings["stop"])
    with Progress(f"sweep seed {seed}", total, log, unit="text") as progress:
        each = {"after_each": progress.advance, "between": costs}
        texts = list(measure(bundle, methods, corpus.prompt.tolist(), **shared, **each))
    return texts, over_blocks(pieces)


def blocks_apart(settings: dict) -> int:
    """Texts of each method that are not timed: as many as acceptance is counted in."""
    return min(settings["repeats"], settings["stop"]["blocks"])


def rounds_apart(bundle: ModelBundle, executed, prompt: list[int], settings: dict, seed: int, after_each):
    """Rounds of texts that were not timed: what the cost model predicts the timed ones of this engine from."""
    size = {"texts": blocks_apart(settings), "tokens": settings["tokens"], "sampling": sampling_of(settings)}
    return chosen_rounds(bundle, settings["gammas"], prompt, executed, seed=seed, after_each=after_each, **size)


def warm_engines(
    bundle: ModelBundle, settings: dict, prompt: list[int], *, seed: int, log
) -> tuple[list, dict[str, str]]:
    """The engines that run here, warm, and why the others don't."""
    found, left_out = usable(settings["engines"], bundle.target.lm_head.weight.device, log.say)
    warming = {"count": settings["warmup_tokens"], "sampling": sampling_of(settings), "seed": seed}
    for executed in found:
        unserved = {drafter: why_not_served(executed, drafter) for drafter in settings["gammas"]}
        for reason in dict.fromkeys(filter(None, unserved.values())):
            names = ", ".join(drafter for drafter, why_not in unserved.items() if why_not == reason)
            log.say(f"sweep: engine {executed.name} leaves out {names}: {reason}")
    warm_up(bundle, methods_of(found, settings["gammas"]), prompt, **warming)
    return found, left_out


def engine_rows(settings: dict, engines: list, left_out: dict[str, str]) -> list[dict]:
    """One row per engine that was asked for: is it there, why not, and the seconds that it compiled for."""
    compile_s = {executed.name: executed.compile_s for executed in engines}
    return [
        {
            "engine": name,
            "available": name not in left_out,
            "why": left_out.get(name),
            "compile_s": compile_s.get(name, 0.0),
        }
        for name in settings["engines"]
    ]


def sample(bundle, corpus, executed, sampling: Sampling, seed: int) -> dict:
    """A text that the target drafts for itself with its MTP module, with how each character came about."""
    prompt = corpus.prompt.tolist()
    method = Method(engine=executed, drafter="mtp", gamma=1)
    text = method.decode(bundle, prompt, count=SAMPLE_TOKENS, sampling=sampling, uniforms=Uniforms("sample", seed))
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
