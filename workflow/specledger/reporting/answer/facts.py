"""The answer in brief: was the distribution kept, the best speed-up, and theory beside the clock."""

from collections.abc import Mapping

from specledger.reporting import formats
from specledger.reporting.document import Paragraph
from specledger.reporting.findings import method_names
from specledger.reporting.formats import known, number, times
from specledger.reporting.inline import Span
from specledger.reporting.proof.facts import kept
from specledger.reporting.study import Study
from specledger.reporting.tables import Row
from specledger.reporting.wording import Wording


def answer(study: Study, words: Wording) -> tuple[Paragraph, ...]:
    """The three answers: was the distribution kept, the best speed-up, and theory beside the clock."""
    return kept(study, words), _speed(study, words), _gap(study, words)


def _selection(study: Study, words: Wording) -> str:
    """Among how many rows the best one was picked: those that keep the distribution, where there are any."""
    methods = [row for row in study.tables["ledger"].rows if row["drafter"] != "none"]
    lossless = [row for row in methods if row["lossless"]]
    key = "lossless" if lossless else "all_lossy"
    picked = len(lossless or methods)
    return words.say(f"answer.selection_{key if picked > 1 else f'{key}_one'}", picked=picked, methods=len(methods))


def _fastest(study: Study, words: Wording, best: Mapping) -> str:
    """Which row writes a text in the fewest seconds, where it is another than the one of the best ratio."""
    rows = [row for row in study.tables["ledger"].rows if row["lossless"] and known(row["wall_s"])]
    own = next((row for row in rows if all(row[key] == best[key] for key in ("engine", "drafter", "gamma"))), None)
    if own is None:
        return ""
    row = min(rows, key=lambda row: row["wall_s"])
    if row is own:
        return words.say("answer.fastest_too")
    seconds = {"seconds": number(row["wall_s"], 3), "own_seconds": number(own["wall_s"], 3)}
    if row["drafter"] != "none":
        return words.say("answer.fastest_other", speedup=times(row["speedup"]), **method_names(words, row), **seconds)
    ratios = [
        one for one in rows if one["engine"] == row["engine"] and one["drafter"] != "none" and known(one["speedup"])
    ]
    top = max((one["speedup"] for one in ratios), default=None)
    said = words.say("answer.fastest_there", speedup=times(top)) if top else ""
    return words.joined(words.say("answer.fastest_plain", **method_names(words, row), **seconds), said)


def _beyond(study: Study, words: Wording, best: Mapping) -> str:
    """The largest ratio among rows that are not called lossless, where it is above the best that is."""
    methods = [row for row in study.tables["ledger"].rows if row["drafter"] != "none" and not row["lossless"]]
    rows = [row for row in methods if known(row["speedup"])]
    row = max(rows, key=lambda row: row["speedup"], default=None)
    if row is None or row["speedup"] <= best["speedup"]:
        return ""
    return words.say("answer.beyond", speedup=times(row["speedup"]), **method_names(words, row))


def _speed(study: Study, words: Wording) -> Paragraph:
    best = study.summary["best"]
    if not best or not known(best.get("speedup")):
        return words.spans("answer.no_method")
    lo, hi = best.get("lo"), best.get("hi")
    spread = words.say("answer.no_interval")
    if known(lo) and known(hi):
        method = {"method": words.told(best["method"])} if best.get("method") else {}
        low, high = formats.between(lo, hi, times)
        spread = words.say("answer.interval_words", lo=low, hi=high, **method)
    row = study.method(best["engine"], best["drafter"], best["gamma"])
    slower = "slower_lossy" if row and not row["lossless"] else "slower"
    key = slower if best["speedup"] < 1 else "single" if not known(lo) else "unsure" if lo <= 1 else "faster"
    return words.spans(
        f"answer.{key}",
        speedup=times(best["speedup"]),
        interval_words=spread,
        **method_names(words, best),
    )


def notes(study: Study, words: Wording) -> tuple[Paragraph, ...]:
    """About the best row: among how many it was picked, larger ratios that do not count, and the fewest seconds."""
    best = study.summary["best"]
    if not best or not known(best.get("speedup")):
        return ()
    said = (_selection(study, words), _beyond(study, words, best), _fastest(study, words, best))
    return tuple((Span(kind="text", text=text),) for text in said if text)


def _gap(study: Study, words: Wording) -> Paragraph:
    best = study.summary["best"]
    row: Row = study.method(best["engine"], best["drafter"], best["gamma"]) if best else {}
    if not row or not known(row["theorem38"]) or not known(row["cost_model"]) or not known(row["speedup"]):
        return words.spans("answer.gap_unknown")
    overhead, lo, hi = row.get("cost_model_overhead"), row["speedup_lo"], row["speedup_hi"]
    if not known(lo) or not known(hi):
        rest = "single"
    elif lo <= row["theorem38"] <= hi:
        rest = "noise"
    else:
        rest = "short" if row["speedup"] < row["theorem38"] else "none"
    return words.spans(
        "answer.gap",
        theorem=times(row["theorem38"]),
        speedup=times(row["speedup"]),
        alpha=number(row["alpha"], 3),
        c=number(row["c"], 3),
        v=number(row["v"], 2),
        positions=formats.whole(row["gamma"] + 1),
        cost_model=times(row["cost_model"]),
        with_overhead=words.say("answer.with_overhead", value=times(overhead)) if known(overhead) else "",
        rest=words.say(f"answer.gap_{rest}"),
    )
