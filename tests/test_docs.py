"""What the documents promise is there: every key and every column is explained."""

import csv
import tomllib
from pathlib import Path

import yaml
from specledger.foundation.version import VERSION
from specledger.reporting import takeaway
from specledger.tables.document import document
from specledger.tables.registry import TABLES
from synthetic import write_synthetic_study

ROOT = Path(__file__).resolve().parents[1]


def leaf_keys(value, path=()):
    if isinstance(value, dict):
        for key, item in value.items():
            yield from leaf_keys(item, (*path, key))
    else:
        yield path


def test_every_key_of_the_config_is_explained():
    text = (ROOT / "config" / "README.md").read_text(encoding="utf-8")
    config = yaml.safe_load((ROOT / "config" / "config.yaml").read_text(encoding="utf-8"))
    for path in leaf_keys(config):
        name = ".".join(path)
        parent = ".".join(path[:-1])
        told = f"`{name}`" in text or f"`{parent}.*`" in text or f".{path[-1]}`" in text
        assert told, f"config/README.md does not explain {name}"


def test_results_md_follows_from_the_declarations():
    written = (ROOT / "workflow" / "report" / "results.md").read_text(encoding="utf-8")
    assert written == document(), "python -m specledger.tables.document > workflow/report/results.md"


def test_every_column_of_the_tables_is_declared_and_explained(tmp_path):
    write_synthetic_study(tmp_path)
    tables = sorted((tmp_path / "tables").glob("*.csv"))
    assert {path.stem for path in tables} <= set(TABLES) and len(tables) >= 9
    for path in tables:
        with path.open(encoding="utf-8", newline="") as lines:
            assert next(csv.reader(lines)) == TABLES[path.stem].names, path.name
    assert all(column.meaning and table.title for table in TABLES.values() for column in table.columns)


def test_the_version_is_the_same_everywhere():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))["version"]
    assert VERSION == project == citation
    assert f"\n## {VERSION}\n" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


def test_the_catalogue_of_workflows_finds_what_it_asks_for():
    told = yaml.safe_load((ROOT / ".snakemake-workflow-catalog.yml").read_text(encoding="utf-8"))["usage"]
    assert set(told) == {"mandatory-flags", "software-stack-deployment"}
    assert set(told["software-stack-deployment"]) == {"conda", "apptainer", "apptainer+conda", "report"}
    assert (ROOT / "Snakefile").is_file() and (ROOT / "config" / "README.md").is_file()


def test_the_dictionary_has_every_table(tmp_path):
    write_synthetic_study(tmp_path)
    explained = {table for tables, _, _ in takeaway.meanings() for table in tables.split(", ")}
    assert set(takeaway.DOWNLOADS) <= explained
    assert all(columns and meaning for _, columns, meaning in takeaway.meanings())
