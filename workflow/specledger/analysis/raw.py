"""The raw result files of exactly the configured seeds, whatever else lies in the folder."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from specledger.analysis.columns import check_record, read_table
from specledger.foundation.errors import UserError
from specledger.sampling.distributions import SETTINGS

MODELS = ("plain", "mtp", "draft")

ACCEPTANCE_COLUMNS = (
    "seed drafter position context temperature draws accepted acceptance acceptance_lo acceptance_hi beta "
    "tv_output tv_expected tv_q999 tv_p_value tv_draft chi2 df p_value chi2_p_value "
    "detectable_leak detectable_tv tv_bound resamples"
).split()
CONTEXT_COLUMNS = (
    "seed drafter position draws accepted beta tv_output tv_draft chi2 df p_value null_draws null_tv_lo null_tv_hi"
).split()
TEXT_COLUMNS = "seed text position drafter beta kept".split()
ROUNDS_APART_COLUMNS = "seed text context_rule drafter gamma round drafted accept_len examined".split()
TYPICAL_COLUMNS = "seed drafter gamma position accept_len tv".split()
RANK_COLUMNS = "seed drafter depth rank examined acceptance".split()
SHAPE_COLUMNS = "seed drafter nodes used depth parents expected_tokens".split()
ORACLE_COLUMNS = "seed drafter gamma tree vocabulary model blocks max_abs_deviation".split()
PREFIX_COLUMNS = "seed model engine precision fed_short fed_long rows max_abs_difference".split()
GREEDY_COLUMNS = (
    "seed engine context_rule drafter gamma prompt_tokens generated_tokens identical first_divergence top2_margin"
).split()
RUN_COLUMNS = (
    "seed repeat engine context_rule drafter gamma tree_nodes copy clocked temperature rounds target_forwards "
    "draft_forwards tokens drafted examined accepted wall_s draft_s catch_up_s verify_s accept_s sync_s other_s"
).split()
FORWARD_COLUMNS = "seed engine part drafter gamma positions seconds".split()
ENGINE_COLUMNS = "seed engine available why compile_s".split()
AGREEMENT_COLUMNS = ("seed repeat engine reference drafter gamma tokens identical first_divergence margin").split()
PEER_COLUMNS = "program method repeats seconds ratio_to_ours ratio_to_ours_lo ratio_to_ours_hi interval".split()
TRAINING_SPEED_COLUMNS = "model loop ratio ratio_lo ratio_hi blocks interval".split()
ROUND_COLUMNS = "seed repeat engine drafter gamma round drafted accept_len examined accept_probs".split()
SEQUENCE_COLUMNS = (
    f"seed engine context_rule drafter gamma {' '.join(SETTINGS)} texts tokens test statistic df p_value"
).split()
CONTROL_COLUMNS = (
    "seed rule source kind drafter gamma temperature n test statistic df p_value power expected caught"
).split()
FALSE_ALARM_COLUMNS = "seed test repeats n level rejected rate lo hi".split()
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
    peers: pd.DataFrame
    training_speed: pd.DataFrame
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


def _stack(results: Path, pattern: str, columns: list[str], seeds: list[int], **options: bool) -> pd.DataFrame:
    frames = [read_csv(results / pattern.format(seed=seed), columns, seed, **options) for seed in seeds]
    return pd.concat(frames, ignore_index=True)


def _optional(path: Path, columns: list[str]) -> pd.DataFrame:
    """A table that need not be there: empty where it is not."""
    if not path.is_file():
        return pd.DataFrame(columns=columns)
    return read_table(path, columns)


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
        oracle=_stack(results, "checks/{seed}/oracle.csv", ORACLE_COLUMNS, seeds),
        draws=_stack(results, "acceptance/{seed}/draws.csv", ACCEPTANCE_COLUMNS, seeds),
        contexts=_stack(results, "acceptance/{seed}/contexts.csv", CONTEXT_COLUMNS, seeds),
        plain_texts=_stack(results, "acceptance/{seed}/texts.csv", TEXT_COLUMNS, seeds),
        rounds_apart=pd.concat(
            _stack(results, name, ROUNDS_APART_COLUMNS, seeds, may_be_empty=True)
            for name in ("acceptance/{seed}/rounds.csv", "sweep/{seed}/apart.csv")
        ),
        rounds=_stack(results, "sweep/{seed}/rounds.csv", ROUND_COLUMNS, seeds),
        typical=_stack(results, "acceptance/{seed}/typical.csv", TYPICAL_COLUMNS, seeds, may_be_empty=True),
        sequences=_stack(results, "sequences/{seed}/sequences.csv", SEQUENCE_COLUMNS, seeds),
        controls=_stack(results, "controls/{seed}/controls.csv", CONTROL_COLUMNS, first),
        false_alarms=_stack(results, "controls/{seed}/false_alarms.csv", FALSE_ALARM_COLUMNS, first),
    )


def read_sweep(results: Path, seeds: list[int]) -> RawSweep:
    """Read what the sweeps of `seeds` timed; a missing file raises UserError with its path."""
    seeds = sorted(seeds)
    return RawSweep(
        runs=_stack(results, "sweep/{seed}/runs.csv", RUN_COLUMNS, seeds),
        forwards=_stack(results, "sweep/{seed}/forwards.csv", FORWARD_COLUMNS, seeds),
        engines=_stack(results, "sweep/{seed}/engines.csv", ENGINE_COLUMNS, seeds),
        agreement=_stack(results, "sweep/{seed}/agreement.csv", AGREEMENT_COLUMNS, seeds, may_be_empty=True),
    )


def read_heads(results: Path, seeds: list[int], heads: list[str], *, trees: bool) -> RawHeads:
    """Read how `heads` of `seeds` were trained, and the siblings and shapes of trees where there are `trees`."""
    training = [_trained(results / "heads" / head / str(seed), head, seed) for head in heads for seed in seeds]
    columns = {"ranks": RANK_COLUMNS, "shapes": SHAPE_COLUMNS}
    found = {
        name: _stack(results, f"trees/{{seed}}/{name}.csv", wanted, seeds) if trees else pd.DataFrame(columns=wanted)
        for name, wanted in columns.items()
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
        prefix=_stack(results, "checks/{seed}/prefix.csv", PREFIX_COLUMNS, ordered),
        greedy=_stack(results, "checks/{seed}/greedy.csv", GREEDY_COLUMNS, ordered),
        sweep=read_sweep(results, ordered),
        heads=read_heads(results, ordered, list(heads), trees=trees),
        peers=_optional(results / "peers" / "peers.csv", PEER_COLUMNS),
        training_speed=_optional(results / "peers" / "training_speed.csv", TRAINING_SPEED_COLUMNS),
        rule=read_rule(results, list(seeds)),
    )
