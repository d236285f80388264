"""From the raw files of the configured seeds to the tables that the report reads."""

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from specledger.analysis import (
    claims,
    costs,
    engines,
    evidence,
    heads,
    ledger,
    noise,
    raw,
    systems,
    timing,
    trees,
)
from specledger.analysis.acceptance import acceptance_tables
from specledger.analysis.best_gamma import best_gamma_table
from specledger.analysis.cost_model import cost_model_summary, cost_model_table
from specledger.analysis.differences import differences_table, equivalence_summary
from specledger.analysis.frames import columns_of, ordered
from specledger.analysis.gap import gap_table
from specledger.analysis.measures import Evidence
from specledger.analysis.summary import summarise, validation_losses
from specledger.analysis.waterfall import waterfall_table
from specledger.foundation.errors import UserError
from specledger.foundation.records import write_table
from specledger.statistics.intervals import t_interval
from specledger.tables.registry import TABLES

SETTINGS = ["parameters", "head_parameters", "steps", "batch", "learning_rate"]


def seeds_table(training: pd.DataFrame) -> pd.DataFrame:
    """One row per seed and model: sizes, the step kept, losses in nats a character, training speed."""
    table = training.assign(tokens_per_s=training["tokens"] / training["train_s"].where(training["train_s"] > 0))
    return table.sort_values(["seed", "model"])[TABLES["seeds"].computed]


def _model_row(training: pd.DataFrame, model: str) -> dict:
    rows = training[training["model"] == model]
    for key in SETTINGS:
        if rows[key].nunique() > 1:
            seen = ", ".join(str(value) for value in sorted(rows[key].unique()))
            raise UserError(f"models/{model}: {key} differs between seeds ({seen}); train all with the same")
    losses = {}
    for column in ("validation_loss", "validation_mtp_loss"):
        values = validation_losses(training, model, column)
        losses |= columns_of(column, None if values.isna().all() else t_interval(values))
    return {"model": model, **{key: rows[key].iloc[0] for key in SETTINGS}, "n": len(rows), **losses}


def models_table(training: pd.DataFrame, ngram: dict) -> pd.DataFrame:
    """One row per model, losses with 95% t intervals over seeds; the n-gram is counted once (n = 1)."""
    rows = [_model_row(training, model) for model in raw.MODELS]
    rows.append({"model": "ngram", "n": 1, "validation_loss": ngram["validation_loss"]})
    return pd.DataFrame(rows, columns=TABLES["models"].computed)


def rule_tables(observed: raw.RawRule, distance: float | None) -> dict[str, pd.DataFrame]:
    """What was observed of the rule: at one position, at many, in whole texts, and where it was broken.

    distance: the published total variation against which contexts are held; None where none is.
    """
    rates, independence = acceptance_tables(observed.rounds)
    return {
        "acceptance": ordered(observed.draws, ["seed", "drafter", "position"])[TABLES["acceptance"].computed],
        "oracle": evidence.oracle_table(observed.oracle),
        "contexts": evidence.contexts_table(observed.contexts, distance),
        "p_values": evidence.p_values_table(observed.contexts),
        "sequences": evidence.sequences_table(observed.sequences),
        "controls": evidence.controls_table(observed.controls),
        "false_alarms": evidence.false_alarms_table(observed.false_alarms),
        "rates": rates,
        "independence": independence,
        "gap": gap_table(observed.rounds, observed.plain_texts),
    }


def rule_summary(tables: dict[str, pd.DataFrame]) -> dict:
    """What summary.json says of these tables and of differences.csv."""
    names = ("oracle", "contexts", "sequences", "controls", "false_alarms")
    counts = evidence.evidence_summary(**{name: tables[name] for name in names})
    return counts | {"equivalence": equivalence_summary(tables["differences"])}


def time_tables(
    observed: raw.RawSweep, rule: raw.RawRule, texts: pd.DataFrame, by_seed: pd.DataFrame
) -> dict[str, pd.DataFrame]:
    """Everything that the clock says, and what was to be expected of it."""
    agreement, typical = engines.agreement_table(observed.agreement), systems.typical_table(rule.typical)
    rows = ledger.ledger_table(by_seed, texts, agreement, typical)
    priced = costs.costs_of(observed.forwards)
    model = cost_model_table(rows, priced, rule.plain_texts, rule.rounds_apart)
    return {
        "ledger": rows,
        "time": timing.time_table(texts),
        "forwards": costs.forwards_table(observed.forwards),
        "cost_model": model,
        "best_gamma": best_gamma_table(model),
        "waterfall": waterfall_table(rows, texts),
        "noise": noise.noise_table(observed.runs),
        "engines": engines.engines_table(observed.engines),
        "agreement": agreement,
        "typical": typical,
    }


def time_summary(tables: dict[str, pd.DataFrame]) -> dict:
    """What summary.json says of these tables."""
    return {
        "time": timing.time_summary(tables["time"]),
        "cost_model": cost_model_summary(tables["cost_model"]),
        "noise": noise.noise_summary(tables["noise"]),
        **engines.engines_summary(tables["engines"], tables["agreement"]),
    }


def build(observed: raw.Raw, margin: float, distance: float | None) -> tuple[dict[str, pd.DataFrame], dict, Evidence]:
    """Every table by name, the summary, and the evidence on which claims are judged."""
    texts = timing.with_ratios(observed.sweep.runs)
    by_seed = ledger.methods_by_seed(texts, observed.sweep.forwards)
    tables = {
        **time_tables(observed.sweep, observed.rule, texts, by_seed),
        **rule_tables(observed.rule, distance),
        "prefix": ordered(observed.prefix, ["seed", "model", "engine", "precision"])[TABLES["prefix"].computed],
        "greedy": ordered(observed.greedy, ["seed", "engine", "drafter", "gamma"])[TABLES["greedy"].computed],
        "seeds": seeds_table(observed.training),
        "models": models_table(observed.training, observed.ngram),
        "differences": differences_table(observed.training, margin),
        "heads": heads.heads_table(observed.heads.training, observed.training),
        "ranks": trees.ranks_table(observed.heads.ranks),
    }
    tables["trees"] = trees.trees_table(tables["ledger"], by_seed, texts, observed.heads.shapes)
    shared = {key: tables[key] for key in ("acceptance", "prefix", "greedy")} | {"training": observed.training}
    summary = summarise(ledger=tables["ledger"], forwards=tables["forwards"], **shared)
    summary |= rule_summary(tables) | time_summary(tables)
    judged_on = Evidence(
        by_seed=by_seed,
        texts=texts,
        forwards=costs.with_ratios(observed.sweep.forwards),
        contexts=observed.rule.contexts,
        plain_texts=observed.rule.plain_texts,
        **{name: tables[name] for name in ("oracle", "sequences")},
        **shared,
    )
    return tables, summary, judged_on


def _plain_cells(column: pd.Series) -> pd.Series:
    """true/false for booleans, whole numbers without .0; floats are left to the float format."""
    if column.dtype == bool or (column.dtype == object and column.dropna().map(type).eq(bool).all()):
        return column.map({True: "true", False: "false"})
    return column


def declared(name: str, frame: pd.DataFrame) -> pd.DataFrame:
    """The table's columns in the order of their declaration, with those that the declaration itself computes."""
    derived = {column.names: column.of(frame) for column in TABLES[name].columns if column.of is not None}
    return frame.assign(**derived)[TABLES[name].names]


def write_csv(table: pd.DataFrame, path: Path) -> None:
    """The same bytes for the same table, on any platform; a missing value is an empty cell."""
    table = table.apply(_plain_cells) if len(table) else table
    write_table(path, table)


def jsonable(value: object) -> object:
    """Ten digits, as in the tables, so that the last bit of a sum does not change the file."""
    if isinstance(value, dict):
        return {key: jsonable(inner) for key, inner in value.items()}
    if isinstance(value, np.bool_):
        return bool(value)
    if isinstance(value, (float, np.floating)):
        return float(f"{value:.10g}")
    if isinstance(value, np.integer):
        return int(value)
    return value


def write_tables(
    results: Path,
    tables: Path,
    *,
    seeds: list[int],
    margin: float,
    claims_file: Path,
    compare: bool,
    quick: bool,
    trained_heads: Sequence[str] = (),
    with_trees: bool = False,
) -> None:
    """Read the raw files of exactly `seeds` under `results` and write every table into `tables`.

    Args:
        results: results/<study>; tables: the folder to write, made where it is missing.
        seeds: the configured seeds in their order; files of others are not looked at.
        margin: the difference of losses that would not matter, nats a character.
        claims_file: the published readings and their rules, config/claims.yaml.
        compare: False where the corpus is not the published one: claims.csv then has no rows.
        quick: few steps: claims on trained models are inconclusive.
        trained_heads, with_trees: what the study has besides its models.

    Raises UserError naming the file that is missing or wrong; nothing is written then.
    """
    readings = claims.read_claims(claims_file)
    distance = claims.parameter(readings, "plausible_share", "distance")
    observed = raw.read_raw(Path(results), seeds, heads=trained_heads, trees=with_trees)
    frames, summary, judged_on = build(observed, margin, distance)
    frames["systems"] = systems.systems_table(
        systems.read_systems(claims_file),
        frames["ledger"],
        observed.rule.rounds,
        observed.heads.training,
        observed.training,
        frames["typical"],
    )
    frames["claims"] = claims.judge_all(readings if compare else [], judged_on, quick=quick)
    tables = Path(tables)
    tables.mkdir(parents=True, exist_ok=True)
    for name, frame in frames.items():
        write_csv(declared(name, frame), tables / f"{name}.csv")
    text = json.dumps(jsonable(summary), sort_keys=True, allow_nan=False, indent=2, ensure_ascii=False)
    (tables / "summary.json").write_text(text + "\n", encoding="utf-8", newline="\n")
