"""Results that a study has only where somebody made them: the comparisons of benchmarks/, and the audit."""

from pathlib import Path

from specledger.reporting.tables import Table, read_table

# Where each lies under results/<study>/, and what the report reads of it.
EXTRAS = {
    "peers": (
        "peers/peers.csv",
        "program engine method drafter gamma tokens repeats seconds seconds_lo seconds_hi tokens_per_s "
        "ratio_to_ours ratio_to_ours_lo ratio_to_ours_hi interval",
    ),
    "training_speed": (
        "peers/training_speed.csv",
        "model loop precision tokens_per_s tokens_per_s_lo tokens_per_s_hi ratio ratio_lo ratio_hi threads device",
    ),
    "audit": (
        "audit/audit.csv",
        "system version mode prompt temperature top_k top_p min_p repetition_penalty n test p_holm verdict "
        "detectable_tv_draft detectable_tv_any tokens_per_forward seconds_per_text control expected",
    ),
}


def extra(results: Path, name: str) -> Table | None:
    """One such table; None where it was not made."""
    place, columns = EXTRAS[name]
    path = Path(results) / place
    return read_table(path, columns) if path.is_file() else None
