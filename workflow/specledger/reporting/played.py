"""What the report reads of the results beyond the tables."""

import csv
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from specledger.foundation.errors import UserError
from specledger.reporting.tables import read_object, read_table, require

ROUND_KEYS = "position context proposals p q accept_uniforms accept_len token alone_max_difference".split()


@dataclass(frozen=True, kw_only=True)
class Played:
    """Rounds of one seed, shapes of the MTP model's tensors by name, acceptance by seed, seconds of compiling."""

    rounds: Mapping
    shapes: Mapping[str, tuple[int, ...]]
    acceptance: tuple[Mapping, ...]
    compile_s: Mapping[str, tuple[float, ...]]


def read_rounds(path: Path) -> Mapping:
    """round.json, with every key of a round there."""
    record = read_object(path)
    for key in ("rounds", "symbols"):
        if key not in record:
            raise UserError(f"{path}: key {key} is missing")
    absent = [key for found in record["rounds"] for key in ROUND_KEYS if key not in found]
    if absent:
        raise UserError(f"{path}: key {absent[0]} is missing")
    return MappingProxyType(record)


def tensor_shapes(path: Path) -> dict[str, tuple[int, ...]]:
    """Shapes of a safetensors file by name, from its header: 8 bytes of length, then JSON."""
    with require(path).open("rb") as file:
        try:
            header = json.loads(file.read(int.from_bytes(file.read(8), "little")))
        except (ValueError, MemoryError, OverflowError) as error:
            raise UserError(f"{path}: damaged ({error}); delete it and run snakemake again") from None
    return {name: tuple(entry["shape"]) for name, entry in header.items() if name != "__metadata__"}


def acceptance_of(path: Path, seed: int) -> list[dict]:
    """Accepted and examined proposals of each method over a seed's timed texts."""
    counts: dict[tuple, list[int]] = {}
    with require(path).open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            timed = row.get("copy", "0") == "0" and row.get("clocked", "1").lower() in ("1", "true")
            if row["drafter"] == "none" or not timed:
                continue
            found = counts.setdefault((row["engine"], row["drafter"], int(row["gamma"])), [0, 0])
            found[0] += int(float(row["accepted"]))
            found[1] += int(float(row["examined"]))
    return [
        {"seed": seed, "engine": engine, "drafter": drafter, "gamma": gamma, "alpha": accepted / examined}
        for (engine, drafter, gamma), (accepted, examined) in counts.items()
        if examined
    ]


def compile_seconds(paths: Iterable[Path]) -> dict[str, tuple[float, ...]]:
    """Seconds of compiling by engine, one for each file (a seed's engines.csv) that has any."""
    found: dict[str, tuple[float, ...]] = {}
    for path in paths:
        for row in read_table(path, "engine compile_s").rows:
            if row["compile_s"]:  # 0 where nothing is compiled
                found[row["engine"]] = (*found.get(row["engine"], ()), row["compile_s"])
    return found


def read_played(results: Path, seeds: tuple[int, ...]) -> Played:
    """UserError names the first file or key that is missing."""
    first = min(seeds)
    model = results / "models" / "mtp" / str(first)
    shapes = tensor_shapes(model / "model.safetensors") | tensor_shapes(model / "heads.safetensors")
    runs = [row for seed in sorted(seeds) for row in acceptance_of(results / "sweep" / str(seed) / "runs.csv", seed)]
    return Played(
        rounds=read_rounds(results / "acceptance" / str(first) / "round.json"),
        shapes=MappingProxyType(shapes),
        acceptance=tuple(MappingProxyType(row) for row in runs),
        compile_s=MappingProxyType(compile_seconds(results / "sweep" / str(seed) / "engines.csv" for seed in seeds)),
    )
