"""The raw result files of exactly the configured seeds, whatever else lies in the folder."""

import json
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from specledger.foundation.errors import UserError

MODELS = ("plain", "mtp", "draft")

ACCEPTANCE_COLUMNS = (
    "seed drafter position context temperature draws accepted acceptance beta "
    "tv_output tv_expected tv_q999 tv_draft chi2 df p_value"
).split()
PREFIX_COLUMNS = "seed model engine precision fed_short fed_long rows max_abs_difference".split()
GREEDY_COLUMNS = (
    "seed engine context_rule drafter gamma prompt_tokens generated_tokens identical first_divergence top2_margin"
).split()
RUN_COLUMNS = (
    "seed repeat engine context_rule drafter gamma temperature rounds target_forwards draft_forwards tokens "
    "examined accepted wall_s draft_s verify_s accept_s other_s"
).split()
FORWARD_COLUMNS = "seed engine model positions seconds".split()


@dataclass(frozen=True, kw_only=True)
class Raw:
    """Everything that was observed, one row an observation, sorted by seed."""

    training: pd.DataFrame
    ngram: dict
    prefix: pd.DataFrame
    greedy: pd.DataFrame
    acceptance: pd.DataFrame
    runs: pd.DataFrame
    forwards: pd.DataFrame


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
    if not isinstance(value, dict):
        raise UserError(f"{path}: expected a JSON object, got {type(value).__name__}")
    return value


def read_csv(path: Path, columns: list[str], seed: int) -> pd.DataFrame:
    """A table of one seed with at least `columns`; UserError when it is missing, short or another seed's."""
    try:
        # Only an empty cell is missing: a context may well read "NA".
        table = pd.read_csv(_require(path), keep_default_na=False, na_values=[""], encoding="utf-8")
    except (pd.errors.ParserError, pd.errors.EmptyDataError) as error:
        raise UserError(f"{path}: not a CSV table ({error})") from error
    absent = [column for column in columns if column not in table.columns]
    if absent:
        raise UserError(f"{path}: column {absent[0]} is missing")
    if table.empty:
        raise UserError(f"{path}: holds no rows")
    others = sorted(set(table["seed"]) - {seed})
    if others:
        raise UserError(f"{path}: holds rows of seed {others[0]}, expected seed {seed} only")
    return table


def _stack(results: Path, pattern: str, columns: list[str], seeds: list[int]) -> pd.DataFrame:
    frames = [read_csv(results / pattern.format(seed=seed), columns, seed) for seed in seeds]
    return pd.concat(frames, ignore_index=True)


def _training(results: Path, seeds: list[int]) -> pd.DataFrame:
    rows = []
    for model in MODELS:
        for seed in seeds:
            path = results / "models" / model / str(seed) / "training.json"
            row = read_json(path)
            if (row.get("model"), row.get("seed")) != (model, seed):
                raise UserError(f"{path}: is of model {row.get('model')} and seed {row.get('seed')}")
            rows.append(row)
    return pd.DataFrame(rows)


def read_raw(results: Path, seeds: list[int]) -> Raw:
    """Read the raw files of `seeds`; a missing one raises UserError with its path."""
    if not seeds:
        raise UserError("seeds: must not be empty")
    seeds = sorted(seeds)
    return Raw(
        training=_training(results, seeds),
        ngram=read_json(results / "ngram" / "ngram.json"),
        prefix=_stack(results, "checks/{seed}/prefix.csv", PREFIX_COLUMNS, seeds),
        greedy=_stack(results, "checks/{seed}/greedy.csv", GREEDY_COLUMNS, seeds),
        acceptance=_stack(results, "acceptance/{seed}/draws.csv", ACCEPTANCE_COLUMNS, seeds),
        runs=_stack(results, "sweep/{seed}/runs.csv", RUN_COLUMNS, seeds),
        forwards=_stack(results, "sweep/{seed}/forwards.csv", FORWARD_COLUMNS, seeds),
    )
