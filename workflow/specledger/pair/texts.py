"""Texts of every prompt by every method, timed side by side, and what is told from them.

A block is one prompt with plain decoding and every method, in shuffled order, so that a ratio of seconds compares what
ran in the same minute. Shapes: V vocabulary.
"""

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch

from specledger.decoding.counts import PHASES, Generated
from specledger.decoding.loops import autoregressive, speculative
from specledger.drafters.lookup import LookupProposer
from specledger.models.arrays import to_host
from specledger.pair.opened import MODELS, Pair
from specledger.sampling.distributions import Sampling
from specledger.sampling.uniforms import Uniforms, stream
from specledger.statistics.paired import paired_log_interval
from specledger.statistics.rates import cluster_t
from specledger.theory.speculation import best_of, expected_tokens_per_round, measured_cost_speedup

PLAIN = "none"
POSITIONS = (1, 2, 3, 5, 9, 17)  # of a timed forward pass
PREDICTED_GAMMAS = range(1, 17)
FLOOR = 1e-4  # logits nearer than this are never told from rounding


@dataclass(frozen=True, kw_only=True)
class Method:
    """A drafter with its gamma; plain decoding is `none` with 0."""

    drafter: str
    gamma: int


@dataclass(kw_only=True)
class Text:
    """One decoded text: which prompt, in which repeat, by which method."""

    prompt: int
    repeat: int
    method: Method
    found: Generated = field(repr=False)


def methods_of(pair: Pair, gammas: dict[str, list[int]]) -> list[Method]:
    """Plain decoding and every drafter at every gamma."""
    named = [Method(drafter=name, gamma=gamma) for name in pair.drafters for gamma in gammas[name]]
    return [Method(drafter=PLAIN, gamma=0), *named]


def decode(pair: Pair, method: Method, prompt: list[int], *, count: int, sampling: Sampling, key: tuple) -> Generated:
    """One text by one method."""
    shared = {"count": count, "engine": pair.engine, "sampling": sampling, "uniforms": Uniforms(*key)}
    if method.drafter == PLAIN:
        return autoregressive(pair.target, prompt, **shared)
    return speculative(pair.target, pair.drafters[method.drafter], prompt, gamma=method.gamma, **shared)


def timed(
    pair: Pair,
    methods: Sequence[Method],
    *,
    count: int,
    repeats: int,
    sampling: Sampling,
    after_each: Callable[[], None],
) -> list[Text]:
    """Every text, block by block; one text a method is decoded before, so that nothing is met for the first time."""
    shared = {"sampling": sampling}
    for method in methods:
        decode(pair, method, pair.tokens[0], count=4, key=("warm-up",), **shared)
    found = []
    for repeat in range(repeats):
        for number, prompt in enumerate(pair.tokens):
            order = stream("pair-order", repeat, number).permutation(len(methods))
            for place in order:
                method = methods[place]
                key = ("pair", repeat, number, method.drafter, method.gamma)
                made = decode(pair, method, prompt, count=count, key=key, **shared)
                found.append(Text(prompt=number, repeat=repeat, method=method, found=made))
                after_each()
    return found


def text_rows(pair: Pair, texts: Sequence[Text]) -> list[dict]:
    """texts.csv: one row a text."""
    return [
        {
            "task": pair.prompts[one.prompt].task,
            "prompt": one.prompt,
            "repeat": one.repeat,
            "drafter": one.method.drafter,
            "gamma": one.method.gamma,
            "tokens": len(one.found.tokens),
            "rounds": len(one.found.rounds),
            "drafted": one.found.drafted,
            "examined": one.found.examined,
            "accepted": one.found.accepted,
            "draft_forwards": one.found.draft_forwards,
            "wall_s": one.found.wall_s,
            **{f"{phase}_s": one.found.phase_s.get(phase, 0.0) for phase in PHASES},
        }
        for one in texts
    ]


def _by_method(pair: Pair, texts: Sequence[Text]) -> dict[tuple[str, Method], list[Text]]:
    found = defaultdict(list)
    for one in texts:
        found[pair.prompts[one.prompt].task, one.method].append(one)
    return found


def position_rows(pair: Pair, texts: Sequence[Text]) -> list[dict]:
    """positions.csv: how many draft tokens were judged at each position of a round, and how many were accepted."""
    rows = []
    for (task, method), those in _by_method(pair, texts).items():
        rounds = [one for text in those for one in text.found.rounds]
        for position in range(1, method.gamma + 1):
            examined = sum(one.drafted >= position and one.accept_len >= position - 1 for one in rounds)
            accepted = sum(one.accept_len >= position for one in rounds)
            rows.append(
                {
                    "task": task,
                    "drafter": method.drafter,
                    "gamma": method.gamma,
                    "position": position,
                    "examined": examined,
                    "accepted": accepted,
                    "rate": accepted / examined if examined else None,
                }
            )
    return rows


def speed_rows(pair: Pair, texts: Sequence[Text], ratio: Callable[[float], float]) -> list[dict]:
    """speed.csv: of each task and method acceptance, tokens per round, and the speed-up, predicted and found.

    Args:
        ratio: v(k), seconds of a forward pass over k positions over those of one.

    The second of one position is that of the plain texts, which ran in turns with the others.
    `predicted` is eq. (1) with every cost measured, `predicted_rounds` takes the rounds as they were counted instead.
    """
    found, rows = _by_method(pair, texts), []
    walls = {(one.prompt, one.repeat): one.found.wall_s for one in texts if one.method.drafter == PLAIN}
    plain = [one.found for one in texts if one.method.drafter == PLAIN]
    plain_s = sum(one.phase_s["verify"] for one in plain) / sum(len(one.tokens) for one in plain)
    plain_tokens = {one.prompt: one.found.tokens for one in texts if one.method.drafter == PLAIN}
    for (task, method), those in found.items():
        if method.drafter == PLAIN:
            continue
        speed = paired_log_interval([[np.log(walls[t.prompt, t.repeat] / t.found.wall_s) for t in those]])
        made = [one.found for one in those]
        rounds, tokens = sum(len(one.rounds) for one in made), sum(len(one.tokens) for one in made)
        examined, forwards = sum(one.examined for one in made), sum(one.draft_forwards for one in made)
        alpha = _alpha(made) if examined else None
        phases = {phase: sum(one.phase_s.get(phase, 0.0) for one in made) for phase in PHASES}
        draft_s = phases["draft"] / max(forwards, 1) if method.drafter in MODELS or forwards else 0.0
        overhead_s = (phases["accept"] + phases["sync"] + (0 if forwards else phases["draft"])) / rounds
        cost = {"plain_s": plain_s, "draft_s": draft_s, "overhead_s": overhead_s, "ratio": ratio}
        counted_s = sum(ratio(r.drafted + 1) * plain_s + r.draft_forwards * draft_s for one in made for r in one.rounds)
        rate = alpha.mean if alpha else 0.0
        if method.drafter == "lookup":
            alike = [plain_tokens[t.prompt] for t in those if t.repeat == 0]
            prompts = [pair.tokens[t.prompt] for t in those if t.repeat == 0]
            table = replayed(pair.drafters["lookup"].parts, prompts, alike, **cost)
        else:
            table = {gamma: _predicted(rate, gamma, **cost) for gamma in PREDICTED_GAMMAS}
        rows.append(
            {
                "task": task,
                "drafter": method.drafter,
                "gamma": method.gamma,
                "prompts": len({one.prompt for one in those}),
                "speedup": speed.mean,
                "speedup_lo": speed.lo,
                "speedup_hi": speed.hi,
                "predicted": table.get(method.gamma, _predicted(rate, method.gamma, **cost)),
                "predicted_rounds": tokens * plain_s / (counted_s + rounds * overhead_s),
                "best_gamma_predicted": best_of(table),
                "alpha": alpha.mean if alpha else None,
                "alpha_lo": alpha.lo if alpha else None,
                "alpha_hi": alpha.hi if alpha else None,
                "tokens_per_round": tokens / rounds,
                "eq1": expected_tokens_per_round(min(rate, 1.0), method.gamma),
                "drafted_per_round": sum(one.drafted for one in made) / rounds,
                "c": draft_s / plain_s,
                "v": ratio(method.gamma + 1),
            }
        )
    return rows


def _alpha(made: Sequence[Generated]):
    return cluster_t([one.accepted for one in made], [one.examined for one in made])


def _predicted(alpha: float, gamma: int, *, plain_s: float, draft_s: float, overhead_s: float, ratio) -> float:
    return measured_cost_speedup(
        tokens_per_round=expected_tokens_per_round(min(max(alpha, 0.0), 1.0), gamma),
        plain_s=plain_s,
        verify_s=ratio(gamma + 1) * plain_s,
        draft_s=draft_s,
        gamma=gamma,
        overhead_s=overhead_s,
    )


def replayed(parts, prompts, texts, *, plain_s: float, draft_s: float, overhead_s: float, ratio) -> dict[int, float]:
    """The speed-up by gamma of prompt lookup along plain texts, in which what it would find is known."""
    found = {}
    for gamma in PREDICTED_GAMMAS:
        seconds, tokens = 0.0, 0
        for prompt, text in zip(prompts, texts, strict=True):
            proposer = LookupProposer(*parts, engine=_NoEngine, sampling=None, capacity=0)
            at = 0
            while at < len(text):
                room = min(gamma, len(text) - at - 1)
                drafted = proposer.follow([*prompt, *text[:at]])[:room]
                same = 0
                while same < len(drafted) and drafted[same] == text[at + same]:
                    same += 1
                seconds += ratio(len(drafted) + 1) * plain_s + overhead_s
                at += same + 1
            tokens += len(text)
        found[gamma] = tokens * plain_s / seconds
    return found


class _NoEngine:
    context_rule = "sliding"


def time_rows(pair: Pair, texts: Sequence[Text]) -> list[dict]:
    """time.csv: of each drafter and gamma the share of the seconds that each phase took."""
    rows, found = [], defaultdict(list)
    for one in texts:
        found[one.method].append(one.found)
    for method, made in found.items():
        wall_s = sum(one.wall_s for one in made)
        shares = {phase: sum(one.phase_s.get(phase, 0.0) for one in made) / wall_s for phase in PHASES}
        rows.append(
            {
                "drafter": method.drafter,
                "gamma": method.gamma,
                "ms_per_token": 1000 * wall_s / sum(len(one.tokens) for one in made),
                **shares,
                "rest": 1 - sum(shares.values()),
            }
        )
    return rows


@torch.inference_mode()
def greedy_rows(pair: Pair, texts: Sequence[Text]) -> list[dict]:
    """greedy.csv: does each text equal the plain one of its prompt; if not, how near were the two tokens there?

    `noise` is how far apart logits of the same token come out of forward passes of different shapes at that place: a
    margin within a few times of it is rounding, and one beyond is a fault.
    """
    plain = {one.prompt: one.found.tokens for one in texts if one.method.drafter == PLAIN and one.repeat == 0}
    rows = []
    for one in texts:
        if one.method.drafter == PLAIN or one.repeat:
            continue
        theirs, ours = plain[one.prompt], one.found.tokens
        place = next((i for i, (a, b) in enumerate(zip(theirs, ours, strict=True)) if a != b), None)
        row = {
            "task": pair.prompts[one.prompt].task,
            "prompt": one.prompt,
            "drafter": one.method.drafter,
            "gamma": one.method.gamma,
            "tokens": len(ours),
            "place": place,
            "margin": None,
            "noise": None,
            "kind": "same",
        }
        if place is not None:
            before = [*pair.tokens[one.prompt], *theirs[:place]]
            margin, noise = _at_parting(pair, before, theirs[place:], ours[place], one.method.gamma)
            kind = "rounding" if margin <= max(FLOOR, 4 * noise) else "fault"
            row |= {"margin": margin, "noise": noise, "kind": kind}
        rows.append(row)
    return rows


def _at_parting(pair: Pair, before: list[int], after: list[int], other: int, gamma: int) -> tuple[float, float]:
    """How much larger the plain token's logit is than the other's, and how far logits differ by the pass's shape."""
    session = pair.engine.open(pair.target, len(before) + gamma + 1)
    whole_V = to_host(session.forward(before, rows=1).logits_TV)[0]
    session.rollback(len(before) - 1)
    alone_V = to_host(session.forward(before, rows=1).logits_TV)[0]
    session.rollback(len(before) - 1)
    following = (after * gamma)[:gamma]
    several_V = to_host(session.forward([*before, *following], rows=gamma + 1).logits_TV)[0]
    session.rollback(0)
    noise = max(np.abs(alone_V - whole_V).max(), np.abs(alone_V - several_V).max())
    return float(abs(alone_V[after[0]] - alone_V[other])), float(noise)
