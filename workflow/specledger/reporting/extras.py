"""Results that a study has only where somebody ran the comparisons of benchmarks/: read if they are there."""

from pathlib import Path

from specledger.reporting.tables import Table, read_table

# Where each lies under results/<study>/, and what the report reads of it.
EXTRAS = {
    "peers": (
        "peers/peers.csv",
        "program method drafter gamma tokens repeats seconds seconds_lo seconds_hi tokens_per_s",
    ),
    "training_speed": ("training_speed/training_speed.csv", "loop tokens_per_s lo hi ratio threads device"),
}


def extra(results: Path, name: str) -> Table | None:
    """One such table; None where it was not made."""
    place, columns = EXTRAS[name]
    path = Path(results) / place
    return read_table(path, columns) if path.is_file() else None
