"""What the clock's tables say in words; every sentence with a verdict is chosen by the numbers."""

from collections.abc import Mapping

from specledger.reporting import formats
from specledger.reporting.findings import method_names
from specledger.reporting.formats import known, number, percent, times
from specledger.reporting.study import Study
from specledger.reporting.tables import Row
from specledger.reporting.views import largest
from specledger.reporting.wording import Wording

ALL = "all"
LEAST_SHARE = 1e-4


def _row_words(words: Wording, row: Mapping | None) -> str:
    return words.say("sections.time.row", **method_names(words, row)) if row else formats.MISSING


def shown_share(value: float | None) -> str:
    """A share in percent; one that would print as zero is below what is printed."""
    nearly_none = known(value) and 0 < abs(value) < LEAST_SHARE
    return f"< {percent(LEAST_SHARE, 2)}" if nearly_none else percent(value, 2)


def adds_up(study: Study, words: Wording) -> tuple[str, dict[str, str]]:
    """Whether the parts of every row add up: the key of the sentence, and its values."""
    found = study.summary["time"]
    key = "adds_up" if found["rows_that_add_up"] == found["rows"] else "adds_not_up"
    return key, {
        "rows": formats.whole(found["rows"]),
        "good": formats.whole(found["rows_that_add_up"]),
        "off": shown_share(abs(found["worst_off"]["off"])),
        "off_row": _row_words(words, found["worst_off"]),
        "other": shown_share(found["worst_other"]["other_share"]),
        "other_row": _row_words(words, found["worst_other"]),
        "off_limit": percent(found["off_limit"]),
        "other_limit": percent(found["other_limit"]),
    }


def _r2(value: float | None) -> str:
    return number(value, 3)


def theory(study: Study, words: Wording) -> tuple[str, dict[str, str]]:
    """How well theorem and full costs meet the clock, over all rows."""
    fit = study.summary["cost_model"].get(ALL)
    if not fit:
        return "theory_unknown", {}
    key = "theory_meets" if fit["within"] == fit["n"] else "theory_misses"
    return key, {
        "fit_n": formats.whole(fit["n"]),
        "within": formats.whole(fit["within"]),
        "limit": percent(fit["limit"]),
        "r2": _r2(fit["r2"]),
        "worst": percent(fit["worst_miss"], 1),
        "worst_row": _row_words(words, fit["worst_row"]),
        "theorem_n": formats.whole(fit["theorem38_n"]),
        "theorem_r2": _r2(fit["theorem38_r2"]),
        "theorem_worst": percent(fit["theorem38_worst_miss"], 1),
    }


def by_engine(study: Study, words: Wording) -> str:
    """R² of the full costs by engine, in a phrase."""
    fits = [(engine, fit) for engine, fit in study.summary["cost_model"].items() if engine != ALL]
    order = {engine: place for place, engine in enumerate(study.tables["ledger"].values("engine"))}
    fits.sort(key=lambda pair: order.get(pair[0], len(order)))
    said = (
        words.say(
            "sections.time.engine_fit",
            engine=words.name("engine", engine),
            r2=_r2(fit["r2"]),
            worst=percent(fit["worst_miss"], 1),
        )
        for engine, fit in fits
    )
    return words.listed(list(said))


def _largest_loss(rows: tuple[Row, ...]) -> Row | None:
    losses = [row for row in rows if row["step"] not in ("forwards_saved", "pairs")]
    return min(losses, key=lambda row: row["factor"], default=None)


def waterfall(study: Study, words: Wording) -> dict[str, str] | None:
    """What the best and the worst row start from, and which step costs each most; None where there is no row."""
    table, found = study.tables["waterfall"], {}
    for case in ("best", "worst"):
        rows = table.where(overall=True, case=case)
        loss = _largest_loss(rows)
        if loss is None:
            return None
        found |= {
            f"{case}_row": _row_words(words, rows[0]),
            f"{case}_tokens": times(rows[0]["ratio_after"]),
            f"{case}_speedup": times(rows[-1]["ratio_after"]),
            f"{case}_step": words.name("step", loss["step"]),
            f"{case}_factor": number(loss["factor"], 2),
        }
    return found


def best_gamma(study: Study) -> tuple[str, dict[str, str]]:
    """How often the predicted γ is the best one, and what the worst prediction costs."""
    rows = study.tables["best_gamma"].rows
    if not rows:
        return "gamma_unknown", {}
    agreed = sum(bool(row["agrees"]) for row in rows)
    off = [row[name] for row in rows for name in ("loss_if_one_less", "loss_if_one_more")]
    key = "gamma_agrees" if agreed == len(rows) else "gamma_differs"
    return key, {
        "agreed": formats.whole(agreed),
        "choices": formats.whole(len(rows)),
        "price": percent(largest(row["loss_if_predicted"] for row in rows), 1),
        "off_one": percent(largest(off), 1),
    }


def _percents(value: float) -> str:
    return percent(value / 100, 1)


def _clocks(lo: float | None, hi: float | None, limit: float) -> str:
    """Which sentence the interval of the clocks' cost decides on."""
    if not known(lo) or not known(hi):
        return "clocks_unknown"
    return "clocks_cheap" if hi <= limit else "clocks_dear" if lo > limit else "clocks_undecided"


def noise(study: Study, words: Wording) -> tuple[list[str], dict[str, str]]:
    """Whether a pair of the same is told apart, and what the clocks cost: keys of sentences and values."""
    found = study.summary["noise"]
    judged, inside = found["aa_judged"], found["aa_inside"]
    keys = ["noise_unknown" if not judged else "noise_inside" if judged == inside else "noise_outside"]
    if known(found["clock_percent"]):
        keys.append(_clocks(found["clock_percent_lo"], found["clock_percent_hi"], found["clock_limit_percent"]))
    return keys, {
        "judged": formats.whole(judged),
        "inside": formats.whole(inside),
        "clock": number(found["clock_percent"], 1),
        "clock_hi": number(found["clock_percent_hi"], 1),
        "clock_spread": formats.interval(found["clock_percent_lo"], found["clock_percent_hi"], _percents),
        "clock_engine": words.name("engine", found["clock_engine"]),
        "clock_limit": formats.setting(found["clock_limit_percent"]),
    }


def engines(study: Study, words: Wording) -> tuple[list[str], dict[str, str]]:
    """Which engines are missing, and whether those that are there write the same texts."""
    missing, texts = study.summary["engines_missing"], study.summary["agreement_texts"]
    same = study.summary["agreement_identical"]
    margin, unknown = study.summary["agreement_margin"], study.summary["agreement_margins_unknown"]
    rounding = not unknown and known(margin) and margin < study.summary["agreement_limit"]
    keys = ["engines_missing" if missing else "engines_all"]
    if texts:
        keys.append("agreement_all" if texts == same else "agreement_some" if rounding else "agreement_other")
    if texts > same and unknown:
        keys.append("agreement_unknown")
    whys = {words.name("engine", engine): words.told(why) or formats.MISSING for engine, why in missing.items()}
    reasons = [f"{engine} ({why})" for engine, why in whys.items()]
    return keys, {
        "missing": words.listed(reasons),
        "texts": formats.whole(texts),
        "same_texts": formats.whole(same),
        "parted": formats.whole(texts - same),
        "margin": formats.scientific(margin),
        "margin_limit": formats.scientific(study.summary["agreement_limit"]),
        "margins_unknown": formats.whole(unknown),
    }
