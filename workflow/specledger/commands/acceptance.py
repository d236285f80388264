"""Stage `acceptance`: the acceptance rule drawn at real positions and followed along texts, of one seed."""

import numpy as np

from specledger.commands import measuring
from specledger.decoding.engines import engine
from specledger.experiments.acceptance import choose_positions, judge, simulate
from specledger.experiments.contexts import context_rows
from specledger.experiments.lossy import lossy_rows
from specledger.experiments.reference import next_logits
from specledger.experiments.shown_rounds import DRAFTER, GAMMA, ROUNDS, shown_rounds
from specledger.experiments.texts import chosen_rounds, text_rows
from specledger.foundation.drafters import TYPICAL
from specledger.foundation.progress import Progress
from specledger.foundation.records import write_json, write_rows
from specledger.sampling.distributions import Sampling, distribution
from specledger.sampling.uniforms import Uniforms, stream
from specledger.tables.raw import RAW

add_arguments = measuring.add_arguments


def run(options, log) -> None:
    settings, corpus, bundle = measuring.begin(options)
    sampling, drafters = Sampling(**settings["sampling"]), settings["drafters"]
    total = (settings["positions"] + 1) * len(drafters) + len(settings["heads"]) + 2 * settings["texts"]
    label = f"acceptance seed {options.seed}"
    with Progress(label, total, log, unit="step") as progress:
        positions(options, settings, corpus, bundle, sampling, progress)
        rounds(options, settings, corpus, bundle, sampling)
        places, contexts_CT = contexts_at(corpus, bundle, settings["contexts"], after=settings["positions"])
        if len(places) < settings["contexts"]:
            log.say(f"acceptance: the validation text has room for {len(places)} of {settings['contexts']} contexts")
        shared = {"sampling": sampling, "seed": options.seed, "after_each": progress.advance}
        found = context_rows(
            bundle,
            [*drafters, *settings["heads"]],
            contexts_CT,
            places,
            draws=settings["context_draws"],
            null_draws=settings["published_draws"],
            **shared,
        )
        write_rows(options.output / "contexts.csv", list(found))
        size = {"texts": settings["texts"], "tokens": settings["text_tokens"]}
        found = text_rows(bundle, drafters, corpus.prompt.tolist(), engine("cached"), **size, **shared)
        write_rows(options.output / "texts.csv", list(found))
        lossy = {name: sizes for name, sizes in settings["choosers"].items() if name.endswith(TYPICAL)}
        found = lossy_rows(bundle, lossy, contexts_CT, places, engine("cached"), **shared)
        write_rows(options.output / "typical.csv", list(found), RAW["typical"].names)
        choosers = settings["choosers"]
        chosen = list(chosen_rounds(bundle, choosers, corpus.prompt.tolist(), engine("cached"), **size, **shared))
        write_rows(options.output / "rounds.csv", chosen, RAW["apart"].names)
    measuring.certify(options, settings, bundle)


def contexts_at(corpus, bundle, count: int, after: int) -> tuple[list[int], np.ndarray]:
    """Positions of the validation text, and the whole contexts before them [C, T]."""
    T = bundle.target.config.context
    places = choose_positions(len(corpus.validation), context=T, count=count, after=after)
    return places, np.stack([corpus.validation[place - T : place] for place in places]).astype(np.int64)


def positions(options, settings: dict, corpus, bundle, sampling: Sampling, progress) -> None:
    """draws.csv and position.json: few positions, many draws."""
    places, contexts_CT = contexts_at(corpus, bundle, settings["positions"], after=0)
    p_CV = distribution(next_logits(bundle.target, contexts_CT), sampling)
    q = {name: distribution(next_logits(bundle.drafters[name], contexts_CT), sampling) for name in settings["drafters"]}
    rows, shown = [], []
    for index, (place, p_V) in enumerate(zip(places, p_CV, strict=True)):
        text, drafters = corpus.vocabulary.decode(contexts_CT[index].tolist()), {}
        for name, q_CV in q.items():
            key, q_V = ("positions", options.seed, place, name), q_CV[index]
            simulation = simulate(p_V, q_V, draws=settings["draws"], uniforms=Uniforms(*key))
            readings = judge(p_V, q_V, simulation, generator=stream(*key, "null"))
            where = {"seed": options.seed, "drafter": name, "position": place, "context": text}
            rows.append({**where, "temperature": sampling.temperature, **readings})
            counts = {"counts": simulation.counts_V.tolist(), **{key: readings[key] for key in ("draws", "accepted")}}
            drafters[name] = {"p": p_V.tolist(), "q": q_V.tolist(), **counts}
            progress.advance()
        shown.append({"position": place, "context": text, "drafters": drafters})
    write_rows(options.output / "draws.csv", rows)
    record = {"context": shown[0]["context"], "positions": shown, "symbols": list(corpus.vocabulary.symbols)}
    write_json(options.output / "position.json", record)


def rounds(options, settings: dict, corpus, bundle, sampling: Sampling) -> None:
    """round.json: rounds of the draft model at positions that no simulation used."""
    places, contexts_CT = contexts_at(corpus, bundle, ROUNDS, after=settings["positions"])
    executed = engine("cached")
    found = shown_rounds(bundle, contexts_CT, places, executed, sampling=sampling, seed=options.seed)
    record = {"drafter": DRAFTER, "gamma": GAMMA, "engine": executed.name, "temperature": sampling.temperature}
    record |= {"symbols": list(corpus.vocabulary.symbols), "rounds": list(found)}
    write_json(options.output / "round.json", record)
