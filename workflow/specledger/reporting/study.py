"""One study, read once: everything that both renderers show comes out of this frozen object."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from specledger.foundation.drafters import branched
from specledger.foundation.errors import UserError
from specledger.reporting.extras import extra
from specledger.reporting.played import Played, read_played
from specledger.reporting.tables import Row, Table, read_object, read_tables, require

FIGURES = (
    "acceptance_rule p_values tokens_per_round acceptance_by_position gap wall_clock learning_curves seeds time_parts "
    "theory waterfall"
).split()
OPTIONAL_FIGURES = ("peers",)  # of what was measured beside the study, if it was
OF_TREES = ("trees", "trees_speed", "ranks")  # always drawn, shown where the study has trees
SUMMARY_KEYS = (
    "paired_difference best most_tokens interval prefix_max greedy_identical greedy_total acceptance_tested "
    "acceptance_rejected oracle_max oracle_blocks contexts_tested contexts_holm_rejected sequences_tested "
    "sequences_rejected "
    "controls_total controls_expected controls_caught_of_expected controls_unseen false_alarms_inside "
    "time cost_model noise engines_missing agreement_texts agreement_identical agreement_margin "
    "agreement_margins_unknown agreement_limit"
).split()
PROVENANCE_KEYS = (
    "study quick config settings_hash commit dirty seeds devices threads versions platform train_s sweep_s stale "
    "missing mixed"
).split()


@dataclass(frozen=True, kw_only=True)
class Study:
    """Tables, summary, the corpus' record, one seed's positions and sample, figures, provenance, and played files."""

    results: Path
    tables: Mapping[str, Table]
    summary: Mapping
    corpus: Mapping
    positions: Mapping
    sample: Mapping
    figures: Mapping[str, str]
    provenance: Mapping
    played: Played

    @property
    def seeds(self) -> tuple[int, ...]:
        return tuple(self.tables["seeds"].values("seed"))

    @property
    def figures_language(self) -> str:
        """The language of the words inside the figures, as their metadata say; English where they say nothing."""
        found = {match[1] for svg in self.figures.values() for match in re.finditer(r"<dc:language>(\w+)<", svg)}
        return found.pop() if len(found) == 1 else "en"

    @property
    def shown_seed(self) -> int:
        """The seed whose position and sample are printed: the first."""
        return min(self.seeds)

    @property
    def level(self) -> float:
        return self.summary["interval"].get("level") or 0.95

    def method(self, engine: str, drafter: str, gamma: int) -> Row:
        """One row of the ledger."""
        rows = self.tables["ledger"].where(engine=engine, drafter=drafter, gamma=gamma)
        if not rows:
            raise UserError(f"{self.results / 'tables/ledger.csv'}: no row for {engine}, {drafter}, gamma {gamma}")
        return rows[0]


def checked(values: Mapping, keys: list[str] | tuple[str, ...], where: object) -> Mapping:
    """`values`, frozen; UserError names the key that is not there."""
    absent = [key for key in keys if key not in values]
    if absent:
        raise UserError(f"{where}: key {absent[0]} is missing")
    return MappingProxyType(dict(values))


def has_trees(tables: Mapping[str, Table]) -> bool:
    """Whether any drafter of the ledger proposes trees."""
    return any(branched(row["drafter"]) for row in tables["ledger"].rows)


def first_seed(tables: Mapping[str, Table]) -> int:
    return min(tables["seeds"].values("seed"))


def read_positions(results: Path, seed: int) -> Mapping:
    """acceptance/{seed}/position.json, with at least one position and one drafter."""
    path = results / "acceptance" / str(seed) / "position.json"
    record = checked(read_object(path), ("positions", "symbols"), path)
    if not record["positions"] or not record["positions"][0].get("drafters"):
        raise UserError(f"{path}: holds no position")
    return record


def load(results: Path, figures: Path, provenance: Mapping) -> Study:
    """Read results/<study> and the figures; UserError names the first file or key that is missing."""
    results, figures = Path(results), Path(figures)
    tables = read_tables(results)
    seed = first_seed(tables)
    summary_path, corpus_path = results / "tables" / "summary.json", results / "corpus" / "corpus.json"
    sample_path = results / "sweep" / str(seed) / "sample.json"
    paths = {name: figures / f"{name}.svg" for name in FIGURES}
    paths |= {name: figures / f"{name}.svg" for name in OPTIONAL_FIGURES if extra(results, name) is not None}
    if has_trees(tables):
        paths |= {name: figures / f"{name}.svg" for name in OF_TREES}
    return Study(
        results=results,
        tables=tables,
        summary=checked(read_object(summary_path), SUMMARY_KEYS, summary_path),
        corpus=checked(read_object(corpus_path), ("origin", "sha256", "tiny_shakespeare", "fallback"), corpus_path),
        positions=read_positions(results, seed),
        sample=checked(read_object(sample_path), ("prompt", "tokens", "engine"), sample_path),
        figures=MappingProxyType({name: require(path).read_text(encoding="utf-8") for name, path in paths.items()}),
        provenance=checked(provenance, PROVENANCE_KEYS, "provenance of the report"),
        played=read_played(results, tuple(tables["seeds"].values("seed"))),
    )
