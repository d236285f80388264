"""Results that a study has only where somebody made them: the comparisons of benchmarks/, and the audit."""

from pathlib import Path

from specledger.reporting.tables import Table, read_table
from specledger.tables import columns


def _apart(folder: str, names: str, texts: str = "") -> columns.Table:
    """What the report reads of a table in results/<study>/<folder>; `texts` are texts by this table's own meaning."""
    told = (columns.Column(names, ""), columns.Column(texts, "", columns.WORDS))
    return columns.Table(title="", folder=folder, columns=told)


EXTRAS = {
    "peers": _apart(
        "peers",
        "program engine method drafter gamma tokens repeats seconds seconds_lo seconds_hi tokens_per_s "
        "ratio_to_ours ratio_to_ours_lo ratio_to_ours_hi interval",
    ),
    "training_speed": _apart(
        "peers",
        "model loop precision tokens_per_s tokens_per_s_lo tokens_per_s_hi ratio ratio_lo ratio_hi threads device",
    ),
    "audit": _apart(
        "audit",
        "temperature top_k top_p min_p repetition_penalty n test p_holm detectable_tv_draft detectable_tv_any "
        "tokens_per_forward seconds_per_text",
        texts="system version mode prompt verdict control expected",
    ),
}


def extra(results: Path, name: str) -> Table | None:
    """One such table; None where it was not made."""
    path = Path(results) / EXTRAS[name].path(name)
    return read_table(path, table=EXTRAS[name]) if path.is_file() else None
