"""A finished study in seconds: every output is there, with the record that Snakemake keeps of it, and nothing was run.

Snakemake's `touch` executor writes the same record as a real run does: parameters, code, sums of the inputs.
"""

import json
import os
import shutil
from contextlib import contextmanager
from pathlib import Path

from clone import PLANNED, copy_checkout, write_config
from small import play
from snakemake.api import SnakemakeApi
from snakemake.settings.types import (
    ConfigSettings,
    DAGSettings,
    OutputSettings,
    Quietness,
    ResourceSettings,
    StorageSettings,
    WorkflowSettings,
)
from specledger.analysis.provenance import MODELS, current_sum, results_of
from specledger.foundation import fingerprint
from specledger.foundation.drafters import HEADS
from specledger.foundation.records import hash_text


@contextmanager
def environment(**changes):
    """Environment variables, for a while."""
    before = {name: os.environ.get(name) for name in changes}
    os.environ.update(changes)
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name) if value is None else os.environ.update({name: value})


def plan(snakefile: Path, folder: Path, config: Path, *, cores: int = 2, executor: str = "dryrun", **asked):
    """Snakemake's graph of jobs for a configuration, in this process, after it was carried out by `executor`."""
    with SnakemakeApi(OutputSettings(quiet={Quietness.ALL})) as api:
        workflow = api.workflow(
            resource_settings=ResourceSettings(cores=cores),
            config_settings=ConfigSettings(configfiles=[config]),
            storage_settings=StorageSettings(),
            workflow_settings=WorkflowSettings(),
            snakefile=snakefile,
            workdir=folder,
        )
        planned = workflow.dag(dag_settings=DAGSettings(max_checksum_file_size=10**9, **asked))
        planned.execute_workflow(executor=executor)
        return workflow._workflow.dag


class Planned:
    """A checkout with a configuration, a text, and what Snakemake would do there."""

    def __init__(self, checkout: Path, corpus: Path):
        self.checkout, self.corpus = checkout, corpus
        self.config = checkout / "tiny.yaml"
        self.results = checkout / "results" / "tiny"

    @classmethod
    def in_folder(cls, folder: Path) -> "Planned":
        """A new checkout, with nothing done yet."""
        corpus, checkout = folder / "my play.txt", copy_checkout(folder / "a clone")
        corpus.write_text(play(20_000), encoding="utf-8")
        made = cls(checkout, corpus)
        made.written("tiny.yaml")
        return made

    def copy(self, folder: Path) -> "Planned":
        """The same once more, with the times of its files and Snakemake's record of them."""
        shutil.copytree(self.checkout, folder / "a clone")
        shutil.copy2(self.corpus, folder)
        return type(self)(folder / "a clone", folder / self.corpus.name)

    def written(self, name: str, changes: dict | None = None) -> Path:
        """A configuration in which every head and every tree has a part, with `changes` laid over it."""
        return write_config(self.checkout / name, changes, PLANNED)

    def jobs(
        self, *, config=None, corpus=None, executor="dryrun", cores=2, targets=(), forced=(), forceall=False
    ) -> dict:
        """The jobs that run, as {(rule, model or None, seed or None): its outputs}; targets do nothing themselves."""
        here = Path.cwd()
        package, fingerprint.PACKAGE = fingerprint.PACKAGE, self.checkout / "workflow" / "specledger"
        try:
            asked = {"targets": set(targets), "forcerun": set(forced), "forceall": forceall}
            asked |= {"cores": cores, "executor": executor}
            with environment(SPECLEDGER_CORPUS=str(corpus or self.corpus)):
                dag = plan(self.checkout / "Snakefile", self.checkout, config or self.config, **asked)
            self.benchmarks = [job.benchmark for job in dag.jobs]
            self.params = {_name(job)[:2]: job.params for job in dag.jobs if job.output}
            return {_name(job): list(map(Path, job.output)) for job in dag.jobs if dag.needrun(job) and job.output}
        finally:
            os.chdir(here)
            fingerprint.PACKAGE = package

    def finish(self) -> None:
        """Make every output, each with bytes of its own, its certificate, and Snakemake's record of it."""
        for outputs in self.jobs().values():
            for output in outputs:
                path = self.checkout / output
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(f"{output}\n", encoding="utf-8")
        for benchmark in filter(None, self.benchmarks):
            (self.checkout / benchmark).parent.mkdir(parents=True, exist_ok=True)
            (self.checkout / benchmark).write_text("s\n1.0\n", encoding="utf-8")
        for made in results_of(self.results, [1, 2], {model or rule for rule, model in self.params}):
            rule = "train" if made.kind in MODELS else "head" if made.kind in HEADS else None
            params = self.params[(rule, made.kind) if rule else (made.kind, None)]
            used = made.inputs.keys() - ({"plain"} if made.kind != "checks" else set())
            record = {
                "settings_hash": hash_text(params.settings),
                "code_hash": params.code,
                "inputs": {name: current_sum(made.inputs[name]) for name in used},
            }
            made.certificate.write_text(json.dumps(record), encoding="utf-8")
        self.jobs(executor="touch", forceall=True)


def _name(job) -> tuple:
    found = job.wildcards_dict
    model = found.get("model", found.get("head"))
    return job.rule.name.removesuffix("_of_seed"), model, int(found["seed"]) if "seed" in found else None
