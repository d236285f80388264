"""Stage `pair`: everything that is measured of a pair of real models, in one process."""

import json
from pathlib import Path

from specledger.commands.folders import add_folder, certify
from specledger.commands.sweep import alone_on_the_machine
from specledger.foundation.devices import describe, prepare
from specledger.foundation.progress import Progress
from specledger.foundation.records import write_json, write_rows
from specledger.pair.batches import batch_rows, seconds_at, stops_paying, surface_rows
from specledger.pair.opened import MODELS, Pair, open_pair
from specledger.pair.proof import ngram_rows, places_of, rule_rows
from specledger.pair.texts import (
    PLAIN,
    POSITIONS,
    Method,
    greedy_rows,
    methods_of,
    position_rows,
    speed_rows,
    text_rows,
    time_rows,
    timed,
)
from specledger.sampling.distributions import GREEDY, Sampling

SHOWN_TOKENS = 40


def add_arguments(parser) -> None:
    parser.add_argument("--target", type=Path, required=True, help="a folder in Hugging Face layout or a GGUF file")
    add_folder(parser, "--output", "the files to write")


def run(options, log) -> None:
    settings = json.loads(options.settings)
    device = prepare(settings["device"], settings["threads"])
    pair = open_pair(settings, options.target, device)
    methods = methods_of(pair, settings["gammas"])
    output = options.output
    with alone_on_the_machine(log):
        surface = forwards(pair, settings, log)
        write_rows(output / "forwards.csv", surface)
        log.say(f"pair: about {estimate_s(pair, settings, methods, surface) / 60:.0f} minutes from here")
        one_s = seconds_at(surface, 1, 1)
        texts = decoded(pair, settings, methods, log)
        speed = speed_rows(pair, texts, lambda k: seconds_at(surface, 1, k) / one_s)
        batches = in_batches(pair, settings, speed, surface, log)
    write_rows(output / "texts.csv", text_rows(pair, texts))
    write_rows(output / "positions.csv", position_rows(pair, texts), POSITION_COLUMNS)
    write_rows(output / "speed.csv", speed)
    write_rows(output / "time.csv", time_rows(pair, texts))
    write_rows(output / "batch.csv", batches)
    write_rows(output / "stops.csv", [stops_paying(batches, name) for name in pair.drafters])
    prove(pair, settings, methods, texts, output, log)
    write_json(output / "pair.json", facts(pair, settings, options.target, texts, device))
    certify(output, options, describe(device), settings["threads"])


POSITION_COLUMNS = ["task", "drafter", "gamma", "position", "examined", "accepted", "rate"]


def forwards(pair: Pair, settings: dict, log) -> list[dict]:
    """Seconds of forward passes by positions and batch size: of the target, and of each model that drafts."""
    batches, context = settings["batches"], max(map(len, pair.tokens)) + settings["batches"]["tokens"]
    models = {name: pair.drafters[name].parts[0] for name in pair.drafters if name in MODELS}
    total = len(batches["sizes"]) * (1 + len(models))
    with Progress("pair: forward passes", total, log, unit="size") as progress:
        shared = {"sizes": batches["sizes"], "context": context, "repeats": 3, "after_each": progress.advance}
        rows = surface_rows(pair.target, positions=POSITIONS, **shared)
        for name, model in models.items():
            rows += surface_rows(model, positions=(1, 2), name=name, **shared)
    return rows


def estimate_s(pair: Pair, settings: dict, methods: list[Method], surface: list[dict]) -> float:
    """Seconds of what is left, as if every text took as long as a plain one: said before it begins."""
    batches, proof = settings["batches"], settings["proof"]
    token_s = seconds_at(surface, 1, 1)
    alone = len(pair.tokens) * settings["repeats"] * len(methods) * settings["tokens"] * token_s
    drafters = 1 + len(pair.drafters)
    together = sum(seconds_at(surface, size, 1) for size in batches["decoded"]) * batches["tokens"]
    arms = proof["texts"] / proof["batch"] * (proof["tokens"] + 2) * seconds_at(surface, proof["batch"], 2)
    rule = proof["positions"] * len(pair.drafters) * proof["draws"] * pair.target.config.vocabulary * 3e-8
    return alone + together * batches["repeats"] * drafters * 1.3 + arms * (1 + drafters) + rule


def decoded(pair: Pair, settings: dict, methods: list[Method], log) -> list:
    total = len(pair.tokens) * settings["repeats"] * len(methods)
    with Progress("pair: texts", total, log, unit="text") as progress:
        shared = {"count": settings["tokens"], "repeats": settings["repeats"], "sampling": sampling_of(settings)}
        return timed(pair, methods, after_each=progress.advance, **shared)


def sampling_of(settings: dict) -> Sampling:
    return Sampling(**settings["sampling"])


def in_batches(pair: Pair, settings: dict, speed: list[dict], surface: list[dict], log) -> list[dict]:
    """Every drafter at the gamma that was fastest over all tasks, at each batch size."""
    batches = settings["batches"]
    best = []
    for name, drafter in pair.drafters.items():
        sums = dict.fromkeys(settings["gammas"][name], 0.0)
        for row in speed:
            if row["drafter"] == name:
                sums[row["gamma"]] += row["speedup"]
        best.append((drafter, max(sums, key=sums.__getitem__)))
    total = len(batches["decoded"]) * batches["repeats"] * (1 + len(best))
    with Progress("pair: batches", total, log, unit="batch") as progress:
        return batch_rows(
            pair.target,
            best,
            pair.tokens,
            engine=pair.engine,
            sizes=batches["decoded"],
            count=batches["tokens"],
            repeats=batches["repeats"],
            sampling=sampling_of(settings),
            surface=surface,
            after_each=progress.advance,
        )


def prove(pair: Pair, settings: dict, methods: list[Method], texts: list, output: Path, log) -> None:
    """Greedy identity, the rule at real positions, and the first tokens of complete texts."""
    proof = settings["proof"]
    sampling = Sampling(temperature=proof["temperature"])
    if sampling_of(settings) != GREEDY:
        shared = {"count": settings["tokens"], "repeats": 1, "sampling": GREEDY, "after_each": lambda: None}
        texts = timed(pair, methods, **shared)
    write_rows(output / "greedy.csv", greedy_rows(pair, texts))
    plain = {one.prompt: one.found.tokens for one in texts if one.method.drafter == PLAIN}
    places = places_of(pair, count=proof["positions"], sampling=sampling, texts=plain)
    with Progress("pair: the rule", len(places), log, unit="place") as progress:
        write_rows(output / "oracle.csv", rule_rows(places, draws=proof["draws"], after_each=progress.advance))
    drafting = [Method(drafter=name, gamma=min(settings["gammas"][name])) for name in pair.drafters]
    arms = (2 + len(drafting)) * -(-proof["texts"] // proof["batch"])
    with Progress("pair: first tokens", arms, log, unit="batch") as progress:
        sizes = {"texts": proof["texts"], "tokens": proof["tokens"], "batch": proof["batch"]}
        rows = ngram_rows(pair, drafting, sampling=sampling, after_each=progress.advance, **sizes)
    write_rows(output / "ngrams.csv", rows)


def facts(pair: Pair, settings: dict, target: Path, texts: list, device) -> dict:
    """What the page says of the pair besides the tables: sizes, prompts, and one text of each task."""
    shown = []
    for task in pair.tasks:
        number = next(i for i, prompt in enumerate(pair.prompts) if prompt.task == task)
        text = next(one for one in texts if one.prompt == number and one.method.drafter == PLAIN)
        shown.append(
            {
                "task": task,
                "prompt": pair.prompts[number].text,
                "text": pair.decode(text.found.tokens[:SHOWN_TOKENS]),
            }
        )
    sizes = {name: pair.drafters[name].parts[0] for name in pair.drafters if name in MODELS}
    return {
        "target": target.name,
        "parameters": _count(pair.target),
        "layers": pair.target.config.layers,
        "vocabulary": pair.target.config.vocabulary,
        "context": pair.target.config.context,
        "drafters": {name: {"layers": m.config.layers, "parameters": _count(m)} for name, m in sizes.items()},
        "tasks": [{"task": task, "prompts": len(pair.of_task(task))} for task in pair.tasks],
        "shown": shown,
        "settings": settings,
        "device": describe(device),
    }


def _count(model) -> int:
    return sum(parameter.numel() for parameter in model.network.parameters())
