"""The layers of the package: who may import whom."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest
from specledger.tables.registry import TABLES

PACKAGE = Path(__file__).parents[1] / "workflow" / "specledger"
# Each may import itself and what stands in an earlier group; those of one group don't know each other.
GROUPS = [
    {"foundation"},
    {"theory", "tables"},
    {"statistics"},
    {"corpus", "models"},
    {"sampling"},
    {"decoding", "training"},
    {"drafters"},
    {"experiments", "audit"},
    {"pair", "compare"},
    {"analysis"},
    {"reporting"},
    {"commands"},
]
RANK = {name: rank for rank, group in enumerate(GROUPS) for name in group}
FILES = sorted(PACKAGE.rglob("*.py"))


def imports(path: Path) -> set[str]:
    """The full names of all that a file imports, wherever in it."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            found.update(f"{node.module}.{alias.name}" for alias in node.names)
    return found


def layer_of(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0]


def test_every_folder_is_a_layer():
    assert {layer_of(path) for path in FILES if path.parent != PACKAGE} == set(RANK)


@pytest.mark.parametrize("layer", sorted(RANK))
def test_imports_go_down(layer):
    for path in FILES:
        if layer_of(path) != layer:
            continue
        for name in imports(path):
            parts = name.split(".")
            if parts[0] == "specledger" and parts[1] != layer:
                assert parts[1] in RANK, f"{path}: {name}"
                assert RANK[parts[1]] < RANK[layer], f"{path} imports {name}, which is no earlier layer"


def outside(layer: str) -> set[str]:
    names = {name.split(".")[0] for path in FILES if layer_of(path) == layer for name in imports(path)}
    return names - {"specledger"} - set(sys.stdlib_module_names)


def test_theory_needs_the_standard_library_alone():
    assert outside("theory") == set()
    names = {name for path in FILES if layer_of(path) == "theory" for name in imports(path)}
    assert not any(name.startswith("specledger.") and layer_of_name(name) != "theory" for name in names)


def layer_of_name(name: str) -> str:
    return name.split(".")[1]


def test_torch_stays_where_models_are():
    # Of the audit, its workers alone: they run in processes of their own.
    allowed = {"foundation", "models", "sampling", "decoding", "training", "drafters", "experiments", "audit", "pair"}
    assert {layer for layer in RANK if "torch" in outside(layer)} <= allowed


def loaded_by(*modules: str) -> set[str]:
    script = f"import sys, {', '.join(modules)}\nprint('\\n'.join(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=PACKAGE.parent
    )
    return set(done.stdout.split())


def dotted(path: Path) -> str:
    return ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts).removesuffix(".__init__")


def test_analysis_and_reporting_never_load_torch():
    """Neither do the stages that call them, nor what the Snakefile imports each time it is read."""
    light = [
        dotted(path) for path in FILES if layer_of(path) in ("analysis", "compare", "reporting", "theory", "statistics")
    ]
    light += [f"specledger.commands.{stage}" for stage in ("corpus", "tables", "figures", "page", "paper", "compare")]
    light += ["specledger.foundation.config", "specledger.foundation.fingerprint", "specledger.foundation.devices"]
    loaded = loaded_by(*light)
    assert "specledger.reporting.page" in loaded
    assert "torch" not in loaded


def test_every_table_is_in_the_registry():
    """It names its modules one by one, so that the fingerprints of stages see them."""
    folder = PACKAGE / "tables"
    declaring = {path.stem for path in folder.glob("*.py") if "\nTABLE = " in path.read_text(encoding="utf-8")}
    assert declaring == set(TABLES)
