"""Stage `sequences`: short texts through the complete decoders, held against exact laws, of one seed."""

from specledger.commands import measuring
from specledger.decoding.engines import engine
from specledger.experiments.remembered import Remembered
from specledger.experiments.sequences import sequence_rows
from specledger.experiments.sweep import served
from specledger.foundation.progress import Progress
from specledger.foundation.records import write_rows
from specledger.sampling.distributions import Sampling

add_arguments = measuring.add_arguments


def run(options, log) -> None:
    settings, corpus, cast = measuring.begin(options)
    samplings = [Sampling(**sampling) for sampling in settings["samplings"]]
    engines = [engine(name) for name in settings["engines"]]
    asked = {executed.name: list(served(executed, settings["drafters"])) for executed in engines}
    total = sum(map(len, asked.values())) * len(samplings)
    rows = []
    with Progress(f"sequences seed {options.seed}", total, log, unit="sample") as progress:
        for executed in engines:
            found = sequence_rows(
                cast,
                asked[executed.name],
                corpus.prompt.tolist(),
                samplings,
                Remembered(engine=executed),
                gamma=settings["gamma"],
                count=settings["tokens"],
                texts=settings["texts"],
                seed=options.seed,
                after_each=progress.advance,
            )
            rows += found
    write_rows(options.output / "sequences.csv", rows)
    measuring.certify(options, settings, cast)
