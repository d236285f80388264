"""Results that came here without Snakemake's records: their certificates tell whether they are valid, not their times.

Snakemake judges a file without a record by its time alone, and a copy has the time of the copying. Each such result
gets a time that makes Snakemake judge rightly: now where it is valid, 1970 where it is stale, so that it runs again.
A stale text has no input that could be newer; its record is set aside, and comes back when it is valid again.
"""

import os
import time
from base64 import urlsafe_b64encode
from pathlib import Path

from specledger.analysis.provenance import MODELS, Made, changed_files, differences, results_of
from specledger.foundation.drafters import HEADS
from specledger.foundation.errors import UserError
from specledger.foundation.records import read_json

OLDEST = 1.0  # second of 1970; Snakemake takes 0 for no time at all
LONGEST = 254  # characters of a name in Snakemake's folder; longer ones are cut into folders


def recorded(path: Path) -> bool:
    """Whether Snakemake, run in this folder, keeps a record of how `path` was made."""
    name = urlsafe_b64encode(str(path).encode()).decode()
    parts = [name[start : start + LONGEST] for start in range(0, len(name), LONGEST)]
    return Path(".snakemake", "metadata", *(f"@{part}" for part in parts[:-1]), parts[-1]).is_file()


def _benchmark(results: Path, made: Made) -> Path:
    """The file with a job's seconds, whose time Snakemake looks at too."""
    folder = results / "benchmarks"
    if made.kind in MODELS:
        return folder / "train" / f"{made.kind}-{made.folder.name}.tsv"
    if made.kind in HEADS:
        return folder / "head" / f"{made.kind}-{made.folder.name}.tsv"
    return folder / f"{made.name}.tsv"


def _set_times(results: Path, made: Made, seconds: float) -> None:
    for path in (*made.folder.iterdir(), _benchmark(results, made)):
        if path.is_file():
            os.utime(path, (seconds, seconds))


def _valid(made: Made, expected: dict[str, dict]) -> bool:
    try:
        record = read_json(made.certificate)
        return not differences(made, record, expected) and not changed_files(made, record)
    except (UserError, AttributeError):
        return False


def _aside(record: Path) -> Path:
    return record.with_suffix(".stale.json")


def _settle_text(made: Made, expected: dict[str, dict]) -> bool:
    """Whether the text is the study's; a record of another one is set aside."""
    record, aside = made.certificate, _aside(made.certificate)
    if aside.exists() and not record.exists():
        aside.rename(record)
    if _valid(made, expected):
        return True
    record.rename(aside)
    return False


def settle(results: Path, seeds: list[int], expected: dict[str, dict]) -> list[str]:
    """Judge what lies in `results` without Snakemake's record; the names of what is stale."""
    now, stale, same_text = time.time(), [], True
    for made in results_of(results, seeds, expected):
        there = made.certificate.exists() or (made.kind == "corpus" and _aside(made.certificate).exists())
        if not there or recorded(made.certificate):
            continue
        if made.kind == "corpus":
            valid = same_text = _settle_text(made, expected)
        else:
            valid = same_text and _valid(made, expected)
        _set_times(results, made, now if valid else OLDEST)
        if not valid:
            stale.append(made.name)
    return stale
