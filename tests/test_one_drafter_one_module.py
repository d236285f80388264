"""A drafter is one module: a toy one is there with its file, and one that is deleted leaves nothing behind."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from specledger.drafters import registry
from specledger.foundation import drafters

ROOT = Path(__file__).resolve().parent.parent
REPEAT = '''"""Proposes the last symbol again."""

import numpy as np

from specledger.decoding.drafter import Drafter, Parts
from specledger.decoding.proposers import Proposer
from specledger.foundation.drafters import Spec

SPECS = (
    Spec(
        name="repeat",
        order=85,
        title={"en": "last symbol again", "zh": "重复末字"},
        colour="#123456",
        dark="#abcdef",
        marker="*",
    ),
)


class RepeatProposer(Proposer):
    def __init__(self, vocabulary, *, engine, sampling, capacity):
        super().__init__(engine=engine, sampling=sampling)
        self.rows_VV = np.eye(vocabulary)

    def begin(self, output, tokens):
        return self.rows_VV[tokens[-1]]

    def expand(self, parents, tokens):
        return self.rows_VV[list(tokens)]

    @staticmethod
    def plain_logits(vocabulary, contexts_NT, proposed):
        with np.errstate(divide="ignore"):
            return np.log(np.eye(vocabulary)[np.asarray(contexts_NT)[:, -1]])


def drafter(spec: Spec, parts: Parts) -> Drafter:
    V = parts.target.config.vocabulary
    return Drafter.of(spec, RepeatProposer, V, vocabulary=V)
'''
# What every copy of the package must do, whatever drafters it has.
WHOLE = """
import importlib, pathlib, sys
import yaml
from specledger.drafters import registry
from specledger.foundation import config as configuration, drafters
from specledger.foundation.errors import UserError

def check(**edits):
    config = yaml.safe_load(pathlib.Path("config/config.yaml").read_text())
    for path, value in edits.items():
        at = config
        *way, last = path.split("__")
        for key in way:
            at = at[key]
        at.pop(last) if value is None else at.update({last: value})
    configuration.validate(config)
    return config

for module, specs in drafters.MODULES.items():
    assert importlib.import_module(f"specledger.drafters.{module}").SPECS == specs
for path in pathlib.Path("workflow/specledger").rglob("*.py"):
    name = ".".join(path.relative_to("workflow").with_suffix("").parts).removesuffix(".__init__")
    if not name.endswith("__main__"):
        importlib.import_module(name)
"""
ADDED = """
import numpy as np
import torch
from specledger.decoding.engines import usable
from specledger.experiments import oracle, sequences
from specledger.experiments.checks import greedy_rows
from specledger.experiments.remembered import Remembered
from specledger.experiments.sweep import Stop, measure, methods_of
from specledger.foundation.stages import stage_settings
from specledger.reporting import page
from specledger.reporting.figures import draw_all
from specledger.reporting.wording import read_wording
from specledger.sampling.distributions import Sampling
import synthetic, synthetic_files, synthetic_time

before, config = check(), check(sweep__gammas__repeat=[1, 2])
assert drafters.heads_of(config) == drafters.heads_of(before)
for stage, models in (("train", ("plain", "mtp", "draft")), ("head", drafters.HEADS)):
    for model in models:
        assert stage_settings(config, stage, model=model) == stage_settings(before, stage, model=model)

bundle, prompt = oracle.random_bundle(5, seed=1), [0, 3, 1, 1]
engines, gammas = usable(("recompute", "cached", "compiled"), torch.device("cpu"), print)[0], {"repeat": [1, 2]}
rows = list(greedy_rows(bundle, engines, gammas, prompt, count=10, seed=1))
assert len(rows) == 2 * len(engines) >= 4 and all(row["identical"] for row in rows)
rows = oracle.oracle_rows(bundle, prompt, [1, 2], [], model="toy", sampling=Sampling(), drafters=["repeat"])
assert len(rows) == 2 and max(row["max_abs_deviation"] for row in rows) < 1e-12
law = sequences.sequence_rows(
    sequences.Laws(bundle, prompt), ["repeat"], [Sampling()], Remembered(engine=engines[1]),
    gamma=2, count=4, texts=300, seed=3, after_each=lambda: None,
)
found = {row["test"]: row["p_value"] for row in law}
assert set(found) == {"2-gram", "3-gram", "acceptance", "accounting"} and min(found.values()) > 1e-4, found
texts = measure(
    bundle, methods_of(engines, gammas), prompt, count=20, repeats=1, stop=Stop(half_width=0.0, blocks=1),
    sampling=Sampling(), seed=1, after_each=lambda: None,
)
ledger = [row for _, row, _ in texts if row["drafter"] == "repeat"]
assert {(row["engine"], row["gamma"]) for row in ledger} == {(one.name, g) for one in engines for g in (1, 2)}
assert all(row["drafted"] > 0 for row in ledger)

synthetic_files.SWEPT["repeat"] = 0.6  # a study whose ledger has it
for truth in synthetic_time.TRUTH.values():
    truth.c["repeat"] = 0.01
results = pathlib.Path("results")
about = synthetic.write_synthetic_study(results, (1, 2))
draw_all(results, results / "figures")
drawn = (results / "figures" / "tokens_per_round.svg").read_text()
assert "#123456" in drawn
page.render(results, results / "figures", about, results / "index.html")
text = (results / "index.html").read_text(encoding="utf-8")
assert 'mark-repeat">last symbol again' in text and "--repeat: #123456;" in text and "--repeat: #abcdef;" in text
assert read_wording("zh", {}).name("drafter", "repeat") == "重复末字"
assert "last symbol again" in read_wording("en", {}, ("names",)).name("drafter", "repeat")
"""
REMOVED = """
from specledger.experiments import oracle
from specledger.experiments.checks import greedy_rows
from specledger.decoding.engines import engine

try:
    check()
    raise SystemExit("the configuration still names it")
except UserError as error:
    said = str(error)
assert said.startswith("config sweep.gammas.eagle: unknown key — allowed: draft, ") and "\\n" not in said, said
check(sweep__gammas__eagle=None, sweep__trees__eagle=None, training__heads__steps__eagle=None)
bundle = oracle.random_bundle(5, seed=1)
assert "eagle" not in bundle.drafters and "medusa1" in bundle.drafters
gammas = {name: [1] for name in bundle.drafters}
assert all(row["identical"] for row in greedy_rows(bundle, [engine("cached")], gammas, [0, 3, 1, 1], count=8, seed=1))
"""


@pytest.fixture
def checkout(tmp_path):
    for name in ("workflow", "config"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path


def run(checkout: Path, script: str) -> None:
    path = os.pathsep.join((str(checkout / "workflow"), str(ROOT / "tests")))
    variables = {**os.environ, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-c", WHOLE + script], cwd=checkout, env=variables, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr[-3000:]


def test_what_is_collected_is_what_the_modules_declare():
    imported = {name: registry.module_of(name).SPECS for name in drafters.SPECS}
    assert all(spec in imported[name] for name, spec in drafters.SPECS.items())
    assert [spec.order for spec in drafters.SPECS.values()] == sorted({one.order for one in drafters.SPECS.values()})


def test_a_toy_drafter_is_one_file_and_one_line_of_config(checkout):
    """No training; a greedy check, its exact law, a row of the ledger, and its colour and names on the page."""
    (checkout / "workflow" / "specledger" / "drafters" / "repeat.py").write_text(REPEAT, encoding="utf-8")
    run(checkout, ADDED)


def test_a_removed_drafter_is_missed_by_the_configuration_alone(checkout):
    (checkout / "workflow" / "specledger" / "drafters" / "eagle.py").unlink()
    run(checkout, REMOVED)


def test_specs_that_are_no_literals_are_refused(tmp_path):
    path = tmp_path / "odd.py"
    path.write_text("import os\nSPECS = (os.name,)\n")
    with pytest.raises(drafters.UserError, match=r"odd\.py: SPECS must be a tuple of Spec\(\.\.\.\) of literals"):
        drafters.specs_in(path)


def test_eagle_stands_in_few_files_beside_its_own():
    done = subprocess.run(
        ["git", "grep", "-lw", "eagle", "--", ".", ":!tests", ":!config", ":!docs", ":!*.md"],
        cwd=ROOT, capture_output=True, text=True,
    )  # fmt: skip
    if done.returncode > 1:
        pytest.skip("no git checkout")
    assert len(set(done.stdout.split()) - {"workflow/specledger/drafters/eagle.py"}) <= 3
