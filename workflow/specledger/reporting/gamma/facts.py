"""What acceptance by position, the split of the gap, and the paired difference say in words."""

from specledger.foundation.drafters import DEPTHS, base_of
from specledger.reporting import formats
from specledger.reporting.formats import known, number
from specledger.reporting.proof.facts import LEVEL
from specledger.reporting.study import Study
from specledger.reporting.tables import Row, Table
from specledger.reporting.wording import Wording
from specledger.statistics.families import holm

TESTS = ("homogeneity", "geometric", "lag1")
HEAD_A_PLACE = {
    name for name, depth in DEPTHS.items() if depth > 1
}  # each place of a proposal is read from a head or a module of its own
STEPS = ("drift", "dependence", "ending")


def shown_engine(table: Table) -> str:
    """The engine of the figures: cached, whose texts plain decoding would write too; else the first there is."""
    engines = table.values("engine")
    return "cached" if "cached" in engines or not engines else engines[0]


def _methods(study: Study) -> list[Row]:
    """The shown engine's methods in which a position can differ from another."""
    table = study.tables["independence"]
    return [row for row in table.where(engine=shown_engine(table)) if row["gamma"] > 1]


def rates_values(study: Study, words: Wording) -> dict[str, str]:
    """Counts of methods in which eq. (1)'s coin is refuted, and how far counts and Rao–Blackwell part."""
    rows, table = _methods(study), study.tables["independence"]
    pairs = [(row["tokens_per_round"], row["tokens_per_round_rb"]) for row in table.rows]
    apart = [abs(first - second) for first, second in pairs if known(first) and known(second)]
    refuted = {}
    rejected = _rejected(rows)
    for name, methods in rejected.items():
        found = [
            f"{words.name('drafter', row['drafter'])} ({words.size(row['drafter'], row['gamma'])})" for row in methods
        ]
        key = f"sections.gamma.refuted_{'some' if found else 'none'}"
        refuted[f"{name}_refuted"] = words.say(key, list=words.listed(found))
    others = words.say("sections.gamma.others") if _bases(rows) - _bases(rejected["homogeneity"]) else ""
    return refuted | {
        "others": others,
        "methods": formats.whole(len(rows)),
        "apart": formats.small(max(apart, default=None), 3),
    }


def _bases(rows: list[Row]) -> set[str]:
    return {base_of(row["drafter"]) for row in rows}


def _rejected(rows: list[Row]) -> dict[str, list[Row]]:
    """By test the methods that Holm rejects, all tests of all methods being one family."""
    asked = [(name, row) for name in TESTS for row in rows if known(row[f"{name}_p"])]
    adjusted = holm([row[f"{name}_p"] for name, row in asked]) if asked else []
    found: dict[str, list[Row]] = {name: [] for name in TESTS}
    for (name, row), p_value in zip(asked, adjusted, strict=True):
        found[name] += [row] if p_value < LEVEL else []
    return found


def rates_key(study: Study) -> str:
    """Whether acceptance depends on the position: the key of the sentence.

    Of drafters that read a head of its own for each place it is no wonder; of others it would be.
    """
    rows = _methods(study)
    if not any(known(row["homogeneity_p"]) for row in rows):
        return "rates_unknown"
    bent = _bases(_rejected(rows)["homogeneity"])
    if not bent:
        return "rates_level"
    return "rates_bent" if bent - HEAD_A_PLACE else "rates_bent_heads"


def signed(value: float | None, decimals: int = 3) -> str:
    """A step with its sign."""
    text = number(value, decimals)
    return f"+{text}" if known(value) and value > 0 and text.strip("0.") else text


def widest_gap(study: Study, words: Wording) -> dict[str, str] | None:
    """The method that eq. (1) misses by most, taken apart; None where nothing was split."""
    rows = [row for row in study.tables["gap"].rows if all(known(row[key]) for key in ("eq1", "measured", *STEPS))]
    if not rows:
        return None
    row = max(rows, key=lambda row: abs(row["measured"] / row["eq1"] - 1))
    off = row["measured"] / row["eq1"] - 1
    return {
        "drafter": words.name("drafter", row["drafter"]),
        "gamma": formats.whole(row["gamma"]),
        "eq1": number(row["eq1"], 3),
        "measured": number(row["measured"], 3),
        "off": formats.percent(off, 1),
        **{step: signed(row[step]) for step in STEPS},
    }


def equivalence_key(study: Study) -> str:
    """What may be said on the paired difference beyond its interval.

    equivalent; small (there is a difference, within the margin); different; undecided; none (one seed).
    """
    row = study.tables["differences"].rows[0]
    if not known(row["tost_p"]):
        return "none"
    if row["verdict"] == "equivalent":
        zero_outside = known(row["lo"]) and known(row["hi"]) and not row["lo"] <= 0 <= row["hi"]
        return "small" if zero_outside else "equivalent"
    return "different" if row["verdict"] == "different" else "undecided"


def equivalence_values(study: Study, words: Wording) -> dict[str, str]:
    row = study.tables["differences"].rows[0]
    found, margin = row["detectable"], row["margin"]
    reach = "unknown" if not known(found) or not known(margin) else "short" if found > margin else "far"
    values = {
        "margin": formats.setting(margin),
        "tost_p": formats.p_value(row["tost_p"]),
        "tost_lo": number(row["tost_lo"], 4),
        "tost_hi": number(row["tost_hi"], 4),
        "detectable": number(found, 4),
        "detectable_sd": number(row["detectable_sd"], 1),
        "power": formats.setting(row["power"]),
        "seeds_n": formats.whole(row["n"]),
    }
    return values | {"reach": words.say(f"sections.mtp.reach_{reach}", **values)}
