"""The raw result files of exactly the configured seeds, whatever else lies in the folder."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from specledger.analysis.columns import check_record, read_table
from specledger.foundation.errors import UserError
from specledger.tables.raw import RAW

MODELS = ("plain", "mtp", "draft")

TRAINING_KEYS = "seed head_parameters steps batch learning_rate chosen_step tokens validation_loss train_s".split()


@dataclass(frozen=True, kw_only=True)
class RawRule:
    """What was observed of the acceptance rule, one row an observation, sorted by seed.

    `plain_texts` are texts decoded without a drafter, with what a drafter would have met at each
    position; `rounds_apart` are of texts that only drafters which choose their number of proposals wrote, apart
    from the sweep; `controls` and `false_alarms` are of the first configured seed only.
    """

    oracle: pd.DataFrame
    draws: pd.DataFrame
    contexts: pd.DataFrame
    plain_texts: pd.DataFrame
    rounds_apart: pd.DataFrame
    rounds: pd.DataFrame
    typical: pd.DataFrame
    sequences: pd.DataFrame
    controls: pd.DataFrame
    false_alarms: pd.DataFrame


@dataclass(frozen=True, kw_only=True)
class RawSweep:
    """What was timed: whole texts, single costs, engines, and texts of one engine against another's."""

    runs: pd.DataFrame
    forwards: pd.DataFrame
    engines: pd.DataFrame
    agreement: pd.DataFrame


@dataclass(frozen=True, kw_only=True)
class RawHeads:
    """What was trained on top of the target, and how its siblings fare; empty where a study has none of it."""

    training: pd.DataFrame
    ranks: pd.DataFrame
    shapes: pd.DataFrame


@dataclass(frozen=True, kw_only=True)
class Raw:
    """Everything that was observed, one row an observation, sorted by seed."""

    training: pd.DataFrame
    ngram: dict
    prefix: pd.DataFrame
    greedy: pd.DataFrame
    sweep: RawSweep
    heads: RawHeads
    rule: RawRule


def _require(path: Path) -> Path:
    if not path.is_file():
        raise UserError(f"{path}: result file is missing; the rule that writes it has to run first")
    return path


def read_json(path: Path) -> dict:
    """A JSON object; UserError when the file is missing or is none."""
    try:
        value = json.loads(_require(path).read_text(encoding="utf-8"))
    except json.JSONDecodeError as error:
        raise UserError(f"{path}: not JSON ({error.msg}, line {error.lineno})") from error
    except (UnicodeDecodeError, RecursionError) as error:
        raise UserError(f"{path}: not JSON ({error})") from error
    if not isinstance(value, dict):
        raise UserError(f"{path}: expected a JSON object, got {type(value).__name__}")
    return value


def read_csv(path: Path, columns: list[str], seed: int, *, may_be_empty: bool = False) -> pd.DataFrame:
    """A table of one seed with at least `columns`; UserError when it is missing, damaged or another seed's."""
    table = read_table(path, columns)
    if table.empty and not may_be_empty:
        raise UserError(f"{path}: holds no rows")
    others = sorted(set(table["seed"]) - {seed})
    if others:
        raise UserError(f"{path}: holds rows of seed {others[0]}, expected seed {seed} only")
    return table


def _stack(results: Path, name: str, seeds: list[int]) -> pd.DataFrame:
    """The observations of that name of all seeds."""
    table = RAW[name]
    paths = {seed: results / table.path(name).format(seed=seed) for seed in seeds}
    frames = [read_csv(path, table.names, seed, may_be_empty=table.may_be_empty) for seed, path in paths.items()]
    return pd.concat(frames, ignore_index=True)


def _training(results: Path, seeds: list[int]) -> pd.DataFrame:
    return pd.DataFrame(
        [_trained(results / "models" / model / str(seed), model, seed) for model in MODELS for seed in seeds]
    )


def _trained(folder: Path, model: str, seed: int) -> dict:
    """The record of a training of that model and seed."""
    path = folder / "training.json"
    row = read_json(path)
    name = row.get("model", row.get("head"))
    if (name, row.get("seed")) != (model, seed):
        raise UserError(f"{path}: is of model {name} and seed {row.get('seed')}")
    check_record(path, row, TRAINING_KEYS)
    return row


def read_rule(results: Path, seeds: list[int]) -> RawRule:
    """Read what `seeds` observed of the rule; a missing file raises UserError with its path."""
    first, seeds = seeds[:1], sorted(seeds)
    return RawRule(
        oracle=_stack(results, "oracle", seeds),
        draws=_stack(results, "draws", seeds),
        contexts=_stack(results, "contexts", seeds),
        plain_texts=_stack(results, "texts", seeds),
        rounds_apart=pd.concat(_stack(results, name, seeds) for name in ("rounds_apart", "apart")),
        rounds=_stack(results, "rounds", seeds),
        typical=_stack(results, "typical", seeds),
        sequences=_stack(results, "sequences", seeds),
        controls=_stack(results, "controls", first),
        false_alarms=_stack(results, "false_alarms", first),
    )


def read_sweep(results: Path, seeds: list[int]) -> RawSweep:
    """Read what the sweeps of `seeds` timed; a missing file raises UserError with its path."""
    seeds = sorted(seeds)
    return RawSweep(
        runs=_stack(results, "runs", seeds),
        forwards=_stack(results, "forwards", seeds),
        engines=_stack(results, "engines", seeds),
        agreement=_stack(results, "agreement", seeds),
    )


def read_heads(results: Path, seeds: list[int], heads: list[str], *, trees: bool) -> RawHeads:
    """Read how `heads` of `seeds` were trained, and the siblings and shapes of trees where there are `trees`."""
    training = [_trained(results / "heads" / head / str(seed), head, seed) for head in heads for seed in seeds]
    found = {
        name: _stack(results, name, seeds) if trees else pd.DataFrame(columns=RAW[name].names)
        for name in ("ranks", "shapes")
    }
    return RawHeads(training=pd.DataFrame(training), **found)


def read_raw(results: Path, seeds: list[int], *, heads: Sequence[str] = (), trees: bool = False) -> Raw:
    """Read the raw files of `seeds`; a missing one raises UserError with its path."""
    if not seeds:
        raise UserError("seeds: must not be empty")
    ordered, ngram = sorted(seeds), results / "ngram" / "ngram.json"
    counted = read_json(ngram)
    check_record(ngram, counted, ["validation_loss"])
    return Raw(
        training=_training(results, ordered),
        ngram=counted,
        prefix=_stack(results, "prefix", ordered),
        greedy=_stack(results, "greedy", ordered),
        sweep=read_sweep(results, ordered),
        heads=read_heads(results, ordered, list(heads), trees=trees),
        rule=read_rule(results, list(seeds)),
    )
