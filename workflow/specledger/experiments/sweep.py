"""The sweep over engines, drafters and gamma: counts and seconds of whole texts, in shuffled order."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

from specledger.decoding.counts import PHASES, Generated
from specledger.decoding.engines import Engine
from specledger.decoding.loops import autoregressive, speculative
from specledger.experiments.bundle import ModelBundle
from specledger.foundation.drafters import branched
from specledger.sampling.distributions import Sampling
from specledger.sampling.uniforms import Uniforms, stream
from specledger.statistics.intervals import t_interval

PLAIN = "none"


@dataclass(frozen=True, kw_only=True)
class Method:
    """One way to decode; plain decoding is drafter "none" at gamma 0.

    `copy` tells two runs of one method in a block apart; `clocked` False reads no clocks within the text.
    """

    engine: Engine
    drafter: str
    gamma: int
    copy: int = 0
    clocked: bool = True

    @property
    def plain(self) -> "Method":
        """Plain decoding on the same engine, which this is paired with."""
        return replace(self, drafter=PLAIN, gamma=0, copy=0, clocked=True)

    @property
    def counts(self) -> bool:
        """Is this the run that the ledger is made of, and not one that tells how well it is clocked?"""
        return self.copy == 0 and self.clocked

    def decode(
        self, bundle: ModelBundle, prompt: list[int], *, count: int, sampling: Sampling, uniforms: Uniforms
    ) -> Generated:
        shared = {"count": count, "engine": self.engine, "sampling": sampling, "uniforms": uniforms}
        if self.drafter == PLAIN:
            return autoregressive(bundle.target, prompt, clocked=self.clocked, **shared)
        drafter, target = bundle.drafter(self.drafter, self.gamma), bundle.target_of(self.drafter)
        return speculative(target, drafter, prompt, gamma=self.gamma, clocked=self.clocked, **shared)


def why_not_served(engine: Engine, drafter: str) -> str | None:
    """Why an engine doesn't serve a drafter; None where it does."""
    if branched(drafter) and not engine.branches:
        return "under the rule window each path of a tree would be cut at another place"
    return None


def serves(engine: Engine, drafter: str) -> bool:
    return why_not_served(engine, drafter) is None


def served(engine: Engine, gammas: dict[str, list[int]]) -> dict[str, list[int]]:
    """The drafters that this engine can serve, with their gammas."""
    return {name: found for name, found in gammas.items() if serves(engine, name)}


def methods_of(engines: list[Engine], gammas: dict[str, list[int]]) -> list[Method]:
    """Every method of the sweep: plain decoding and the drafters of each engine, and the runs that test the clock.

    Plain decoding stands there twice, to see what two runs of one method differ by, and once more without
    clocks; so does the n-gram at its largest gamma, whose rounds are short and full of readings.
    """
    found = []
    for engine in engines:
        found += [
            Method(engine=engine, drafter=drafter, gamma=gamma)
            for drafter, choices in ((PLAIN, [0]), *served(engine, gammas).items())
            for gamma in choices
        ]
        plain = Method(engine=engine, drafter=PLAIN, gamma=0)
        found += [replace(plain, copy=1), replace(plain, clocked=False)]
        if gammas.get("ngram"):
            found.append(Method(engine=engine, drafter="ngram", gamma=max(gammas["ngram"]), clocked=False))
    return found


def warm_up(
    bundle: ModelBundle, methods: list[Method], prompt: list[int], *, count: int, sampling: Sampling, seed: int
) -> None:
    """Decode with every method once; what must be compiled is compiled here."""
    for method in methods:
        # Long enough for every compiled call: a whole round after the first.
        tokens = max(count, 2 * method.gamma + 4)
        method.decode(bundle, prompt, count=tokens, sampling=sampling, uniforms=Uniforms("warm-up", seed))


def measure(
    bundle: ModelBundle,
    methods: list[Method],
    prompt: list[int],
    *,
    count: int,
    repeats: int,
    stop: "Stop",
    sampling: Sampling,
    seed: int,
    after_each: Callable[[], None],
    between: Callable[[int, list[Method]], None] = lambda repeat, methods: None,
) -> Iterator[tuple[Method, dict, Generated]]:
    """One row per text, and the text: each repeat decodes once with every method that is not done, in shuffled order.

    `between` is called before each repeat with its number and those methods.
    """
    shuffler, known = stream("order", seed), Known()
    for repeat in range(1, repeats + 1):
        left = known.left(methods, stop)
        if not left:
            return
        between(repeat, left)
        chosen = [methods[index] for index in shuffler.permutation(len(methods)) if methods[index] in left]
        for order, method in enumerate(chosen, start=1):
            text = method.decode(bundle, prompt, count=count, sampling=sampling, uniforms=text_uniforms(seed, repeat))
            row = {
                "seed": seed,
                "repeat": repeat,
                "order": order,
                "engine": method.engine.name,
                "context_rule": method.engine.context_rule,
                "drafter": method.drafter,
                "gamma": method.gamma,
                "tree_nodes": method.gamma if branched(method.drafter) else None,
                "copy": method.copy,
                "clocked": method.clocked,
                "temperature": sampling.temperature,
                "counted": repeat <= stop.blocks,
                **readings(text, method.gamma),
            }
            known.note(method, repeat, text)
            yield method, row, text
            after_each()


@dataclass(frozen=True, kw_only=True)
class Stop:
    """When a method has been timed often enough: after `blocks` texts, once its speed-up is known to `half_width`.

    The 95% t interval of the mean log ratio of seconds a token to plain decoding in the same block, of one seed, ends
    at most that far from its middle, as a share. The rule sees the spread of the ratios and not what they say.
    Acceptance and tokens a round are counted in the first `blocks` texts of every method, however many were timed,
    so that they are of the same texts for all methods and do not depend on the clock.
    """

    half_width: float
    blocks: int

    def reached(self, logs: list[float]) -> bool:
        if not self.half_width or len(logs) < self.blocks:
            return False
        found = t_interval(logs)
        return math.expm1((found.hi - found.lo) / 2) <= self.half_width


@dataclass(kw_only=True)
class Known:
    """Seconds a token of every text so far, by method and block."""

    per_token_s: dict[Method, dict[int, float]] = field(default_factory=dict)

    def note(self, method: Method, repeat: int, text: Generated) -> None:
        self.per_token_s.setdefault(method, {})[repeat] = text.wall_s / len(text.tokens)

    def _logs(self, method: Method, base: Method) -> list[float]:
        own, other = self.per_token_s.get(method, {}), self.per_token_s.get(base, {})
        return [math.log(own[repeat] / other[repeat]) for repeat in own.keys() & other.keys()]

    def left(self, methods: list[Method], stop: Stop) -> list[Method]:
        """The methods that are not done: what a done one is paired with goes on with its partner."""
        open_ = [
            one
            for one in methods
            if not (one.drafter == PLAIN and one.counts)
            # A run without clocks is paired with the same method's with clocks, every other with plain decoding.
            and not stop.reached(self._logs(one, replace(one, clocked=True) if not one.clocked else one.plain))
        ]
        needed = {one for each in open_ for one in (each, replace(each, copy=0, clocked=True))}
        return [one for one in methods if one in needed or (needed and one.drafter == PLAIN and one.counts)]


def text_uniforms(seed: int, repeat: int) -> Uniforms:
    """The uniforms of a block's texts: the same for all methods."""
    return Uniforms("sweep", seed, repeat)


def readings(text: Generated, gamma: int) -> dict:
    """The counts and seconds of one text, as columns; phases are empty where no clock was read."""
    other_s = text.wall_s - sum(text.phase_s.values()) if text.phase_s else None
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
        **{f"{phase}_s": text.phase_s.get(phase) for phase in PHASES},
        "other_s": other_s,
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
            "examined": done.examined,
            # Of a tree most are of nodes that nothing led to.
            "accept_probs": "" if row["tree_nodes"] else " ".join(f"{prob:.6g}" for prob in done.accept_probs),
        }
        for number, done in enumerate(text.rounds, start=1)
    ]


def token_kinds(text: Generated) -> list[tuple[int, str, int]]:
    """Each token with how it came about (accepted, sampled, resampled) and its round, from 1."""
    kinds, tokens = [], iter(text.tokens)
    for number, done in enumerate(text.rounds, start=1):
        kinds += [(next(tokens), "accepted", number) for _ in range(done.accept_len)]
        kinds.append((next(tokens), "resampled" if done.examined > done.accept_len else "sampled", number))
    return kinds
