"""Results on disk: written whole or not at all, with a certificate of how they came to be."""

import csv
import hashlib
import json
import os
import platform
import subprocess
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path

from specledger.foundation.errors import UserError

LIBRARIES = ("torch", "numpy", "scipy", "statsmodels", "pandas", "matplotlib", "snakemake", "typst")


@contextmanager
def written_whole(path: Path):
    """Yield a temporary path beside `path` that takes its name only when the block succeeds."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        yield temporary
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


@contextmanager
def _told_if_unwritable(path: Path):
    try:
        yield
    except OSError as error:
        why = error.strerror or error
        raise UserError(f"{path}: could not be written ({why}); make room, then run snakemake again") from error


def write_text(path: Path, text: str) -> None:
    with _told_if_unwritable(path), written_whole(path) as temporary:
        temporary.write_text(text, encoding="utf-8", newline="")


def write_json(path: Path, value) -> None:
    """JSON with sorted keys; a NaN is refused, missing is null."""
    write_text(path, json.dumps(value, sort_keys=True, allow_nan=False, ensure_ascii=False, indent=1) + "\n")


def read_json(path: Path):
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UserError(f"{path}: missing; run snakemake again, it makes what is missing") from None
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise UserError(f"{path}: not valid JSON ({error}); delete it and run snakemake again") from None


class _EndedByNewline:
    """A file for rows that end in \\r\\n, which makes that \\n; a cell with a \\r of its own is quoted only for them.

    Before Python 3.11.9 and 3.12.3 the csv module quotes no \\r but that of a row's end.
    """

    def __init__(self, file):
        self._file = file

    def write(self, row: str) -> int:
        return self._file.write(row.removesuffix("\r\n") + "\n")


def csv_writer(file):
    """A writer of rows of cells that every reader of CSV gets back equal, whatever characters their text holds."""
    return csv.writer(_EndedByNewline(file), lineterminator="\r\n")


def write_table(path: Path, table) -> None:
    """A pandas table as CSV: the same bytes on any platform, ten digits, a missing value an empty cell."""
    with (
        _told_if_unwritable(path),
        written_whole(path) as temporary,
        temporary.open("w", encoding="utf-8", newline="") as file,
    ):
        table.to_csv(_EndedByNewline(file), index=False, float_format="%.10g", lineterminator="\r\n")


def write_rows(path: Path, rows: list[dict], columns: list[str] | None = None) -> None:
    """A tidy CSV of `rows`, whose keys are the columns; None is an empty cell. With `columns` there may be none."""
    assert rows or columns, f"no rows for {path}"
    import pandas as pd

    table = pd.DataFrame(rows, columns=columns)
    for name in table.select_dtypes(bool).columns:
        table[name] = table[name].map({True: "true", False: "false"})
    write_table(path, table)


def read_rows(path: Path) -> list[dict[str, str]]:
    """The rows of a CSV file; UserError where it is missing or empty."""
    try:
        with path.open(encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
    except FileNotFoundError:
        raise UserError(f"{path}: missing; run snakemake again, it makes what is missing") from None
    if not rows:
        raise UserError(f"{path}: holds no rows; delete it and run snakemake again")
    return rows


def hash_text(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


def sum_of(*paths: Path) -> str:
    """The sha256 of the files' bytes, one after another."""
    digest = hashlib.sha256()
    for path in paths:
        with path.open("rb") as file:
            digest.update(hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()


def weights_of(folder: Path) -> tuple[Path, ...]:
    """The files that make a model what it is."""
    return folder / "model.safetensors", folder / "heads.safetensors"


def head_weights_of(folder: Path) -> tuple[Path, ...]:
    """The same of a head that was trained on top of a model."""
    return (folder / "heads.safetensors",)


def _git(*arguments: str) -> str | None:
    here = Path(__file__).resolve().parent
    try:
        done = subprocess.run(["git", "-C", str(here), *arguments], capture_output=True, text=True, timeout=10)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def certificate(*, stage: str, settings: str, code: str, inputs: dict, device: str, threads: int) -> dict:
    """Which settings, code and `inputs` (sums by name) made a result, on what: no time, no path, so that it repeats."""
    status = _git("status", "--porcelain", "--untracked-files=no")
    return {
        "stage": stage,
        "settings": json.loads(settings),
        "settings_hash": hash_text(settings),
        "code_hash": code,
        "inputs": inputs,
        "device": device,
        "threads": threads,
        "versions": {name: metadata.version(name) for name in LIBRARIES},
        "python": platform.python_version(),
        "platform": platform.platform(terse=True),
        "commit": _git("rev-parse", "HEAD"),
        "dirty": None if status is None else bool(status),
    }
