"""How long a study takes on 1 to 1,000 workers, simulated from its measured seconds and Snakemake's graph of jobs.

A worker runs one job at a time; whoever is free takes, of the jobs whose inputs are there, the one with the longest
way to the end. `--seeds` asks for more seeds than were measured: a job of a new seed takes the median of its kind.
Run it in the folder of the study: `python benchmarks/makespan.py --configfile FILE --seeds 64 --overhead 15`.
"""

import argparse
import heapq
import os
import statistics
import tempfile
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path

import pandas as pd
import yaml
from common import configured
from snakemake.api import SnakemakeApi
from snakemake.settings.types import ConfigSettings, DAGSettings, OutputSettings, Quietness, ResourceSettings
from specledger.foundation.errors import UserError

ROOT = Path(__file__).resolve().parents[1]
WORKERS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1000)


def ways(seconds: Mapping[str, float], needs: Mapping[str, set[str]]) -> dict[str, float]:
    """Seconds from the start of each job to the end of the last one that waits for it."""
    followers, found = defaultdict(set), {}
    for job, before in needs.items():
        for other in before:
            followers[other].add(job)

    def way(job: str) -> float:
        if job not in found:
            found[job] = seconds[job] + max(map(way, followers[job]), default=0.0)
        return found[job]

    return {job: way(job) for job in seconds}


def makespan(seconds: Mapping[str, float], needs: Mapping[str, set[str]], workers: int) -> float:
    """Seconds until the last job is done."""
    order, waiting = ways(seconds, needs), {job: set(needs[job]) for job in seconds}
    ready = [(-order[job], job) for job, before in waiting.items() if not before]
    heapq.heapify(ready)
    running, now = [], 0.0
    while ready or running:
        while ready and len(running) < workers:
            _, job = heapq.heappop(ready)
            heapq.heappush(running, (now + seconds[job], job))
        now, done = heapq.heappop(running)
        for job, before in waiting.items():
            if done in before:
                before.remove(done)
                if not before:
                    heapq.heappush(ready, (-order[job], job))
    return now


def graph(snakefile: Path, configfiles: list[Path]) -> dict[str, tuple[str, Path, set[str]]]:
    """Snakemake's jobs by name: rule and model or head, the file with its seconds, and the jobs that it needs."""
    with SnakemakeApi(OutputSettings(quiet={Quietness.ALL})) as api:
        workflow = api.workflow(
            resource_settings=ResourceSettings(cores=1),
            config_settings=ConfigSettings(configfiles=configfiles),
            snakefile=snakefile,
        )
        workflow.dag(dag_settings=DAGSettings(forceall=True)).execute_workflow(executor="dryrun")
        dag = workflow._workflow.dag
        named = {job: " ".join([job.rule.name, *map(str, job.wildcards)]) for job in dag.jobs if job.benchmark}
        which = {job: job.wildcards_dict.get("model", job.wildcards_dict.get("head", "")) for job in named}
        kind = {job: f"{job.rule.name} {which[job]}".strip() for job in named}
        return {
            name: (kind[job], Path(job.benchmark), {named[other] for other in dag.dependencies[job] if other in named})
            for job, name in named.items()
        }


def measured(jobs: Mapping[str, tuple[str, Path, set[str]]]) -> dict[str, float]:
    """Seconds of each job; the median of its kind where it has not run. UserError for a kind that never ran."""
    own = {
        name: float(pd.read_csv(path, sep="\t")["s"].median()) for name, (_, path, _) in jobs.items() if path.exists()
    }
    kinds = defaultdict(list)
    for name, found in own.items():
        kinds[jobs[name][0]].append(found)
    lacking = sorted({kind for kind, _, _ in jobs.values()} - kinds.keys())
    if lacking:
        raise UserError(
            f"{next(iter(jobs.values()))[1].parent}: no seconds of {', '.join(lacking)}; run the study first"
        )
    return {name: own.get(name, statistics.median(kinds[kind])) for name, (kind, _, _) in jobs.items()}


def table(seconds: Mapping[str, float], needs: Mapping[str, set[str]], workers=WORKERS) -> pd.DataFrame:
    """A row for each number of workers: hours, how much faster than one, and how busy a worker is."""
    total, longest = sum(seconds.values()), max(ways(seconds, needs).values())
    rows = []
    for count in workers:
        took = makespan(seconds, needs, count)
        rows.append({"workers": count, "hours": took / 3600, "speedup": total / took, "busy": total / took / count})
    found = pd.DataFrame(rows)
    found.attrs = {"total_h": total / 3600, "longest_h": longest / 3600}
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--configfile", type=Path, action="append", default=[], help="as for snakemake")
    parser.add_argument("--seeds", type=int, help="how many seeds; those of the configuration if left out")
    parser.add_argument("--overhead", type=float, default=0.0, help="seconds that starting a job adds")
    options = parser.parse_args()
    try:
        configured(options.configfile)  # Snakemake would say with a traceback what is wrong with a file
        simulate(options)
    except UserError as error:
        raise SystemExit(f"makespan: {error}") from None


def simulate(options: argparse.Namespace) -> None:
    with tempfile.TemporaryDirectory() as folder:
        more = Path(folder) / "seeds.yaml"
        more.write_text(yaml.safe_dump({"seeds": list(range(1, options.seeds + 1))} if options.seeds else {}))
        jobs = graph(ROOT / "Snakefile", [path.resolve() for path in options.configfile] + [more])
    seconds = {name: found + options.overhead for name, found in measured(jobs).items()}
    found = table(seconds, {name: needs for name, (_, _, needs) in jobs.items()})
    print(
        f"{len(jobs)} jobs, {found.attrs['total_h']:.2f} hours in all, the longest chain {found.attrs['longest_h']:.2f}"
    )
    print(found.to_string(index=False, float_format=lambda value: f"{value:.3f}"))


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    main()
