"""Stage `trees`: how often siblings are accepted, and the best tree of each size, of one seed."""

from specledger.commands import measuring
from specledger.decoding.engines import engine
from specledger.experiments.shapes import rank_rows, shape_rows
from specledger.foundation.drafters import base_of
from specledger.foundation.progress import Progress
from specledger.foundation.records import write_rows
from specledger.sampling.distributions import Sampling
from specledger.tables.raw import RAW

add_arguments = measuring.add_arguments


def run(options, log) -> None:
    settings, corpus, bundle = measuring.begin(options)
    names = sorted({base_of(name) for name in settings["sizes"]})
    with Progress(f"trees seed {options.seed}", len(names), log, unit="drafter") as progress:
        ranks = list(
            rank_rows(
                bundle,
                names,
                corpus.prompt.tolist(),
                engine("cached"),
                texts=settings["texts"],
                tokens=settings["tokens"],
                sampling=Sampling(**settings["sampling"]),
                seed=options.seed,
                after_each=progress.advance,
            )
        )
    write_rows(options.output / "ranks.csv", ranks, RAW["ranks"].names)
    shapes = shape_rows(bundle, ranks, settings["sizes"], seed=options.seed)
    write_rows(options.output / "shapes.csv", shapes, RAW["shapes"].names)
    measuring.certify(options, settings, bundle)
