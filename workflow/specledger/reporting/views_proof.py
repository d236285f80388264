"""Tables of “Would a fault show?”: oracle, many positions, sequences, broken rules, false alarms."""

from specledger.reporting import formats
from specledger.reporting.document import Cell, Column, View, cell
from specledger.reporting.formats import known
from specledger.reporting.proof.facts import CORRECT, LEVEL, ROUNDING, caught_by, test_names
from specledger.reporting.study import Study
from specledger.reporting.tables import Row
from specledger.reporting.views import columns, count, grouped, largest, named, num, plainly, view, yes_no
from specledger.reporting.wording import Wording
from specledger.sampling.distributions import SETTINGS

MOST_ROWS = 60
CERTAIN = {"accounting", "range"}  # what they hold must be so, whatever was drawn
TESTS = ("1-gram", "TV", "2-gram", "3-gram", "acceptance", "accounting", "range")


def judged(value: float | None, limit: float = LEVEL, note: str = "") -> Cell:
    """A p-value; one below the limit is marked."""
    low = known(value) and value < limit
    return cell(formats.p_value(value), sort=value if known(value) else None, note=note, mark="no" if low else "")


def oracle(study: Study, words: Wording) -> View:
    """Largest deviation of an enumerated block by drafter and γ."""
    rows = []
    for row in study.tables["oracle"].rows:
        value = row["max_abs_deviation"]
        beyond = known(value) and value > ROUNDING
        rows.append(
            (
                cell(words.name("weights", row["model"]), sort=row["model"]),
                named(words, "drafter", row["drafter"]),
                *(count(row[key]) for key in ("gamma", "vocabulary", "blocks")),
                cell(formats.scientific(value), sort=value, mark="no" if beyond else ""),
            )
        )
    heads = columns(words, "weights drafter gamma vocabulary blocks deviation")
    return view(words, "oracle", heads, rows, source="oracle")


def contexts(study: Study, words: Wording) -> View:
    """The two families of tests over many positions, by drafter."""
    rows = []
    for row in study.tables["contexts"].rows:
        spread = formats.interval(row["below_05_lo"], row["below_05_hi"], formats.percent, decimals=1)
        share = row["below_05"]
        degrees = f"χ² {formats.whole(row['sum_chi2'])} / {formats.whole(row['sum_df'])}"
        rejected = row["holm_rejected"]
        rows.append(
            (
                named(words, "drafter", row["drafter"]),
                count(row["tested"]),
                plainly(row["fisher_p"], formats.p_value),
                judged(row["sum_p"], note=degrees if known(row["sum_df"]) else ""),
                cell(formats.whole(rejected), sort=rejected, mark="no" if rejected else ""),
                count(row["bh_rejected"]),
                num(share, 1, formats.percent, note=spread),
                plainly(row["ks_p"], formats.p_value),
            )
        )
    heads = columns(words, "drafter positions fisher sum_p holm bh below ks")
    values = {"draws": formats.whole(study.tables["contexts"].rows[0]["draws"])}
    return view(words, "contexts", heads, rows, values=values, source="contexts")


def _sampling(words: Wording, row: Row) -> Cell:
    """T = 1, top-k 10, top-p 0.9: what is set."""
    words = {name: name.replace("_", "-") for name in SETTINGS} | {"temperature": "T ="}
    parts = [f"{words[name]} {formats.setting(row[name])}" for name in SETTINGS if known(row[name])]
    return cell(", ".join(parts), sort=", ".join(parts))


def _tested(row: Row | None) -> Cell:
    """One test of the complete decoder; marked where it is rejected after Holm over the whole table."""
    if row is None:
        return cell("")
    mark = "no" if known(row["holm_p"]) and row["holm_p"] < LEVEL else ""
    if row["test"] == "accounting":
        return cell(formats.whole(row["statistic"]), sort=row["statistic"], mark=mark)
    if known(row["df"]):
        note = f"χ² {formats.whole(row['statistic'])} / {formats.whole(row['df'])}"
    else:
        note = f"z = {formats.number(row['statistic'], 2)}" if known(row["statistic"]) else ""
    return cell(formats.p_value(row["p_value"]), sort=row["p_value"], note=note, mark=mark)


def _present(rows: tuple[Row, ...]) -> list[str]:
    there = list(dict.fromkeys(row["test"] for row in rows))
    return sorted(there, key=lambda test: TESTS.index(test) if test in TESTS else len(TESTS))


def sequences(study: Study, words: Wording) -> View:
    """A row a decoder and setting, a column a test."""
    table = study.tables["sequences"]
    tests = _present(table.rows)
    keys = ("engine", "drafter", "gamma", *SETTINGS)
    rows = []
    for found in grouped(table.rows, *keys).values():
        one, by_test = found[0], {row["test"]: row for row in found}
        rows.append(
            (
                named(words, "engine", one["engine"]),
                named(words, "drafter", one["drafter"]),
                count(one["gamma"]),
                _sampling(words, one),
                count(one["texts"]),
                *(_tested(by_test.get(test)) for test in tests),
            )
        )
    heads = columns(words, "engine drafter gamma setting texts")
    heads += tuple(Column(label=words.name("test_column", test), numeric=True) for test in tests)
    return view(words, "sequences", heads, rows, source="sequences", most=MOST_ROWS)


def outcome(words: Wording, row: Row) -> Cell:
    """What became of a rule: caught, missed, not detectable at this n; for the right rule passed or rejected."""
    if row["rule"] in CORRECT:
        key, mark = ("rejected", "not-reproduced") if row["caught"] else ("passed", "reproduced")
    elif row["caught"]:
        key, mark = ("caught" if row["expected_caught"] else "lucky"), "reproduced"
    else:
        key, mark = ("missed", "not-reproduced") if row["expected_caught"] else ("unseen", "inconclusive")
    text = words.say(f"outcomes.{key}")
    return cell(text, sort=text, mark=mark)


def least_p(row: Row) -> float | None:
    """The least p of a rule; None where a check without chance caught it, of counters or of numbers, which has none."""
    tests = set(caught_by(row["caught_by"]))
    certain = (tests and tests <= CERTAIN) or (row["p_value"] == 0 and tests & CERTAIN)
    return None if certain else row["p_value"]


def controls(study: Study, words: Wording) -> View:
    """The battery: each broken rule, what caught it, and how surely."""
    rows = []
    for row in study.tables["controls"].rows:
        name, tests = words.name("fault", row["rule"]), test_names(words, row["caught_by"])
        rows.append(
            (
                cell(name, sort=name, note=words.told(row["source"])),
                outcome(words, row),
                cell(tests, sort=tests or None),
                plainly(least_p(row), formats.p_value),
                num(row["power"], 3),
                cell(formats.whole(row["n"]), sort=row["n"], note=words.name("sample_of", row["kind"])),
            )
        )
    heads = columns(words, "fault outcome caught_by least_p power n")
    return view(words, "controls", heads, rows, source="controls", most=MOST_ROWS, paper=True)


def false_alarms(study: Study, words: Wording) -> View:
    """How often the tests reject the right rule, beside how often they may."""
    rows = []
    for row in study.tables["false_alarms"].rows:
        spread = formats.interval(row["lo"], row["hi"], formats.percent, decimals=1)
        rows.append(
            (
                cell(words.name("test", row["test"]), sort=row["test"]),
                *(count(row[key]) for key in ("repeats", "n", "rejected")),
                num(row["rate"], 1, formats.percent, note=spread),
                num(row["level"], 1, formats.percent),
                yes_no(words, row["inside"]),
            )
        )
    heads = columns(words, "test repeats draws_each rejected rate level inside")
    values = {"repeats": formats.whole(largest(row["repeats"] for row in study.tables["false_alarms"].rows))}
    return view(words, "false_alarms", heads, rows, values=values, source="false_alarms")
