"""Where the time of a run went, stage by stage, from Snakemake's own benchmark files: `make quick-profile`."""

import argparse
import re
from collections import defaultdict
from pathlib import Path

COLUMNS = ("stage", "jobs", "wall s", "share", "longest job, s", "most memory, MB")


def rows_of(benchmarks: Path) -> list[dict[str, float]]:
    """One row a job, with `stage`: a rule, and of a training what was trained."""
    found = []
    for path in sorted(benchmarks.rglob("*.tsv")):
        head, *lines = path.read_text(encoding="utf-8").splitlines()
        name = str(path.relative_to(benchmarks).with_suffix(""))
        stage = re.sub(r"[/-]\d+$", "", name)
        for line in lines:
            cells = dict(zip(head.split("\t"), line.split("\t"), strict=True))
            number = {key: float(value) if re.fullmatch(r"[\d.]+", value) else 0.0 for key, value in cells.items()}
            # Not cpu_time: Snakemake reads it ever more rarely, so that a job's last half may be missing.
            found.append({"stage": stage, "wall": number["s"], "memory": number["max_rss"]})
    return found


def table(rows: list[dict]) -> list[tuple]:
    """One line a stage, the costliest first, and their sum."""
    stages, total = defaultdict(list), sum(row["wall"] for row in rows) or 1.0
    for row in rows:
        stages[row["stage"]].append(row)
    lines = [_line(stage, jobs, total) for stage, jobs in stages.items()]
    return [*sorted(lines, key=lambda line: -line[2]), _line("all", rows, total)]


def _line(stage: str, jobs: list[dict], total: float) -> tuple:
    wall = sum(job["wall"] for job in jobs)
    return stage, len(jobs), wall, wall / total, *(max(job[key] for job in jobs) for key in ("wall", "memory"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("study", nargs="?", default="quick", help="a folder in results/ (default: quick)")
    folder = Path("results") / parser.parse_args().study / "benchmarks"
    rows = rows_of(folder)
    if not rows:
        raise SystemExit(f"specledger: {folder} holds no benchmark files; run the study first")
    print("| " + " | ".join(COLUMNS) + " |\n" + "| --- " * len(COLUMNS) + "|")
    for stage, jobs, wall, share, longest, memory in table(rows):
        print(f"| {stage} | {jobs} | {wall:.1f} | {share:.0%} | {longest:.1f} | {memory:.0f} |")


if __name__ == "__main__":
    main()
