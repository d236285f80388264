"""The rules that judge a published reading, each fixed beforehand and applied to our interval."""

import math
from dataclasses import dataclass

from specledger.analysis.measures import Measured

REPRODUCED, NOT_REPRODUCED = "reproduced", "not reproduced"
INCONCLUSIVE, NOT_COMPARABLE = "inconclusive", "not comparable"

# For each kind the parameters that it takes, all of them required.
PARAMETERS: dict[str, set[str]] = {
    "equal_within": {"tolerance"},
    "at_most": {"limit"},
    "at_least": {"limit"},
    "inside_interval": {"low", "high"},
    "ordering": {"side", "of"},
    "interval_contains": {"value", "max_width"},
    "all_identical": set(),
    "not_comparable": set(),
}


# What a rule may need of the sample behind our number; with less it tells nothing, neither way.
SAMPLES: dict[str, str] = {
    "draws": "draws a position",
    "published_draws": "draws whose chance spread is worked out",
    "tokens": "tokens a text",
}


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """The verdict in words, the reason as a clause that follows our number, and its key in the report's texts."""

    verdict: str
    reason: str
    key: str


def number(value: float) -> str:
    """A measured number: four significant digits, more where a whole number has them."""
    return f"{value:.0f}" if float(value).is_integer() and abs(value) < 1e15 else f"{value:.4g}"


def written(value: float) -> str:
    """A number of the claims file as it is written there: a rule is not rounded."""
    return f"{value:.10g}"


def region(rule: dict, published: object) -> tuple[float, float]:
    """The values, ends included, that satisfy a rule."""
    kind = rule["kind"]
    if kind == "equal_within":
        return published - rule["tolerance"], published + rule["tolerance"]
    if kind == "at_most":
        return -math.inf, rule["limit"]
    if kind == "at_least":
        return rule["limit"], math.inf
    if kind == "inside_interval":
        return rule["low"], rule["high"]
    if kind == "all_identical":
        return 1.0, 1.0
    assert kind == "ordering", kind
    # Strictly on its side: a tie is no order.
    if rule["side"] == "above":
        return math.nextafter(rule["of"], math.inf), math.inf
    return -math.inf, math.nextafter(rule["of"], -math.inf)


def describe(rule: dict, published: object) -> str:
    """The rule in words, for a table's cell."""
    kind = rule["kind"]
    if kind == "equal_within":
        return f"equal to {written(published)} within {written(rule['tolerance'])}"
    if kind in ("at_most", "at_least"):
        return f"{kind.replace('_', ' ')} {written(rule['limit'])}"
    if kind == "inside_interval":
        return f"between {written(rule['low'])} and {written(rule['high'])}"
    if kind == "interval_contains":
        return f"interval contains {written(rule['value'])} and is at most {written(rule['max_width'])} wide"
    if kind == "ordering":
        return f"{rule['side']} {written(rule['of'])}"
    return {"all_identical": "all identical", "not_comparable": "none: not comparable"}[kind]


def _contains(rule: dict, measured: Measured) -> Verdict:
    width = measured.hi - measured.lo
    if width > rule["max_width"]:
        return Verdict(
            verdict=INCONCLUSIVE,
            reason=f"the interval is {number(width)} wide, more than the {written(rule['max_width'])} that would tell",
            key="too_wide",
        )
    inside = measured.lo <= rule["value"] <= measured.hi
    word = "contains" if inside else "does not contain"
    return Verdict(
        verdict=REPRODUCED if inside else NOT_REPRODUCED,
        reason=f"the interval {word} {written(rule['value'])}",
        key="contains" if inside else "lacks",
    )


def _too_few(rule: dict, measured: Measured) -> Verdict | None:
    """Inconclusive where our sample is smaller than the one that the rule was fixed for."""
    for name, least in rule.get("needs", {}).items():
        if measured.sample[name] < least:
            reason = f"it rests on {measured.sample[name]:,} {SAMPLES[name]}, and the rule needs {least:,}"
            return Verdict(verdict=INCONCLUSIVE, reason=reason, key="sample")
    return None


def judge(rule: dict, published: object, measured: Measured) -> Verdict:
    """Reproduced if the whole interval satisfies the rule, not reproduced if all of it violates it.

    An exact number is judged as it stands; a sampled one without an interval is inconclusive, and so is each that
    rests on a smaller sample than the rule needs.
    """
    if (few := _too_few(rule, measured)) is not None:
        return few
    if not measured.exact and measured.lo is None:
        return Verdict(verdict=INCONCLUSIVE, reason="one seed gives no interval", key="single")
    if rule["kind"] == "interval_contains":
        return _contains(rule, measured)
    low, high = region(rule, published)
    lo, hi = (measured.value, measured.value) if measured.exact else (measured.lo, measured.hi)
    what, form = ("the number", "exact") if measured.exact else ("the whole interval", "whole")
    words = describe(rule, published)
    if low <= lo and hi <= high:
        return Verdict(verdict=REPRODUCED, reason=f"{what} satisfies the rule ({words})", key=f"{form}_inside")
    if hi < low or lo > high:
        return Verdict(verdict=NOT_REPRODUCED, reason=f"{what} violates the rule ({words})", key=f"{form}_outside")
    return Verdict(verdict=INCONCLUSIVE, reason=f"only a part of the interval satisfies the rule ({words})", key="part")
