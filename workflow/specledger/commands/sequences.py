"""Stage `sequences`: short texts through the complete decoders, held against exact laws, of one seed."""

from specledger.commands import measuring
from specledger.decoding.engines import engine
from specledger.experiments.exact_laws import ExactLaws
from specledger.experiments.reference import Reference, alphabet, tree_logits
from specledger.experiments.remembered import Remembered
from specledger.experiments.sequences import sequence_rows
from specledger.foundation.progress import Progress
from specledger.foundation.records import write_rows
from specledger.sampling.distributions import Sampling

DEPTH = 2  # pairs and triples are tested

add_arguments = measuring.add_arguments


def run(options, log) -> None:
    settings, corpus, cast = measuring.begin(options)
    prompt = corpus.prompt.tolist()
    reference = Reference(cast=cast)
    symbols_K = alphabet(cast.target, prompt)
    tree = tree_logits(cast.target, prompt, DEPTH, symbols_K)
    exacts = [ExactLaws.of(tree, symbols_K, Sampling(**sampling)) for sampling in settings["samplings"]]
    rows = []
    total = len(settings["engines"]) * len(settings["drafters"]) * len(exacts)
    with Progress(f"sequences seed {options.seed}", total, log, unit="sample") as progress:
        for name in settings["engines"]:
            found = sequence_rows(
                reference,
                settings["drafters"],
                prompt,
                exacts,
                Remembered(engine=engine(name)),
                gamma=settings["gamma"],
                count=settings["tokens"],
                texts=settings["texts"],
                seed=options.seed,
                after_each=progress.advance,
            )
            rows += found
    write_rows(options.output / "sequences.csv", rows)
    measuring.certify(options, settings, cast)
