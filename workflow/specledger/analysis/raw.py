"""The raw result files of exactly the configured seeds, whatever else lies in the folder."""

import json
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from specledger.foundation.errors import UserError

MODELS = ("plain", "mtp", "draft")

ACCEPTANCE_COLUMNS = (
    "seed drafter position context temperature draws accepted acceptance acceptance_lo acceptance_hi beta "
    "tv_output tv_expected tv_q999 tv_p_value tv_draft chi2 df p_value chi2_p_value "
    "detectable_leak detectable_tv tv_bound resamples"
).split()
CONTEXT_COLUMNS = (
    "seed drafter position draws accepted beta tv_output tv_draft chi2 df p_value tv_lo_200k tv_hi_200k"
).split()
TEXT_COLUMNS = "seed text position drafter beta kept".split()
ORACLE_COLUMNS = "seed drafter gamma vocabulary model blocks max_abs_deviation".split()
PREFIX_COLUMNS = "seed model engine precision fed_short fed_long rows max_abs_difference".split()
GREEDY_COLUMNS = (
    "seed engine context_rule drafter gamma prompt_tokens generated_tokens identical first_divergence top2_margin"
).split()
RUN_COLUMNS = (
    "seed repeat engine context_rule drafter gamma temperature rounds target_forwards draft_forwards tokens "
    "examined accepted wall_s draft_s verify_s accept_s other_s"
).split()
FORWARD_COLUMNS = "seed engine model positions seconds".split()
ROUND_COLUMNS = "seed repeat engine drafter gamma round drafted accept_len accept_probs".split()
SEQUENCE_COLUMNS = (
    "seed engine context_rule drafter gamma temperature top_k top_p texts tokens test statistic df p_value"
).split()
CONTROL_COLUMNS = (
    "seed rule source kind drafter gamma temperature n test statistic df p_value power expected caught"
).split()
FALSE_ALARM_COLUMNS = "seed test repeats n level rejected rate lo hi".split()


@dataclass(frozen=True, kw_only=True)
class RawRule:
    """What was observed of the acceptance rule, one row an observation, sorted by seed.

    `plain_texts` are texts decoded without a drafter, with what a drafter would have met at each
    position; `controls` and `false_alarms` are of the first configured seed only.
    """

    oracle: pd.DataFrame
    draws: pd.DataFrame
    contexts: pd.DataFrame
    plain_texts: pd.DataFrame
    rounds: pd.DataFrame
    sequences: pd.DataFrame
    controls: pd.DataFrame
    false_alarms: pd.DataFrame


@dataclass(frozen=True, kw_only=True)
class Raw:
    """Everything that was observed, one row an observation, sorted by seed."""

    training: pd.DataFrame
    ngram: dict
    prefix: pd.DataFrame
    greedy: pd.DataFrame
    runs: pd.DataFrame
    forwards: pd.DataFrame
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
    if not isinstance(value, dict):
        raise UserError(f"{path}: expected a JSON object, got {type(value).__name__}")
    return value


def read_csv(path: Path, columns: list[str], seed: int) -> pd.DataFrame:
    """A table of one seed with at least `columns`; UserError when it is missing, short or another seed's."""
    try:
        # Only an empty cell is missing: a context may well read "NA". One number a cell or many, accept_probs is text.
        table = pd.read_csv(
            _require(path), keep_default_na=False, na_values=[""], encoding="utf-8", dtype={"accept_probs": str}
        )
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


def read_rule(results: Path, seeds: list[int]) -> RawRule:
    """Read what `seeds` observed of the rule; a missing file raises UserError with its path."""
    first, seeds = seeds[:1], sorted(seeds)
    return RawRule(
        oracle=_stack(results, "checks/{seed}/oracle.csv", ORACLE_COLUMNS, seeds),
        draws=_stack(results, "acceptance/{seed}/draws.csv", ACCEPTANCE_COLUMNS, seeds),
        contexts=_stack(results, "acceptance/{seed}/contexts.csv", CONTEXT_COLUMNS, seeds),
        plain_texts=_stack(results, "acceptance/{seed}/texts.csv", TEXT_COLUMNS, seeds),
        rounds=_stack(results, "sweep/{seed}/rounds.csv", ROUND_COLUMNS, seeds),
        sequences=_stack(results, "sequences/{seed}/sequences.csv", SEQUENCE_COLUMNS, seeds),
        controls=_stack(results, "controls/{seed}/controls.csv", CONTROL_COLUMNS, first),
        false_alarms=_stack(results, "controls/{seed}/false_alarms.csv", FALSE_ALARM_COLUMNS, first),
    )


def read_raw(results: Path, seeds: list[int]) -> Raw:
    """Read the raw files of `seeds`; a missing one raises UserError with its path."""
    if not seeds:
        raise UserError("seeds: must not be empty")
    ordered = sorted(seeds)
    return Raw(
        training=_training(results, ordered),
        ngram=read_json(results / "ngram" / "ngram.json"),
        prefix=_stack(results, "checks/{seed}/prefix.csv", PREFIX_COLUMNS, ordered),
        greedy=_stack(results, "checks/{seed}/greedy.csv", GREEDY_COLUMNS, ordered),
        runs=_stack(results, "sweep/{seed}/runs.csv", RUN_COLUMNS, ordered),
        forwards=_stack(results, "sweep/{seed}/forwards.csv", FORWARD_COLUMNS, ordered),
        rule=read_rule(results, list(seeds)),
    )
