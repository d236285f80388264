"""Stage `sequences`: short texts through the complete decoders, held against exact laws, of one seed."""

from specledger.commands import measuring
from specledger.decoding.engines import Engine, usable
from specledger.experiments.remembered import Remembered
from specledger.experiments.sequences import Laws, sequence_rows
from specledger.experiments.sweep import serves
from specledger.foundation.drafters import CHOOSERS, SPEAKING
from specledger.foundation.progress import Progress
from specledger.foundation.records import write_rows
from specledger.sampling.distributions import Sampling

add_arguments = measuring.add_arguments


def parts_of(executed: Engine, drafters: list[str], samplings: list[Sampling]) -> list[tuple]:
    """An engine, drafters and samplings: heads and trees, which are many, by the first sampling alone."""
    names = [name for name in drafters if serves(executed, name)]
    many = [name for name in names if name not in (*SPEAKING, *CHOOSERS)]
    parts = [(executed, [name for name in names if name not in many], samplings), (executed, many, samplings[:1])]
    return [part for part in parts if part[1]]


def run(options, log) -> None:
    settings, corpus, bundle = measuring.begin(options)
    samplings = [Sampling(**sampling) for sampling in settings["samplings"]]
    engines, _ = usable(settings["engines"], bundle.target.lm_head.weight.device, log.say)
    asked = [part for executed in engines for part in parts_of(executed, settings["drafters"], samplings)]
    rows, known = [], Laws(bundle, corpus.prompt.tolist())
    size = {key: settings[key] for key in ("gamma", "texts")}
    total = sum(len(names) * len(chosen) for _, names, chosen in asked)
    with Progress(f"sequences seed {options.seed}", total, log, unit="sample") as progress:
        shared = {"count": settings["tokens"], "seed": options.seed, "after_each": progress.advance, **size}
        for executed, names, chosen in asked:
            rows += sequence_rows(known, names, chosen, Remembered(engine=executed), **shared)
    write_rows(options.output / "sequences.csv", rows)
    measuring.certify(options, settings, bundle)
