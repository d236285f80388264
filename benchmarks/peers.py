"""Our decoding beside Hugging Face transformers' `generate`, on the same weights, in one run.

Both sides get the study's prompt, tokens, temperature 1, threads and device. A pilot looks for each method's
fastest settings; the chosen ones are then measured afresh, in shuffled blocks. Writes peers.csv,
pilot.csv and certificate.json into results/<study>/peers/.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

import common
import numpy as np
import torch
from common import Study, median, paired_ratio, say, shuffled_blocks, spread
from specledger.commands.sweep import alone_on_the_machine
from specledger.decoding.engines import engine
from specledger.experiments.bundle import ModelBundle, load_bundle
from specledger.experiments.sweep import PLAIN, Method, methods_of
from specledger.foundation.devices import describe, prepare, synchronize
from specledger.foundation.errors import UserError
from specledger.foundation.fingerprint import code_hash
from specledger.foundation.progress import Log
from specledger.foundation.records import certificate, write_json, write_rows
from specledger.sampling.distributions import Sampling
from specledger.sampling.uniforms import Uniforms

PILOT_BLOCKS = 2
WARMUP_TOKENS = 20
LIKE_FOR_LIKE = ("draft", "lookup")  # drafters that both sides have


@dataclass(frozen=True, kw_only=True)
class Ours:
    """One of our methods, in the shape of theirs."""

    way: Method
    bundle: ModelBundle
    seed: int
    program: str = "specledger"

    @property
    def engine(self) -> str:
        return self.way.engine.name

    @property
    def method(self) -> str:
        return "plain" if self.drafter == PLAIN else "speculative"

    @property
    def drafter(self) -> str:
        return self.way.drafter

    @property
    def gamma(self) -> int:
        return self.way.gamma

    @property
    def how(self) -> str:
        return f"engine {self.engine}, rule {self.way.engine.context_rule}"

    def decode(self, prompt: list[int], count: int, block: int) -> int:
        uniforms = Uniforms("peers", self.seed, block)
        text = self.way.decode(self.bundle, prompt, count=count, sampling=Sampling(), uniforms=uniforms)
        return len(text.tokens)


def load_ours(study: Study, device: torch.device, prompt: list[int]) -> list[Ours]:
    """Every method of the study's sweep whose drafter is there and whose engine runs on this machine."""
    models, config = study.results / "models", study.config
    more = {"drafting": config["drafting"]} if "drafting" in config else {}
    bundle = load_bundle(
        mtp=models / "mtp" / str(study.seed),
        draft=models / "draft" / str(study.seed),
        ngram=study.results / "ngram" / "ngram.safetensors",
        device=device,
        **more,
    )
    gammas = {name: choices for name, choices in config["sweep"]["gammas"].items() if name in bundle.drafters}
    found = []
    for name in config["sweep"]["engines"]:
        ways = [
            Ours(way=way, bundle=bundle, seed=study.seed) for way in methods_of([engine(name)], gammas) if way.counts
        ]
        try:
            ways[0].decode(prompt, 1, 0)
        except UserError as why:  # such as no compiler for an engine that needs one
            say(f"peers: engine {name} is left out: {why}")
            continue
        found += ways
    return found


class Stopwatch:
    """Seconds of one text of `count` tokens; the same clock for both sides."""

    def __init__(self, prompt: list[int], count: int, device: torch.device):
        self.prompt, self.count, self.device = prompt, count, device

    def of(self, count: int) -> "Stopwatch":
        return Stopwatch(self.prompt, count, self.device)

    def __call__(self, method, block: int) -> float:
        synchronize(self.device)
        started = time.perf_counter()
        tokens = method.decode(self.prompt, self.count, block)
        synchronize(self.device)
        seconds = time.perf_counter() - started
        if tokens != self.count:
            raise UserError(f"{method.program} {method.method}: {tokens} tokens came instead of {self.count}")
        return seconds


def kinds(method) -> list[tuple]:
    """Among what a method may be the fastest: all of its program, engine and name, and those with its drafter."""
    kind = (method.program, method.engine, method.method)
    return [kind, *([(*kind, method.drafter)] if method.drafter in LIKE_FOR_LIKE else [])]


def pilot(methods: Sequence, watch: Stopwatch) -> tuple[list, list[dict]]:
    """The fastest of each kind, and what each method took."""
    watch = watch.of(max(2, watch.count // 3))
    for method in methods:
        watch.of(min(WARMUP_TOKENS, watch.count))(method, 0)  # what is compiled is compiled here
    times = shuffled_blocks(methods, PILOT_BLOCKS, watch, seed=1)
    rows = [
        {**columns(method), "tokens": watch.count, "seconds": float(np.median(seconds))}
        for method, seconds in zip(methods, times, strict=True)
    ]
    fastest: dict[tuple, int] = {}
    for index in sorted(range(len(methods)), key=lambda index: rows[index]["seconds"]):
        for kind in kinds(methods[index]):
            fastest.setdefault(kind, index)
    return [methods[index] for index in sorted(set(fastest.values()))], rows


def columns(method) -> dict:
    names = ("program", "engine", "method", "drafter", "gamma")
    return {name: getattr(method, name) for name in names} | {"settings": method.how}


def fastest_of_ours(methods: Sequence, times: list[list[float]], **like) -> int | None:
    """The index of our fastest method whose fields are as in `like`; None where there is none."""
    fitting = [
        index
        for index, method in enumerate(methods)
        if method.program == "specledger" and all(getattr(method, name) == value for name, value in like.items())
    ]
    return min(fitting, key=lambda index: np.median(times[index]), default=None)


def rows_of(methods: Sequence, times: list[list[float]], count: int, machine: dict) -> list[dict]:
    """One row a method; theirs with their seconds over ours: of our fastest, and of our fastest with that drafter."""
    rows = []
    for method, seconds in zip(methods, times, strict=True):
        middle = median(seconds)
        row = {**columns(method), "tokens": count, "repeats": len(seconds), **spread("seconds", middle)}
        row["tokens_per_s"] = count / middle[0]
        fastest = {"ours": None, "same_drafter": None}
        if method.program != "specledger":
            fastest["ours"] = fastest_of_ours(
                methods, times, method="plain" if method.drafter == PLAIN else "speculative"
            )
            fastest["same_drafter"] = fastest_of_ours(methods, times, drafter=method.drafter)
        for name, index in fastest.items():
            ratio = (None, None, None) if index is None else paired_ratio(seconds, times[index])
            row |= {name: None if index is None else label(methods[index]), **spread(f"ratio_to_{name}", ratio)}
        rows.append(row | {"interval": common.METHOD, **machine})
    return rows


def label(method) -> str:
    drafter = "" if method.drafter == PLAIN else f" {method.drafter}, γ = {method.gamma}"
    return f"{method.engine} {method.method}{drafter}"


def main(given: list[str]) -> None:
    parser = common.arguments(__doc__.splitlines()[0], blocks=10)
    parser.add_argument("--tokens", type=int, help="length of a text; the study's sweep.tokens if left out")
    options = parser.parse_args(given)
    study = Study.of(options)
    import theirs  # says in one line that transformers is missing

    threads, count = study.config["threads"], options.tokens or study.config["sweep"]["tokens"]
    device = prepare(study.config["device"], threads)
    corpus, models = study.corpus(), study.results / "models"
    target, draft = (models / name / str(study.seed) for name in ("mtp", "draft"))
    prompt, context = corpus.prompt.tolist(), study.config["model"]["context"]
    methods = load_ours(study, device, prompt)
    text = corpus.validation[: 3 * context].tolist()
    logits = {folder.parent.name: theirs.furthest_logits(folder, text, device) for folder in (target, draft)}
    watch, positions = Stopwatch(prompt, count, device), len(prompt) + count
    say(f"peers: {count} tokens a text, {options.blocks} blocks, {describe(device)}, {threads} thread(s)")
    with alone_on_the_machine(Log(None)):
        generating, tried_first = pilot(theirs.generating(target, device, positions), watch)
        gammas = study.config["sweep"]["gammas"]["draft"]
        methods += theirs.speculating(generating[0], draft, gammas, device, positions)
        chosen, tried = pilot(methods, watch)
        chosen += generating
        times = shuffled_blocks(chosen, options.blocks, watch)
    machine = {
        "device": describe(device),
        "threads": threads,
        "versions": f"transformers {metadata.version('transformers')}, torch {torch.__version__}",
    }
    rows = rows_of(chosen, times, count, machine)
    write(
        study,
        rows,
        tried_first + tried,
        chosen,
        times,
        {"tokens": count, "blocks": options.blocks, "logits": logits},
        machine,
    )
    for row in rows:
        ratio = f", {row['ratio_to_ours']:.2f} times as long as our {row['ours']}" if row["ours"] else ""
        what = f"{row['program']} {row['engine']} {row['method']} {row['drafter']} {row['gamma']}"
        say(f"peers: {what}: {row['seconds']:.3f} s [{row['seconds_lo']:.3f}, {row['seconds_hi']:.3f}]{ratio}")
    say(f"peers: {common.what_next(options)}")


def write(study: Study, rows, tried, chosen, times, facts: dict, machine: dict) -> None:
    """The table, the pilot's, every single time, and the certificate."""
    folder: Path = study.results / "peers"
    write_rows(folder / "peers.csv", rows)
    write_rows(folder / "pilot.csv", tried)
    single = [
        {**columns(method), "block": block, "seconds": second}
        for method, seconds in zip(chosen, times, strict=True)
        for block, second in enumerate(seconds, start=1)
    ]
    write_rows(folder / "runs.csv", single)
    record = certificate(
        stage="peers",
        settings=study.settings(**facts, temperature=1.0),
        code=code_hash("sweep", tuple(Path(__file__).parent.glob("*.py"))),
        inputs=study.weights(),
        device=machine["device"],
        threads=machine["threads"],
    )
    record["versions"]["transformers"] = metadata.version("transformers")
    write_json(folder / "certificate.json", record)


if __name__ == "__main__":
    common.one_line("peers", main)
