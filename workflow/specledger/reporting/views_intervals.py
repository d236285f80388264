"""Every kind of interval and bound that the report shows: where, by what method, at which level, from how many."""

from specledger.reporting import formats
from specledger.reporting.document import View, cell
from specledger.reporting.formats import known
from specledger.reporting.proof.figure import BAND
from specledger.reporting.study import Study
from specledger.reporting.views import columns, largest, view
from specledger.reporting.wording import Wording


def kinds(study: Study) -> list[tuple[str, float | None, float | None]]:
    """Key, level and n of each kind that this study has; a level is None where one seed gives no interval."""
    tables, seeds = study.tables, len(study.seeds)
    difference = tables["differences"].rows[0]
    alarms, contexts = tables["false_alarms"].rows, tables["contexts"].rows

    def most(table: str, column: str) -> float | None:
        return largest(row[column] for row in tables[table].rows)

    several = seeds > 1
    predicted = any("prediction" in (row["interval"] or "") for row in tables["claims"].rows)
    found = [
        ("seeds", study.level if several else None, seeds),
        ("pairs", study.level if several else None, seeds),
        ("paired", difference["level"] if several else None, difference["n"]),
        ("equivalence", 0.9 if known(difference["tost_lo"]) else None, difference["n"]),
        ("prediction", study.level if several else None, seeds) if predicted else None,
        ("cluster", 0.95, most("independence", "texts")),
        ("wilson", 0.95, most("acceptance", "draws")),
        ("clopper", 0.95, largest(row["tested"] for row in contexts)),
        ("alarms", 0.999, largest(row["repeats"] for row in alarms)),
        ("quantile", 0.999, most("acceptance", "resamples")),
        ("bound", 0.95, most("acceptance", "draws")),
        ("band", BAND, largest(row["tested"] for row in contexts if row["drafter"] != "all")),
    ]
    return [kind for kind in found if kind is not None]


def intervals(study: Study, words: Wording) -> View:
    """A row a kind."""
    rows = []
    for key, level, n in kinds(study):
        text = {part: words.say(f"kinds.{key}.{part}") for part in ("where", "method")}
        shown = formats.percent(level, 0 if level != 0.999 else 1)
        rows.append(
            (
                cell(text["method"], sort=text["method"]),
                cell(text["where"], sort=text["where"]),
                cell(shown, sort=level, note="" if known(level) else words.say("kinds.alone")),
                cell(words.say(f"kinds.{key}.of", n=formats.whole(n)), sort=n),
            )
        )
    return view(words, "intervals", columns(words, "method wide_where level n"), rows)
