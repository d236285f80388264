"""What acceptance by position, the split of the gap, and the paired difference say in words."""

from specledger.reporting import formats
from specledger.reporting.findings_proof import LEVEL
from specledger.reporting.formats import known, number
from specledger.reporting.study import Study
from specledger.reporting.tables import Row, Table
from specledger.reporting.wording import Wording

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
    for name in ("homogeneity", "geometric", "lag1"):
        count = sum(1 for row in rows if known(row[f"{name}_p"]) and row[f"{name}_p"] < LEVEL)
        key = f"sections.gamma.refuted_{'some' if count else 'none'}"
        refuted[f"{name}_refuted"] = words.say(key, count=count, methods=len(rows))
    return refuted | {"methods": formats.whole(len(rows)), "apart": formats.small(max(apart, default=None), 3)}


def rates_key(study: Study) -> str:
    """Whether acceptance depends on the position: the key of the sentence."""
    found = [row["homogeneity_p"] for row in _methods(study) if known(row["homogeneity_p"])]
    if not found:
        return "rates_unknown"
    return "rates_bent" if min(found) < LEVEL else "rates_level"


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
