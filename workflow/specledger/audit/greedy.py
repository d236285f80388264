"""Greedy texts with and without speculation, prompt by prompt: do they part, where, and is it rounding or a fault?

At temperature 0 both texts should be one. Two forward passes of different shapes round differently, so that
two tokens of nearly equal logits may change places: the margin between them tells that from a fault.
"""

import json
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

MARGIN = 0.25  # nats: two steps of bfloat16 at logits of 16 to 32 (docs/audit.md)
ROUNDING, FAULT, UNKNOWN = "rounding", "fault", "unknown"


@dataclass(frozen=True, kw_only=True)
class GreedyText:
    """A text and, for each of its tokens, its string, log-probability and those of the likeliest tokens."""

    text: str
    top: Sequence[tuple[str, float, dict[str, float]]] | None = None


@dataclass(frozen=True, kw_only=True)
class Parting:
    """Where the texts of a prompt part: after `place` characters, `plain` against `audited`; margin in nats.

    fields: which values of a JSON output differ, as paths such as "arguments.city"; () where it is none.
    """

    prompt: int
    place: int
    plain: str
    audited: str
    margin: float | None
    kind: str
    fields: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Greedy:
    """All prompts of one comparison. `again`: how many texts of the plain arm part from its own second run."""

    n: int
    partings: tuple[Parting, ...]
    allowed_rate: float
    margin: float
    again: int | None = None

    def count(self, *kinds: str) -> int:
        return sum(one.kind in kinds for one in self.partings)

    @property
    def faults(self) -> int:
        """Partings that rounding does not explain; one whose margin is unknown counts as a fault."""
        return self.count(FAULT, UNKNOWN)

    def interval(self, level: float = 0.95):
        """The rate of faults with its exact interval."""
        from specledger.statistics.rates import clopper_pearson

        return clopper_pearson(self.faults, self.n, level)

    def fields(self) -> list[tuple[str, int]]:
        """How often each field of JSON outputs changed, the most frequent first."""
        return Counter(name for one in self.partings for name in one.fields).most_common()

    def noise_p_value(self) -> float | None:
        """That the plain arm alone parts as often from itself (Fisher's exact test); None where it ran once."""
        if self.again is None:
            return None
        from scipy import stats

        table = [[self.faults, self.n - self.faults], [self.again, self.n - self.again]]
        return float(stats.fisher_exact(table, alternative="greater").pvalue)

    def verdict(self) -> tuple[str, str]:
        """departs: surely more faults than allowed, and more than the plain arm has against itself; kept: not more."""
        rate, lower = self.faults / self.n, self.interval(0.9).lo  # one-sided .95
        noise = self.noise_p_value()
        found = f"{self.faults} of {self.n} texts part by more than rounding"
        if rate <= self.allowed_rate:
            return "kept", f"{found}; a rate above {self.interval(0.9).hi:.2g} is excluded"
        if self.again and noise is not None and noise >= 0.05:
            return "undecided", f"{found}, and {self.again} part where the plain arm runs twice"
        if lower > self.allowed_rate:
            return "departs", found
        return "undecided", f"{found}, which {self.n} prompts can't tell from the allowed rate {self.allowed_rate:g}"


MarginOf = Callable[[int, int], float | None]


def compare(
    plain: Sequence[GreedyText],
    audited: Sequence[GreedyText],
    *,
    allowed_rate: float = 0.0,
    margin: float = MARGIN,
    again: Sequence[GreedyText] | None = None,
    margin_of: MarginOf | None = None,
) -> Greedy:
    """Pair the texts of each prompt.

    Args:
        again: the plain arm's second run, for servers that are not repeatable; margin_of: (prompt, place) to
        the margin at a parting, where the log-probabilities do not come with the texts; allowed_rate: of faults.

    ValueError where they do not pair up or there are none.
    """
    if not plain or len(plain) != len(audited) or (again is not None and len(again) != len(plain)):
        raise ValueError(f"texts must pair up and not be empty, got {len(plain)} and {len(audited)}")
    if not 0 <= allowed_rate < 1:
        raise ValueError(f"allowed_rate must lie in [0, 1), got {allowed_rate}")
    if not margin >= 0:
        raise ValueError(f"margin must be at least 0, got {margin}")
    partings = []
    for number, (one, other) in enumerate(zip(plain, audited, strict=True)):
        if one.text == other.text:
            continue
        place = parting_place(one.text, other.text)
        between = margin_of(number, place) if margin_of else margin_at(one, other.text, place)
        kind = UNKNOWN if between is None else ROUNDING if between <= margin else FAULT
        partings.append(
            Parting(
                prompt=number,
                place=place,
                plain=one.text[place : place + 40],
                audited=other.text[place : place + 40],
                margin=between,
                kind=kind,
                fields=changed_fields(one.text, other.text),
            )
        )
    twice = None if again is None else sum(a.text != b.text for a, b in zip(plain, again, strict=True))
    return Greedy(n=len(plain), partings=tuple(partings), allowed_rate=allowed_rate, margin=margin, again=twice)


def parting_place(one: str, other: str) -> int:
    """How many characters two different texts share."""
    return next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


def margin_at(plain: GreedyText, audited: str, place: int) -> float | None:
    """Nats between the plain arm's token where the texts part and the other text's token there.

    The plain arm's numbers alone: under speculation a server's log-probabilities may mean something else. Where
    the other token is not among the likeliest, the margin is at least the one to the least of these.
    """
    if not plain.top:
        return None
    start = 0
    for token, logprob, likeliest in plain.top:
        if start + len(token) > place:
            rest = audited[start:]
            found = [p for name, p in likeliest.items() if name and name != token and rest.startswith(name)]
            if found:
                return logprob - max(found)
            return logprob - min(likeliest.values()) if likeliest and rest else None
        start += len(token)
    return None


def changed_fields(one: str, other: str) -> tuple[str, ...]:
    """The paths of JSON values that differ; ("not JSON",) where one of the two is JSON and the other is not."""
    values = [_json(text) for text in (one, other)]
    if values[0] is None and values[1] is None:
        return ()
    if values[0] is None or values[1] is None:
        return ("not JSON",)
    return tuple(sorted(set(_differing(values[0], values[1], ""))))


def _json(text: str):
    """The object or list that a text is, perhaps within a fence of code; None where it is neither."""
    body = text.strip().removeprefix("```json").removeprefix("```").removesuffix("```").strip()
    try:
        value = json.loads(body)
    except ValueError:
        return None
    return value if isinstance(value, (dict, list)) else None


def _differing(one, other, path: str):
    if isinstance(one, dict) and isinstance(other, dict):
        for key in one.keys() | other.keys():
            yield from _differing(one.get(key), other.get(key), f"{path}.{key}" if path else str(key))
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        for first, second in zip(one, other, strict=True):
            yield from _differing(first, second, f"{path}[]")
    elif one != other:
        yield path or "value"
