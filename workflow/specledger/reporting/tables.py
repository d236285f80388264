"""Result tables as plain, frozen rows: read once, strictly, and never interpreted twice."""

import csv
import io
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from specledger.foundation.errors import UserError
from specledger.sampling.distributions import SETTINGS

TEXT = frozenset(
    "claim title source published unit rule interval verdict why engine context_rule drafter model precision "
    "context section test caught_by kind method what group reason note case pair reference gammas goal program loop "
    "device system setting comparable shape alpha_by_position head trunk loss part "
    "mode version prompt control".split()
)

# What the report reads of each table; more columns are welcome.
REQUIRED: Mapping[str, str] = MappingProxyType(
    {
        "ledger": "engine context_rule drafter gamma temperature lossless target_forwards draft_forwards tokens alpha "
        "alpha_lo alpha_hi tokens_per_round tokens_per_round_lo tokens_per_round_hi wall_s wall_s_lo wall_s_hi "
        "speedup speedup_lo speedup_hi c eq1 theorem38 cost_model v seeds repeats",
        "time": "engine drafter gamma draft catch_up verify accept sync other wall_s off other_share adds_up",
        "forwards": "engine part model drafter gamma positions seconds seconds_lo seconds_hi c",
        "cost_model": "engine drafter gamma tokens_per_round t_ar plain_overhead t_propose t_verify overhead theorem38 "
        "cost_model measured measured_lo measured_hi miss theorem38_miss",
        "waterfall": "engine drafter gamma case overall place step ratio_before ratio_after factor",
        "best_gamma": "engine drafter gammas gamma_predicted speedup_predicted gamma_found speedup_found agrees "
        "loss_if_predicted one_less loss_if_one_less one_more loss_if_one_more",
        "noise": "engine pair drafter gamma ratio lo hi n_pairs inside cost_percent cost_percent_lo cost_percent_hi "
        "spread_percent",
        "engines": "engine available why compile_s compile_s_lo compile_s_hi",
        "agreement": "engine reference drafter gamma texts identical first_divergence margin",
        "goals": "goal title unit rule measured lo hi interval verdict reason",
        "acceptance": "seed drafter position context draws accepted acceptance beta tv_output tv_expected tv_q999 "
        "tv_draft chi2 df p_value acceptance_lo acceptance_hi tv_p_value chi2_p_value detectable_leak detectable_tv "
        "tv_bound resamples",
        "oracle": "drafter gamma vocabulary model blocks max_abs_deviation seeds",
        "contexts": "drafter contexts tested draws seeds fisher_p sum_chi2 sum_df sum_p holm_rejected bh_rejected ks_p "
        "below_05 below_05_lo below_05_hi plausible_share",
        "p_values": "drafter bin_lo bin_hi count expected",
        "sequences": f"engine drafter gamma {' '.join(SETTINGS)} test texts tokens seeds statistic df p_value "
        "least_p holm_p",
        "controls": "rule source kind drafter gamma temperature n caught_by p_value power expected_caught caught tests",
        "false_alarms": "test repeats n level rejected rate lo hi inside",
        "rates": "engine drafter gamma position examined accepted rate rate_lo rate_hi reached reached_rb texts",
        "independence": "engine drafter gamma alpha alpha_lo alpha_hi texts tokens_per_round tokens_per_round_rb "
        "homogeneity_p geometric_p lag1 lag1_p",
        "gap": "engine drafter gamma eq1 drift dependence ending measured uniform",
        "differences": "mean lo hi n level method sd margin tost_p tost_lo tost_hi verdict detectable detectable_sd "
        "power",
        "prefix": "seed model engine precision fed_short fed_long rows max_abs_difference",
        "greedy": "seed engine context_rule drafter gamma prompt_tokens generated_tokens identical first_divergence "
        "top2_margin",
        "seeds": "seed model parameters head_parameters steps chosen_step validation_loss validation_mtp_loss train_s",
        "models": "model parameters head_parameters steps batch learning_rate n validation_loss validation_loss_lo "
        "validation_loss_hi validation_mtp_loss validation_mtp_loss_lo validation_mtp_loss_hi",
        "heads": "head trunk head_parameters steps loss n value value_lo value_hi train_s train_share train_share_lo "
        "train_share_hi",
        "ranks": "drafter depth rank examined acceptance acceptance_lo acceptance_hi seeds",
        "trees": "engine drafter chain_gamma chain_tokens chain_speedup nodes depth expected_tokens tree_tokens "
        "tree_speedup tree_speedup_lo tree_speedup_hi ratio ratio_lo ratio_hi method nodes_predicted v_chain v_tree "
        "most_ratio most_ratio_lo most_ratio_hi verdict",
        "typical": "drafter gamma contexts seeds accepted_share tv tv_lo tv_hi",
        "systems": "system title source published setting comparable engine drafter shape gamma lossless parameters "
        "train_share alpha_by_position tokens_per_round tokens_per_round_lo tokens_per_round_hi speedup speedup_lo "
        "speedup_hi tv tv_lo tv_hi seeds",
        "claims": "claim group title section source published unit rule measured lo hi interval verdict reason note",
    }
)
MAY_BE_EMPTY = frozenset(
    "claims gap cost_model waterfall best_gamma noise agreement goals heads ranks trees typical systems".split()
)
Row = Mapping[str, object]


@dataclass(frozen=True, kw_only=True)
class Table:
    """A CSV file: its rows with typed cells (None is missing), and its bytes as they lie on disk."""

    name: str
    columns: tuple[str, ...]
    rows: tuple[Row, ...]
    content: bytes

    def where(self, **wanted: object) -> tuple[Row, ...]:
        """The rows whose cells equal all of `wanted`."""
        return tuple(row for row in self.rows if all(row.get(key) == value for key, value in wanted.items()))

    def values(self, column: str) -> tuple:
        """The distinct values of a column, in their order of appearance."""
        return tuple(dict.fromkeys(row[column] for row in self.rows))


def _typed(column: str, text: str) -> object:
    if text == "":
        return None
    if column in TEXT:
        return text
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    value = float(text)
    if math.isnan(value):
        return None
    return int(value) if value.is_integer() and abs(value) < 2**53 else value


def _cell(path: Path, row: int, column: str, text: str, strict: bool) -> object:
    """The typed cell; UserError names where text stands in place of a number that the report reads."""
    try:
        return _typed(column, text)
    except ValueError:
        if not strict:
            return text
        raise UserError(
            f"{path}: row {row}, column {column}: {text[:60]!r} — must be a number, true, false or empty; "
            "delete it and run snakemake again"
        ) from None


def require(path: Path) -> Path:
    """The path itself; UserError naming it when there is no such file."""
    if not path.is_file():
        raise UserError(f"{path}: missing; run snakemake again, it makes what is missing")
    return path


def read_table(path: Path, required: str = "", *, may_be_empty: bool = False) -> Table:
    """A CSV table; UserError names the file and the column or row that it lacks."""
    content = require(path).read_bytes()
    try:
        lines = list(csv.reader(io.StringIO(content.decode("utf-8"), newline="")))
    except (UnicodeDecodeError, csv.Error) as error:
        raise UserError(f"{path}: not a UTF-8 CSV table ({error})") from None
    columns = tuple(lines[0]) if lines else ()
    absent = [name for name in required.split() if name not in columns]
    if absent:
        raise UserError(f"{path}: column {absent[0]} is missing")
    if any(len(line) != len(columns) for line in lines[1:]):
        raise UserError(f"{path}: a row has another number of cells than the header")
    if len(lines) == 1 and not may_be_empty:
        raise UserError(f"{path}: holds no rows")
    strict = set(required.split()) - TEXT - {"step", "expected"}  # names in waterfall.csv and audit.csv, else numbers
    rows = tuple(
        MappingProxyType(
            {name: _cell(path, number, name, cell, name in strict) for name, cell in zip(columns, line, strict=True)}
        )
        for number, line in enumerate(lines[1:], start=1)
    )
    return Table(name=path.stem, columns=columns, rows=rows, content=content)


def read_object(path: Path) -> dict:
    """A JSON object; UserError names the file that is missing or broken."""
    try:
        value = json.loads(require(path).read_text(encoding="utf-8"))
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise UserError(f"{path}: not valid JSON ({error})") from None
    if not isinstance(value, dict):
        raise UserError(f"{path}: expected a JSON object, got {type(value).__name__}")
    return value


def read_tables(results: Path) -> Mapping[str, Table]:
    """Every table of results/<study>/tables that the report reads."""
    return MappingProxyType(
        {
            name: read_table(results / "tables" / f"{name}.csv", columns, may_be_empty=name in MAY_BE_EMPTY)
            for name, columns in REQUIRED.items()
        }
    )
