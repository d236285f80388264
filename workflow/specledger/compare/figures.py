"""The figures of a study that should carry over to another run of it, read from its tables by their columns."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby

from scipy import stats

from specledger.compare.side import Side
from specledger.foundation.drafters import SPECS, base_of

ORACLE_LIMIT, TIE = 1e-12, 1e-5  # as in the report: an exact distribution's rounding, and a tie of two logits
MODELS = ("plain", "mtp", "draft")


@dataclass(frozen=True, kw_only=True)
class Figure:
    """One figure of one side.

    Args:
        topic, quantity, engine, name, gamma, setting: what it is of; two sides have the same where these are equal.
        kind: mean (with its t interval over seeds), ratio (the same on the log scale), exact (equal or not), test (a
            p-value that the distribution is kept), none (a count that must be 0), or control.
        margin: the key of the margin that equivalence takes.
        needs: the stages, models and heads whose settings it rests on.
        n: seeds of a mean; draws or texts of a test.
    """

    topic: str
    quantity: str
    engine: str = ""
    name: str = ""
    gamma: str = ""
    setting: str = ""
    kind: str = "mean"
    margin: str = ""
    needs: tuple[str, ...] = ()
    value: float | None = None
    lo: float | None = None
    hi: float | None = None
    n: int | None = None

    @property
    def key(self) -> tuple[str, ...]:
        return self.topic, self.quantity, self.engine, self.name, self.gamma, self.setting


def _number(text: str | None) -> float | None:
    return float(text) if text not in (None, "") else None


def _spread(row: dict, column: str) -> dict:
    return {"value": _number(row[column]), **{end: _number(row.get(f"{column}_{end}")) for end in ("lo", "hi")}}


def made_of(drafter: str) -> tuple[str, ...]:
    """The models and heads that a drafter's figures rest on, the target included."""
    base = base_of(drafter)
    found = ["mtp"]
    while base in SPECS:
        spec = SPECS[base]
        if base in ("draft", "ngram") or spec.trained:
            found.append(base)
        base = spec.begins_with or (spec.uses if spec.uses != base else None)
        if base in MODELS or base == "ngram":
            found.append(base)
    return tuple(dict.fromkeys(found))


def losses(side: Side) -> Iterator[Figure]:
    for row in side.rows("models"):
        model = row["model"]
        shared = {"topic": "losses", "name": model, "needs": (model,), "n": int(row["n"]), "margin": "loss"}
        shared["kind"] = "exact" if model == "ngram" else "mean"
        for column in ("validation_loss", "validation_mtp_loss"):
            if _number(row.get(column)) is not None:
                yield Figure(quantity=column, **shared, **_spread(row, column))
    for row in side.rows("heads"):
        cells = {"name": row["head"], "needs": made_of(row["head"]), "n": int(row["n"]), "margin": "loss"}
        yield Figure(topic="losses", quantity=row["loss"], **cells, **_spread(row, "value"))


def rounds(side: Side) -> Iterator[Figure]:
    """Acceptance and tokens per round, and of times the ratios."""
    for row in side.rows("ledger"):
        if row["drafter"] == "none":
            continue
        cells = {"engine": row["engine"], "name": row["drafter"], "gamma": row["gamma"], "n": int(row["seeds"])}
        cells["needs"] = ("sweep", *made_of(row["drafter"]))
        for column, topic, margin, kind in (
            ("alpha", "acceptance", "acceptance", "mean"),
            ("tokens_per_round", "tokens per round", "tokens_per_round", "mean"),
            ("speedup", "ratios of times", "speedup", "ratio"),
        ):
            if _number(row[column]) is not None:
                yield Figure(topic=topic, quantity=column, kind=kind, margin=margin, **cells, **_spread(row, column))


def _grouped(rows: list[dict], *columns: str) -> Iterator[tuple[tuple, list[dict]]]:
    def name(row: dict) -> tuple:
        return tuple(row[column] for column in columns)

    for key, found in groupby(sorted(rows, key=name), name):
        yield key, list(found)


def _least(p_values: list[float | None]) -> float | None:
    """The least p-value after Bonferroni over those that are known."""
    known = [p for p in p_values if p is not None]
    return min(1.0, len(known) * min(known)) if known else None


def _rate_p(row: dict) -> float | None:
    """Two-sided: are as many draws accepted as Σ min(p, q) says?"""
    draws, beta = int(row["draws"]), float(row["beta"])
    spread = math.sqrt(draws * beta * (1 - beta)) if 0 < beta < 1 else 0.0
    return float(2 * stats.norm.sf(abs(int(row["accepted"]) - draws * beta) / spread)) if spread else None


def kept(side: Side) -> Iterator[Figure]:
    """Is the distribution kept: by exact enumeration, at positions, in whole decoders, and greedily?"""
    topic = "distribution kept"
    for (drafter,), rows in _grouped(side.rows("oracle"), "drafter"):
        over = sum(float(row["max_abs_deviation"]) > ORACLE_LIMIT for row in rows)
        yield Figure(topic=topic, quantity="oracle", name=drafter, kind="none", value=over, n=len(rows))
    for (drafter,), rows in _grouped(side.rows("acceptance"), "drafter"):
        cells = {"topic": topic, "name": drafter, "kind": "test", "n": sum(int(row["draws"]) for row in rows)}
        cells["needs"] = ("acceptance", *made_of(drafter))
        fits = _least([_number(row["p_value"]) for row in rows])
        yield Figure(quantity="drawn at few positions", value=fits, **cells)
        yield Figure(quantity="accepted as Σ min(p, q)", value=_least([_rate_p(row) for row in rows]), **cells)
    for row in side.rows("contexts"):
        cells = {"name": row["drafter"], "needs": ("acceptance", *made_of(row["drafter"]))}
        cells["n"] = int(row["contexts"]) * int(row["draws"])
        value = _least([_number(row["fisher_p"]), _number(row["sum_p"])])
        yield Figure(topic=topic, quantity="drawn at many positions", kind="test", value=value, **cells)
    for (engine, drafter, gamma), rows in _grouped(side.rows("sequences"), "engine", "drafter", "gamma"):
        cells = {"engine": engine, "name": drafter, "gamma": gamma, "n": sum(int(row["texts"]) for row in rows)}
        cells["needs"] = ("sequences", *made_of(drafter))
        value = _least([_number(row["p_value"]) for row in rows])
        yield Figure(topic=topic, quantity="short texts", kind="test", value=value, **cells)
    for (engine, drafter), rows in _grouped(side.rows("greedy"), "engine", "drafter"):
        apart = [row for row in rows if row["identical"] != "true"]
        faults = sum((_number(row["top2_margin"]) or math.inf) >= TIE for row in apart)
        cells = {"engine": engine, "name": drafter, "needs": ("checks", *made_of(drafter)), "n": len(rows)}
        yield Figure(topic=topic, quantity="greedy texts that part", kind="none", value=faults, **cells)


def controls(side: Side) -> Iterator[Figure]:
    """Which decoders were caught; of those that so many draws can't show there is no figure (value None)."""
    for row in side.rows("controls"):
        expected = row["expected_caught"] == "true" or row["rule"] == "correct"
        caught = float(row["caught"] == "true") if expected else None
        cells = {"name": row["drafter"], "gamma": row["gamma"], "setting": row["kind"], "n": int(row["n"])}
        quantity = "right decoder rejected" if row["rule"] == "correct" else row["rule"]
        yield Figure(topic="controls caught", quantity=quantity, kind="control", value=caught, **cells)


def figures(side: Side) -> dict[tuple[str, ...], Figure]:
    """All figures of a side by what they are of, in the order of the tables."""
    found = {}
    for topic in (losses, rounds, kept, controls):
        for figure in topic(side):
            assert figure.key not in found, f"two figures are of {figure.key}"
            found[figure.key] = figure
    return found
