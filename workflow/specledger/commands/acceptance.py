"""Stage `acceptance`: the acceptance rule drawn many times at real positions, of one seed."""

import numpy as np

from specledger.commands import measuring
from specledger.experiments.acceptance import choose_positions, judge, position_distributions, simulate
from specledger.foundation.progress import Progress
from specledger.foundation.records import write_json, write_rows
from specledger.sampling.distributions import Sampling
from specledger.sampling.uniforms import Uniforms

add_arguments = measuring.add_arguments


def run(options, log) -> None:
    settings, corpus, cast = measuring.begin(options)
    sampling = Sampling(**settings["sampling"])
    context = cast.target.config.context
    positions = choose_positions(len(corpus.validation), context=context, count=settings["positions"])
    rows, shown = [], []
    total = len(positions) * len(settings["drafters"])
    with Progress(f"acceptance seed {options.seed}", total, log, unit="simulation") as progress:
        for position in positions:
            tokens = corpus.validation[position - context : position].tolist()
            text, drafters = corpus.vocabulary.decode(tokens), {}
            for index, name in enumerate(settings["drafters"]):
                p_V, q_V = position_distributions(cast.target, cast.drafters[name], tokens, sampling)
                seed = (options.seed, position, index)
                simulation = simulate(p_V, q_V, draws=settings["draws"], uniforms=Uniforms(*seed))
                readings = judge(p_V, q_V, simulation, generator=np.random.default_rng(seed))
                where = {"seed": options.seed, "drafter": name, "position": position, "context": text}
                rows.append({**where, "temperature": sampling.temperature, **readings})
                drafters[name] = {
                    "p": p_V.tolist(),
                    "q": q_V.tolist(),
                    "counts": simulation.counts_V.tolist(),
                    "draws": readings["draws"],
                    "accepted": readings["accepted"],
                }
                progress.advance()
            shown.append({"position": position, "context": text, "drafters": drafters})
    write_rows(options.output / "draws.csv", rows)
    record = {"context": shown[0]["context"], "positions": shown, "symbols": list(corpus.vocabulary.symbols)}
    write_json(options.output / "position.json", record)
    measuring.certify(options, settings, cast)
