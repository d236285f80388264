"""The fingerprint of a stage changes with its logic, wherever that lies, and with nothing else."""

import ast
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from specledger.commands import run
from specledger.foundation import fingerprint

STAGES = [stage for stage in run.STAGES if not stage.startswith(("audit", "pair"))]  # of the study
MEASURING = {"trees", "checks", "acceptance", "sequences", "controls", "sweep"}
DECODING = {"train", "train-head", *MEASURING}
SHOWN = {"figures", "page", "paper"}  # the stages that show drafters
SHOWING = {"tables", "compare", *SHOWN}


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A copy of the package that may be edited."""
    copy = tmp_path / "specledger"
    shutil.copytree(fingerprint.PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(fingerprint, "PACKAGE", copy)
    yield copy


def hashes() -> dict[str, str]:
    return {stage: fingerprint.code_hash(stage) for stage in STAGES}


def changed_by(path: Path, text: str) -> set[str]:
    before = hashes()
    path.write_text(text, encoding="utf-8")
    after = hashes()
    return {stage for stage in STAGES if before[stage] != after[stage]}


@pytest.mark.parametrize(
    ("module", "stages"),
    [
        ("training/schedule.py", {"train", "train-head"}),
        ("training/target.py", {"train"}),
        ("commands/sweep.py", {"sweep"}),
        ("commands/measuring.py", MEASURING),
        ("sampling/verify.py", MEASURING),
        ("decoding/drafter.py", MEASURING),
        ("models/llama.py", DECODING),
        ("corpus/text.py", {"corpus", "ngram", *DECODING}),
        ("experiments/forward_costs.py", {"sweep"}),
        ("foundation/records.py", set(STAGES)),
        ("foundation/errors.py", set()),
        ("foundation/progress.py", set()),
    ],
)
def test_logic_changes_exactly_the_stages_that_import_it(package, module, stages):
    """Among these are modules that a stage reaches over three others."""
    path = package / module
    assert changed_by(path, path.read_text() + "\n\nADDED = 1\n") == stages


def test_what_is_only_reported_reruns_no_measurement(package):
    before = hashes()
    for path in [*(package / "reporting").glob("*.py"), *(package / "analysis").glob("*.py")]:
        path.write_text(path.read_text() + "\n\nADDED = 1\n")
    after = hashes()
    assert {stage for stage in STAGES if before[stage] != after[stage]} == {"tables", "figures", "page", "paper"}


def test_a_changed_number_counts(package):
    path = package / "models" / "llama.py"
    text = path.read_text()
    assert "norm_eps: float = 1e-6" in text
    assert changed_by(path, text.replace("norm_eps: float = 1e-6", "norm_eps: float = 1e-5")) == DECODING


def rewritten(text: str) -> str:
    """The same logic in another hand: all comments and line breaks gone, every docstring another."""
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(node):
            node.body[0].value = ast.Constant("Other words.")
    return f"# a comment\n{ast.unparse(tree)}\n\n\n# the end\n"


def test_comments_format_and_docstrings_do_not_count(package):
    before = hashes()
    for path in package.rglob("*.py"):
        path.write_text(rewritten(path.read_text()))
    assert hashes() == before


def test_a_docstring_put_in_or_taken_out_does_not_count(package):
    path = package / "drafters" / "mtp.py"
    text = path.read_text()
    bare = re.sub(r'^"""The multi-token.*?"""\n', "", text, flags=re.DOTALL)
    assert bare != text
    assert changed_by(path, bare) == set()


@pytest.mark.parametrize(
    ("module", "old", "new", "stages"),
    [
        ("ngram", "discount * distinct_C / total_C", "discount * distinct_C", {"ngram", *MEASURING}),  # the network
        ("mtp", "return target.lm_head(self.norm(state_BTD))", "return target.lm_head(state_BTD)", DECODING),
        ("medusa", "DECAY = 0.8", "DECAY = 0.7", {"train-head"}),  # what is learned
        ("ngram", "self.known.clear()", "self.known = {}", MEASURING),  # the proposer
        ("parallel", "max_gamma=3", "max_gamma=2", {"train-head", *MEASURING, *SHOWING}),
        ("eagle", 'colour="#6a51a3"', 'colour="#6a51a4"', SHOWN),
    ],
)
def test_of_a_drafter_counts_what_a_stage_reaches(package, module, old, new, stages):
    path = package / "drafters" / f"{module}.py"
    text = path.read_text()
    assert old in text
    assert changed_by(path, text.replace(old, new)) == stages


def test_a_new_drafter_trains_nothing(package):
    spec = 'SPECS = (Spec(name="repeat", order=130, title={}, colour="#000", dark="#fff", marker="*"),)'
    assert changed_by(package / "drafters" / "repeat.py", spec) == {*MEASURING, *SHOWING}


def test_a_string_that_is_no_docstring_counts(package):
    path = package / "sampling" / "verify.py"
    assert changed_by(path, path.read_text().replace("must sum to 1", "must sum to one")) == MEASURING


def test_extra_files_count_as_bytes(tmp_path):
    template = tmp_path / "page.html"
    template.write_text("<p>")
    before = fingerprint.code_hash("page", (template,))
    assert before == fingerprint.code_hash("page", (template,)) != fingerprint.code_hash("page")
    template.write_text("<p> ")
    assert fingerprint.code_hash("page", (template,)) != before


def test_all_that_python_imports_is_in_the_fingerprint():
    """Python itself says which modules each stage loads; parents that hold a docstring alone don't matter."""
    script = (
        "import importlib, json, sys\n"
        "found = {}\n"
        f"for stage in {STAGES!r}:\n"
        "    for name in [n for n in sys.modules if n.split('.')[0] == 'specledger']:\n"
        "        del sys.modules[name]\n"
        "    importlib.import_module('specledger.commands.' + stage.replace('-', '_'))\n"
        "    found[stage] = [n for n in sys.modules if n.split('.')[0] == 'specledger']\n"
        "print(json.dumps(found))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=fingerprint.PACKAGE.parent
    )
    for stage, names in json.loads(done.stdout).items():
        loaded = {name for name in names if fingerprint.module_path(name).name != "__init__.py"}
        loaded.discard("specledger.foundation.version")  # the package names its version; no result depends on it
        reached = fingerprint.modules_of(fingerprint.entry_of(stage))
        # A module of drafters is loaded whole, with what definitions of it import that the stage doesn't reach.
        parts = (name for name, wanted in reached.items() if wanted is not None)
        aside = {one for name in parts for one in fingerprint.modules_of(name)}
        assert loaded and loaded <= set(reached) | aside


def test_packages_hold_docstrings_alone():
    """Else what they do would not be in the fingerprint."""
    for path in fingerprint.PACKAGE.rglob("__init__.py"):
        if path.parent != fingerprint.PACKAGE:
            body = ast.parse(path.read_text()).body
            assert len(body) == 1 and isinstance(body[0], ast.Expr), path
