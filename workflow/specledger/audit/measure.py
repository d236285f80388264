"""One audited row: texts are sampled up to a look, tested, and sampled again from a fresh seed where p is below .05."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace

import numpy as np

from specledger.audit.evidence import Evidence
from specledger.audit.greedy import Greedy, Parting
from specledger.audit.settings import ENDED, Batch, SamplingSettings, System, checked_ids, joined
from specledger.audit.shown import Shown
from specledger.statistics.families import fisher
from specledger.statistics.looks import ONE_LOOK, Looks

AGAIN_BELOW = 0.05
NEAREST = "tokens 1-2"  # the test whose detectable distance a verdict names
STRIDE = 1_000_003  # between the seeds of the looks, the arms and the second sample


@dataclass(frozen=True, kw_only=True)
class Plan:
    """How many texts, when to look, and what the run as a whole may get wrong.

    texts: at most, of each arm; family: tests of all rows of the run, over which `level` is shared;
    wanted_tv: where set, a row is done at the first look that sees such a distance in tokens 1-2.
    """

    texts: int = 3_000
    looks: Looks = field(default_factory=Looks)
    level: float = 0.01
    family: int = 1
    wanted_tv: float | None = None

    def __post_init__(self):
        if self.texts < 1:
            raise ValueError(f"texts must be at least 1, got {self.texts}")
        if not 0 < self.level < 0.5:
            raise ValueError(f"level must lie in (0, 0.5), got {self.level}")
        if self.family < 1:
            raise ValueError(f"family must be at least 1, got {self.family}")
        if self.wanted_tv is not None and not 0 < self.wanted_tv <= 1:
            raise ValueError(f"wanted_tv must lie in (0, 1], got {self.wanted_tv}")

    def test_level(self, look: int) -> float:
        """The level that a single test has at a look, after the family and the other looks have theirs."""
        return self.level * self.looks.weights[look] / self.family


@dataclass(frozen=True, kw_only=True)
class Measured:
    """All that a row needs to be judged; `first` has p-values that the looks have spent, `again` plain ones.

    control: "" or "null" (must be kept) or "lossy" (must depart). Speed: the audited arm's, then the plain arm's.
    """

    system: str
    version: str
    mode: str
    prompt: str
    settings: SamplingSettings
    n: int
    n_again: int = 0
    box: str = "white"
    first: tuple[Evidence, ...] = ()
    again: tuple[Evidence, ...] = ()
    control: str = ""
    broken: str = ""
    wanted_tv: float | None = None
    greedy: Greedy | None = None
    shown: tuple[Shown, ...] = ()
    looked: tuple[int, ...] = ()
    tokens_per_forward: float | None = None
    acceptance: float | None = None
    seconds_per_text: float | None = None
    cpu_seconds_per_text: float | None = None
    plain_seconds_per_text: float | None = None
    plain_cpu_seconds_per_text: float | None = None
    command: str = ""

    @property
    def expected(self) -> str:
        return {"null": "kept", "lossy": "departs"}.get(self.control, "")

    def to_json(self) -> dict:
        """Plain values that `from_json` reads back; a nan is null."""
        return _plain(asdict(self))

    @classmethod
    def from_json(cls, value: dict) -> "Measured":
        value = dict(value)
        value["settings"] = SamplingSettings(**value["settings"])
        for name in ("first", "again"):
            value[name] = tuple(Evidence(**_with_nan(one)) for one in value[name])
        value["shown"] = tuple(Shown(**{**one, "prefix": tuple(one["prefix"])}) for one in value["shown"])
        value["looked"] = tuple(value["looked"])
        if value["greedy"] is not None:
            partings = [Parting(**{**one, "fields": tuple(one["fields"])}) for one in value["greedy"]["partings"]]
            value["greedy"] = Greedy(**{**value["greedy"], "partings": tuple(partings)})
        return cls(**value)


def _plain(value):
    if isinstance(value, dict):
        return {key: _plain(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(one) for one in value]
    if isinstance(value, float) and np.isnan(value):
        return None
    if value == float("inf"):
        return "inf"
    return value


def _with_nan(one: dict) -> dict:
    return {**one, **{name: float("nan") for name in ("statistic", "p_value") if one[name] is None}} | (
        {"statistic": float("inf")} if one["statistic"] == "inf" else {}
    )


def measure(
    arms: Sequence[System],
    instrument,
    prompt_ids: Sequence[int],
    settings: SamplingSettings,
    plan: Plan,
    *,
    mode: str,
    prompt: str = "",
    control: str = "",
    told: Callable[[str], None] = lambda line: None,
    check: Callable[[Sequence[Batch]], str] = lambda batches: "",
    decode: Callable[[Sequence[int]], str] | None = None,
) -> Measured:
    """Sample and test one row; `arms` is the audited system, or the plain one and the audited one.

    Args:
        instrument: `evidence.White(tree)` or `evidence.Black()`; prompt: its name in tables; control: as in
        `Measured`; told: takes a line of progress; check: what is wrong with the batches themselves, such as
        texts that repeat, or "" (then nothing is tested); decode: token ids as a text, for what departs.
    """
    assert len(arms) == (1 if instrument.box == "white" else 2)
    row = Measured(
        system=arms[-1].name,
        version=arms[-1].version,
        mode=mode,
        prompt=prompt,
        settings=settings,
        n=0,
        box=instrument.box,
        control=control,
        wanted_tv=plan.wanted_tv,
    )
    draw = _Draw(arms, prompt_ids, settings, instrument, check, told)
    batches, first, looked, broken = draw.up_to(plan, lambda found, look: _clear(found, instrument, plan, look))
    row = replace(_with_speed(row, batches), n=looked[-1], looked=tuple(looked))
    if broken:
        return replace(row, broken=broken)
    row = replace(row, first=tuple(instrument.sees(one, plan.test_level(len(looked) - 1)) for one in first))
    samples = [batch.ids for batch in batches]
    if _least(first) < AGAIN_BELOW:
        told(f"p {_least(first):.2g} is below {AGAIN_BELOW:g}: sampled again from a fresh seed")
        fresh, again, sizes, broken = draw.up_to(
            _second(plan, row.n), lambda found, look: _shown_twice(first, found, plan), part=101
        )
        row = replace(row, again=again, n_again=sizes[-1], broken=broken)
        samples = [np.concatenate([one, two.ids]) for one, two in zip(samples, fresh, strict=True)]
    return replace(row, shown=tuple(_named(one, decode) for one in instrument.shown(samples)))


def _named(one: Shown, decode) -> Shown:
    if decode is None:
        return one
    token = "(end)" if one.token == ENDED else decode([one.token])
    return replace(one, prefix_text=decode(list(one.prefix)) if one.prefix else "", token_text=token)


@dataclass(frozen=True)
class _Draw:
    """Sampling and testing of one row, look by look."""

    arms: Sequence[System]
    prompt_ids: Sequence[int]
    settings: SamplingSettings
    instrument: object
    check: Callable
    told: Callable

    def up_to(self, plan: Plan, done: Callable, part: int = 1):
        """The batches of each arm up to the look that is `done`, what they say, the sizes, what is wrong with them."""
        drawn, p_values, first, looked = [[] for _ in self.arms], {}, (), []
        lead = getattr(self.instrument, "lead", 0)
        for look, size in enumerate(plan.looks.sizes(plan.texts)):
            new = size - (looked[-1] if looked else 0)
            looked.append(size)
            for place, arm in enumerate(self.arms):
                if new > 0:
                    seeded = part + look * 4 + place
                    drawn[place].append(_sampled(arm, self.prompt_ids, new, self.settings, seeded, lead))
            batches = [joined(parts) for parts in drawn]
            broken = self.check(batches)
            if broken:
                return batches, (), looked, broken
            found = self.instrument.tests([batch.ids for batch in batches])
            for one in found:
                p_values.setdefault(one.test, [float("nan")] * look).append(one.p_value)
            first = tuple(replace(one, p_value=plan.looks.spent(p_values[one.test])) for one in found)
            self.told(f"{size} of {plan.texts} texts, p {_least(first):.2g}")
            if done(first, look):
                break
        return batches, first, looked, ""


def _second(plan: Plan, n: int) -> Plan:
    """The second sample: as large as the first, and where that does not settle it as large as any may be."""
    looks = ONE_LOOK if n >= plan.texts else Looks(shares=(n / plan.texts, 1.0), weights=(0.5, 0.5))
    return replace(plan, looks=looks)


def shown_twice(one: Evidence, second: Evidence) -> float:
    """Both samples' p-values together (Fisher); 1 where the second by itself shows nothing."""
    if not (one.p_value < AGAIN_BELOW and second.p_value < AGAIN_BELOW):
        return 1.0
    return fisher([one.p_value, second.p_value])


def _shown_twice(first: Sequence[Evidence], second: Sequence[Evidence], plan: Plan) -> bool:
    again = {one.test: one for one in second}
    return any(shown_twice(one, again[one.test]) * plan.family < plan.level for one in first if one.test in again)


def _sampled(arm: System, prompt_ids, count: int, settings: SamplingSettings, part: int, lead: int) -> Batch:
    batch = arm.sample(prompt_ids, count, replace(settings, seed=(settings.seed + part * STRIDE) % 2**31))
    return replace(batch, ids=checked_ids(batch.ids, count, settings.tokens + lead, arm.name))


def _least(found: Sequence[Evidence]) -> float:
    known = [one.p_value for one in found if not np.isnan(one.p_value)]
    return min(known, default=float("nan"))


def _clear(found: Sequence[Evidence], instrument, plan: Plan, look: int) -> bool:
    """Departs beyond the level of the whole family, or sees as near as was wanted and saw nothing."""
    if _least(found) * plan.family < plan.level:
        return True
    if plan.wanted_tv is None or _least(found) < AGAIN_BELOW:
        return False
    near = [instrument.sees(one, plan.test_level(look)) for one in found if one.test == NEAREST]
    return bool(near) and near[0].detectable_tv_any is not None and near[0].detectable_tv_any <= plan.wanted_tv


def _with_speed(row: Measured, batches: Sequence[Batch]) -> Measured:
    audited = batches[-1]
    plain = batches[0] if len(batches) == 2 else None

    def each(batch: Batch | None, name: str) -> float | None:
        value = None if batch is None else getattr(batch, name)
        return None if value is None else value / len(batch.ids)

    return replace(
        row,
        tokens_per_forward=audited.tokens_per_forward(),
        acceptance=audited.acceptance(),
        seconds_per_text=each(audited, "seconds"),
        cpu_seconds_per_text=each(audited, "cpu_seconds"),
        plain_seconds_per_text=each(plain, "seconds"),
        plain_cpu_seconds_per_text=each(plain, "cpu_seconds"),
    )
