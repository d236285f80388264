"""What a column of a table is, and a table of them: standard library alone, so that the Snakefile may read it."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

TEXT, WHOLE, NUMBER, TRUTH = "text", "whole", "number", "truth"


@dataclass(frozen=True, kw_only=True)
class Kind:
    """Text, a whole number, a number or true/false; `above` excludes the lower end, `empty` allows an empty cell."""

    type: str
    low: float = -math.inf
    high: float = math.inf
    above: bool = False
    empty: bool = False
    endless: bool = False

    def __str__(self) -> str:
        if self.type == TEXT:
            return "must not be empty"
        if self.type == TRUTH:
            return "must be true or false"
        words = "must be a whole number" if self.type == WHOLE else "must be a number"
        if math.isfinite(self.low) and math.isfinite(self.high):
            words += f" from {self.low:g} to {self.high:g}"
        elif math.isfinite(self.low):
            words += f" above {self.low:g}" if self.above else f" of at least {self.low:g}"
        return words + (" or empty" if self.empty else "")


def _declared(kinds: Mapping[Kind, str]) -> dict[str, Kind]:
    found = [(name, kind) for kind, names in kinds.items() for name in names.split()]
    assert len({name for name, _ in found}) == len(found), "a column is declared twice"
    return dict(found)


SHARE, AMOUNT = {"type": NUMBER, "low": 0, "high": 1}, {"type": NUMBER, "low": 0}
NAMES = Kind(type=TEXT)
WORDS = Kind(type=TEXT, empty=True)
SEED = Kind(type=WHOLE, low=0, high=2**32 - 1)
COUNTS = Kind(type=WHOLE, low=0)
COUNTS_IF_ANY = Kind(type=WHOLE, low=0, empty=True)
SIZES = Kind(type=WHOLE, low=1)
SHARES, SHARES_IF_ANY = Kind(**SHARE), Kind(**SHARE, empty=True)
AMOUNTS, AMOUNTS_IF_ANY = Kind(**AMOUNT), Kind(**AMOUNT, empty=True)
POSITIVE, POSITIVE_IF_ANY = Kind(**AMOUNT, above=True), Kind(**AMOUNT, above=True, empty=True)
TRUTHS = Kind(type=TRUTH)
ANY_NUMBER, MAY_BE_ENDLESS = Kind(type=NUMBER, empty=True), Kind(type=NUMBER, empty=True, endless=True)
KINDS = _declared(
    {
        NAMES: "drafter context engine context_rule model part kind rule source test precision reference device "
        "program method interval loop parents head trunk checkpoint",
        WORDS: "accept_probs tree why ours speedup_method",
        SEED: "seed",
        COUNTS: "position draws accepted null_draws accept_len round drafted examined text gamma used copy "
        "rounds target_forwards draft_forwards rows fed_short fed_long prompt_tokens generated_tokens rejected repeat "
        "full_rounds rank order parameters head_parameters chosen_step",
        SIZES: "tokens depth nodes positions texts n repeats blocks vocabulary threads steps batch",
        COUNTS_IF_ANY: "df resamples first_divergence tree_nodes top_k",
        SHARES: "beta tv_output tv_draft kept tv level rate lo hi",
        SHARES_IF_ANY: "acceptance acceptance_lo acceptance_hi tv_expected tv_q999 tv_p_value p_value chi2_p_value "
        "detectable_leak detectable_tv tv_bound null_tv_lo null_tv_hi power top_p min_p",
        AMOUNTS: "temperature max_abs_deviation max_abs_difference expected_tokens train_s validation_loss seconds_lo "
        "seconds_hi",
        AMOUNTS_IF_ANY: "draft_s catch_up_s verify_s accept_s sync_s compile_s validation_mtp_loss",
        POSITIVE: "wall_s seconds learning_rate",
        POSITIVE_IF_ANY: "ratio ratio_lo ratio_hi ratio_to_ours ratio_to_ours_lo ratio_to_ours_hi",
        ANY_NUMBER: "other_s",  # what the clocks leave over; two that overlap make it negative
        MAY_BE_ENDLESS: "statistic margin top2_margin",
        Kind(**AMOUNT, empty=True, endless=True): "chi2",  # of a symbol that p never says
        TRUTHS: "identical available expected caught clocked",
    }
)


@dataclass(frozen=True)
class Column:
    """One column, or several that share what is said of them.

    names: as in the CSV file, separated by spaces. meaning: what results.md says. kind: by its name, where it is None.
    interval: `_lo` and `_hi` stand beside it. of: what computes it from the table's other columns, where its table's
    function does not.
    """

    names: str
    meaning: str
    kind: Kind | None = None
    interval: bool = False
    of: Callable | None = None

    def kinds(self) -> dict[str, Kind]:
        """The kind of each column that stands in the file."""
        ends = ("", "_lo", "_hi") if self.interval else ("",)
        return {
            f"{name}{end}": self.kind or KINDS.get(f"{name}{end}", KINDS.get(name, ANY_NUMBER))
            for name in self.names.split()
            for end in ends
        }


@dataclass(frozen=True, kw_only=True)
class Table:
    """A table: its title and columns in the order of its file, and what results.md says before and after them.

    folder, file: where it lies in results/<study>, with {seed} for one of a seed; the file has the table's name.
    """

    title: str
    columns: tuple[Column, ...]
    about: str = ""
    after: str = ""
    may_be_empty: bool = False
    folder: str = "tables"
    file: str = ""

    def path(self, name: str) -> str:
        return f"{self.folder}/{self.file or name}.csv"

    @property
    def kinds(self) -> dict[str, Kind]:
        return {name: kind for column in self.columns for name, kind in column.kinds().items()}

    @property
    def names(self) -> list[str]:
        """The columns in the order of the file."""
        return list(self.kinds)

    @property
    def computed(self) -> list[str]:
        """Those of them that the table's function computes."""
        return [name for column in self.columns if column.of is None for name in column.kinds()]


# What several tables share.
ENGINE = Column("engine", "recompute, cached or compiled, as in ledger.csv")
DRAFTER_AND_GAMMA = Column("drafter gamma", "as in ledger.csv")
BY_TEXT = """
Intervals are Student's t at 95% with whole texts (a seed and a repeat) as clusters: acceptances of one text
go together. They are by text, for these models (the ledger's are over seeds), and apt to be too narrow with fewer than
20 texts.
"""
