"""The published readings, read strictly from config/claims.yaml and judged by rules fixed beforehand."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import numpy as np
import pandas as pd
import yaml

from specledger.analysis import rules
from specledger.analysis.measures import SAMPLED, Evidence, Measured, parameters_of
from specledger.analysis.measures_rule import MEASURES
from specledger.foundation.errors import UserError
from specledger.tables.registry import TABLES

T = TypeVar("T")
REQUIRED = {"id", "title", "section", "group", "source", "published", "unit", "rule", "comparable", "trained"}
OPTIONAL = {"measure", "note"}
CHOICES = {"side": ("above", "below")}
GROUPS = ("identity", "correctness", "measurement", "quoted")


@dataclass(frozen=True, kw_only=True)
class Claim:
    """One published reading: where it stands, what decides, what we measure, what is comparable.

    `comparable` is None where it is, else the reason why not; `trained` says that it needs models
    trained to the end, so that a quick run cannot judge it.
    """

    id: str
    title: str
    section: int
    group: str
    source: str
    published: float | list[float] | str
    unit: str
    rule: dict
    trained: bool
    comparable: str | None
    measure: dict | None = None
    note: str = ""


def check_keys(given: object, required: set[str], optional: set[str], where: str) -> None:
    if not isinstance(given, dict):
        raise UserError(f"{where}: expected a mapping, got {given!r}")
    unknown = sorted(str(key) for key in given if key not in required | optional)
    if unknown:
        raise UserError(f"{where}: unknown key {unknown[0]}; allowed are {', '.join(sorted(required | optional))}")
    missing = sorted(required - set(given))
    if missing:
        raise UserError(f"{where}: key {missing[0]} is missing")


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and bool(np.isfinite(value))


def check_rule(entry: dict, where: str) -> None:
    rule = entry["rule"]
    if not isinstance(rule, dict) or rule.get("kind") not in rules.PARAMETERS:
        raise UserError(f"{where}.rule.kind: must be one of {', '.join(rules.PARAMETERS)}, got {rule!r}")
    check_keys(rule, rules.PARAMETERS[rule["kind"]] | {"kind"}, {"needs"}, f"{where}.rule")
    for key, value in rule.items():
        if key == "needs":
            _check_needs(value, entry, f"{where}.rule.needs")
            continue
        if key in CHOICES and value not in CHOICES[key]:
            raise UserError(f"{where}.rule.{key}: must be one of {', '.join(CHOICES[key])}, got {value!r}")
        if key not in CHOICES and key != "kind" and not _is_number(value):
            raise UserError(f"{where}.rule.{key}: must be a number, got {value!r}")
    if rule["kind"] == "equal_within" and not _is_number(entry["published"]):
        raise UserError(f"{where}.published: must be a number for equal_within, got {entry['published']!r}")
    if (rule["kind"] == "not_comparable") != isinstance(entry["comparable"], str):
        raise UserError(f"{where}.comparable: must be a reason where the rule is not_comparable, else true")


def _check_needs(needs: object, entry: dict, where: str) -> None:
    """The least sample of a rule, each part of which the quantity that it judges must tell."""
    quantity = (entry.get("measure") or {}).get("quantity")
    told = SAMPLED.get(quantity, frozenset())
    check_keys(needs, set(), set(told), where)
    for name, least in needs.items():
        if isinstance(least, bool) or not isinstance(least, int) or least < 1:
            raise UserError(f"{where}.{name}: must be a whole number of at least 1, got {least!r}")


def check_measure(entry: dict, where: str) -> None:
    given = entry.get("measure")
    if given is None:
        if entry["rule"]["kind"] != "not_comparable":
            raise UserError(f"{where}.measure: is missing; only a reading that is not comparable may lack it")
        return
    if not isinstance(given, dict) or given.get("quantity") not in MEASURES:
        raise UserError(f"{where}.measure.quantity: must be one of {', '.join(sorted(MEASURES))}, got {given!r}")
    allowed, required = parameters_of(given["quantity"])
    check_keys(given, required | {"quantity"}, allowed, f"{where}.measure")


def _check_values(entry: dict, where: str) -> None:
    for key in ("id", "title", "source", "unit"):
        if not isinstance(entry[key], str):
            raise UserError(f"{where}.{key}: must be text, got {entry[key]!r}")
    if entry["section"] not in (1, 2, 3, 4, 5) or isinstance(entry["section"], bool):
        raise UserError(f"{where}.section: must be 1, 2, 3, 4 or 5, got {entry['section']!r}")
    if entry["group"] not in GROUPS:
        raise UserError(f"{where}.group: must be one of {', '.join(GROUPS)}, got {entry['group']!r}")
    if not isinstance(entry["trained"], bool):
        raise UserError(f"{where}.trained: must be true or false, got {entry['trained']!r}")
    if entry["comparable"] is not True and not isinstance(entry["comparable"], str):
        raise UserError(f"{where}.comparable: must be true or the reason why not, got {entry['comparable']!r}")
    published = entry["published"]
    pair = isinstance(published, list) and len(published) == 2 and all(map(_is_number, published))
    if not (_is_number(published) or isinstance(published, str) or pair):
        raise UserError(f"{where}.published: must be a number, two numbers or text, got {published!r}")
    if not isinstance(entry.get("note", ""), str):
        raise UserError(f"{where}.note: must be text, got {entry['note']!r}")


def parse_claim(entry: object, where: str) -> Claim:
    """One entry of the file, checked; UserError names the key, the value and what is allowed."""
    check_keys(entry, REQUIRED, OPTIONAL, where)
    _check_values(entry, where)
    check_rule(entry, where)
    check_measure(entry, where)
    reason = entry["comparable"] if isinstance(entry["comparable"], str) else None
    return Claim(**{**entry, "comparable": reason})


def read_file(path: Path) -> dict[str, list]:
    """The lists of config/claims.yaml, `claims` and perhaps `systems`; UserError in one line if it is none."""
    try:
        content = yaml.safe_load(Path(path).read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise UserError(f"{path}: file is missing") from error
    except yaml.YAMLError as error:
        raise UserError(f"{path}: not YAML ({' '.join(str(error).split())})") from error
    check_keys(content, {"claims"}, {"systems"}, str(path))
    for key, entries in content.items():
        if not isinstance(entries, list):
            raise UserError(f"{path}: {key} must be a list")
    return content


def parse_all(path: Path, key: str, parse: Callable[[object, str], T]) -> list[T]:
    """The entries of one list, each checked by `parse`, whose ids are all different."""
    found = []
    for place, entry in enumerate(read_file(path)[key], start=1):
        name = entry.get("id", place) if isinstance(entry, dict) else place
        found.append(parse(entry, f"{path}: {key}[{name}]"))
    ids = [one.id for one in found]
    twice = sorted({one for one in ids if ids.count(one) > 1})
    if twice:
        raise UserError(f"{path}: id {twice[0]} appears twice")
    return found


def read_claims(path: Path) -> list[Claim]:
    """All readings of config/claims.yaml, in its order; UserError in one line for anything unknown."""
    return parse_all(path, "claims", parse_claim)


def parameter(readings: list[Claim], quantity: str, name: str) -> float | None:
    """A parameter of the first reading that is measured by `quantity`; None where there is no such reading."""
    measures = [claim.measure for claim in readings if claim.measure and claim.measure["quantity"] == quantity]
    return measures[0].get(name) if measures else None


def take(claim: Claim, evidence: Evidence) -> Measured | None:
    """Our number for a claim; None where this study does not measure it (a gamma it does not sweep)."""
    if claim.measure is None:
        return None
    arguments = {key: value for key, value in claim.measure.items() if key != "quantity"}
    return MEASURES[claim.measure["quantity"]](evidence, **arguments)


def _unmeasured(claim: Claim) -> rules.Verdict:
    """Why there is no number of ours: most often a gamma that the sweep leaves out."""
    if "gamma" in (claim.measure or {}):
        reason, key = f"gamma {claim.measure['gamma']} is not in this study's sweep", "no_gamma"
    else:
        reason, key = "nothing could be tested or measured in this study", "unmeasured"
    return rules.Verdict(verdict=rules.INCONCLUSIVE, reason=reason, key=key)


UNTRAINED = rules.Verdict(
    verdict=rules.INCONCLUSIVE,
    reason="a quick run trains for few steps, and this needs models trained to the end",
    key="quick",
)


def decide(claim: Claim, measured: Measured | None, *, quick: bool) -> rules.Verdict:
    """The verdict of a claim and the reason for it."""
    if claim.comparable is not None:
        return rules.Verdict(verdict=rules.NOT_COMPARABLE, reason=claim.comparable, key="not_comparable")
    if measured is None:
        return _unmeasured(claim)
    if quick and claim.trained:
        return UNTRAINED
    return rules.judge(claim.rule, claim.published, measured)


def _sentence(claim: Claim, measured: Measured | None, verdict: rules.Verdict) -> str:
    if measured is None:
        return verdict.reason[:1].upper() + verdict.reason[1:] + "."
    ends = f"interval {measured.interval}"
    if measured.lo is not None:
        ends = f"{rules.number(measured.lo)} to {rules.number(measured.hi)}; {measured.interval}"
    elif measured.exact:
        ends = measured.interval
    text = f"Ours is {rules.number(measured.value)} ({ends}): {verdict.reason}"
    return f"{text}; {claim.note}." if claim.note else f"{text}."


def _published(value: float | list[float] | str) -> str:
    if isinstance(value, list):
        return " to ".join(map(rules.written, value))
    return value if isinstance(value, str) else rules.written(value)


def judge_all(readings: list[Claim], evidence: Evidence, *, quick: bool) -> pd.DataFrame:
    """The table claims.csv: one row a reading, in the file's order; no reading, no row."""
    rows = []
    for claim in readings:
        measured = take(claim, evidence)
        verdict = decide(claim, measured, quick=quick)
        cells = (measured.value, measured.lo, measured.hi) if measured else (None, None, None)
        rows.append(
            {
                "claim": claim.id,
                "group": claim.group,
                "title": claim.title,
                "section": claim.section,
                "source": claim.source,
                "published": _published(claim.published),
                "unit": claim.unit,
                "rule": rules.describe(claim.rule, claim.published),
                **dict(zip(("measured", "lo", "hi"), cells, strict=True)),
                "interval": measured.interval if measured else None,
                "verdict": verdict.verdict,
                "reason": verdict.key,
                "note": claim.comparable or claim.note or None,
                "why": _sentence(claim, measured, verdict),
            }
        )
    return pd.DataFrame(rows, columns=TABLES["claims"].computed)
