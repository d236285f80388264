"""The sweep over engines, drafters and gamma: counts and seconds of whole texts, in shuffled order."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from specledger.decoding.counts import Generated
from specledger.decoding.engines import Engine
from specledger.decoding.loops import autoregressive, speculative
from specledger.experiments.cast import Cast
from specledger.sampling.distributions import Sampling
from specledger.sampling.uniforms import Uniforms, stream

PLAIN = "none"


@dataclass(frozen=True, kw_only=True)
class Method:
    """One way to decode; plain decoding is drafter "none" at gamma 0."""

    engine: Engine
    drafter: str
    gamma: int

    def decode(self, cast: Cast, prompt: list[int], *, count: int, sampling: Sampling, uniforms: Uniforms) -> Generated:
        if self.drafter == PLAIN:
            return autoregressive(
                cast.target, prompt, count=count, engine=self.engine, sampling=sampling, uniforms=uniforms
            )
        return speculative(
            cast.target,
            cast.drafters[self.drafter],
            prompt,
            gamma=self.gamma,
            count=count,
            engine=self.engine,
            sampling=sampling,
            uniforms=uniforms,
        )


def methods_of(engines: list[Engine], gammas: dict[str, list[int]]) -> list[Method]:
    """Every method of the sweep, plain decoding of each engine included."""
    return [
        Method(engine=engine, drafter=drafter, gamma=gamma)
        for engine in engines
        for drafter, choices in ((PLAIN, [0]), *gammas.items())
        for gamma in choices
    ]


def measure(
    cast: Cast,
    methods: list[Method],
    prompt: list[int],
    *,
    count: int,
    repeats: int,
    warmup: int,
    sampling: Sampling,
    seed: int,
    after_each: Callable[[], None],
) -> Iterator[tuple[dict, Generated]]:
    """One row per text, and the text: each repeat decodes with every method once, in an order of its own."""
    for method in methods:
        method.decode(cast, prompt, count=warmup, sampling=sampling, uniforms=Uniforms("warm-up", seed))
    shuffler = stream("order", seed)
    for repeat in range(1, repeats + 1):
        for order, index in enumerate(shuffler.permutation(len(methods)), start=1):
            method = methods[index]
            text = method.decode(cast, prompt, count=count, sampling=sampling, uniforms=Uniforms("sweep", seed, repeat))
            row = {
                "seed": seed,
                "repeat": repeat,
                "order": order,
                "engine": method.engine.name,
                "context_rule": method.engine.context_rule,
                "drafter": method.drafter,
                "gamma": method.gamma,
                "temperature": sampling.temperature,
                **readings(text, method.gamma),
            }
            yield row, text
            after_each()


def readings(text: Generated, gamma: int) -> dict:
    """The counts and seconds of one text, as columns."""
    return {
        "rounds": len(text.rounds),
        "target_forwards": text.target_forwards,
        "draft_forwards": text.draft_forwards,
        "tokens": len(text.tokens),
        "drafted": text.drafted,
        "examined": text.examined,
        "accepted": text.accepted,
        "full_rounds": sum(r.accept_len == gamma for r in text.rounds) if gamma else 0,
        "wall_s": text.wall_s,
        **{f"{phase}_s": seconds for phase, seconds in text.phase_s.items()},
        "other_s": text.wall_s - sum(text.phase_s.values()),
    }


def round_rows(row: dict, text: Generated) -> list[dict]:
    """One row per round of a speculative text: what was drafted and accepted, and each min(1, p/q)."""
    if row["drafter"] == PLAIN:
        return []
    where = {key: row[key] for key in ("seed", "repeat", "engine", "drafter", "gamma")}
    return [
        {
            **where,
            "round": number,
            "drafted": done.drafted,
            "accept_len": done.accept_len,
            "accept_probs": " ".join(f"{prob:.6g}" for prob in done.accept_probs),
        }
        for number, done in enumerate(text.rounds, start=1)
    ]


def token_kinds(text: Generated) -> list[tuple[int, str, int]]:
    """Each token with how it came about (accepted, sampled, resampled) and its round, from 1."""
    kinds, tokens = [], iter(text.tokens)
    for number, done in enumerate(text.rounds, start=1):
        kinds += [(next(tokens), "accepted", number) for _ in range(done.accept_len)]
        kinds.append((next(tokens), "sampled" if done.accept_len == done.drafted else "resampled", number))
    return kinds
