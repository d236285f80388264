"""What the results say in a sentence: the banners, the three answers, and the texts' values."""

import re
from collections.abc import Mapping

from specledger.reporting import formats
from specledger.reporting.document import Banner, Paragraph
from specledger.reporting.drawing_rule import Chosen
from specledger.reporting.findings_proof import kept, summary_values
from specledger.reporting.formats import MISSING, known, number, times
from specledger.reporting.study import Study, has_trees
from specledger.reporting.tables import Row
from specledger.reporting.wording import Wording

GPU = re.compile(r"nvidia|geforce|tesla|quadro|cuda|\brtx|\bgtx|instinct|radeon", re.IGNORECASE)


def on_cpu(provenance: Mapping) -> bool:
    """Whether no GPU was at work, by the devices' names (a record `cpu` of the provenance goes first)."""
    if provenance.get("cpu") is not None:
        return bool(provenance["cpu"])
    return bool(provenance["devices"]) and not any(GPU.search(name) for name in provenance["devices"])


def _setting(config: Mapping, path: str, default: object = None) -> object:
    value: object = config
    for key in path.split("."):
        if not isinstance(value, Mapping) or key not in value:
            return default
        value = value[key]
    return value


def shared_values(study: Study, words: Wording) -> dict[str, str]:
    """The values that any text may quote, already in words."""
    summary, config, ledger = study.summary, study.provenance["config"], study.tables["ledger"]
    repeats = max((row["repeats"] for row in ledger.rows if known(row["repeats"])), default=None)
    prefix = study.tables["prefix"].rows[0]
    draws = max(row["draws"] for row in study.tables["acceptance"].rows)
    return summary_values(study) | {
        "n": str(len(study.seeds)),
        "level": formats.percent(study.level),
        "method": words.told(summary["interval"].get("method") or "t over seeds"),
        "difference_method": words.told(summary["paired_difference"].get("method") or "paired t over seeds"),
        "seed": str(study.shown_seed),
        "elsewhere": words.raw("figures.elsewhere") if has_trees(study.tables) else "",
        "in_table": words.raw("figures.in_table") if has_trees(study.tables) else "",
        "draws": formats.whole(draws),
        "fed_short": formats.whole(prefix["fed_short"]),
        "fed_long": formats.whole(prefix["fed_long"]),
        "prefix32": formats.small(summary["prefix_max"], 1),
        "prefix64": formats.small(summary.get("prefix_max_float64"), 1),
        "identical": formats.whole(summary["greedy_identical"]),
        "total": formats.whole(summary["greedy_total"]),
        "repeats": formats.whole(repeats),
        "tokens": formats.whole(max((row["tokens"] for row in ledger.rows if known(row["tokens"])), default=None)),
        "temperature": formats.setting(ledger.rows[0]["temperature"]),
        "context": formats.whole(_setting(config, "model.context", prefix["fed_long"])),
        "layers": formats.whole(_setting(config, "model.target.layers", None)),
        "mtp_weight": formats.setting(_setting(config, "training.mtp_weight")),
    }


def banners(study: Study, words: Wording) -> tuple[Banner, ...]:
    """What must be known before any number, the loudest first."""
    about, corpus = study.provenance, study.corpus
    found: list[Banner] = []

    def add(name: str, level: str, items: list[str] = (), **values: object) -> None:
        found.append(
            Banner(
                id=name,
                level=level,
                title=words.say(f"banners.{name}_title"),
                text=words.spans(f"banners.{name}", **values),
                items=tuple(words.told(item) for item in items),
            )
        )

    if corpus["fallback"]:
        add("fallback", "alarm", origin=corpus["origin"])
    for name in ("stale", "missing", "mixed"):
        if about[name]:
            add(name, "alarm", list(about[name]))
    if not corpus["fallback"] and not corpus["tiny_shakespeare"]:
        add("custom", "warning", origin=corpus["origin"])
    if about["quick"]:
        add("quick", "warning")
    if len(study.seeds) == 1:
        add("seed", "note")
    if on_cpu(about):
        add("cpu", "note", device=words.listed(about["devices"]))
    return tuple(found)


def answer(study: Study, words: Wording) -> tuple[Paragraph, ...]:
    """The three answers: was the distribution kept, the best speed-up, and theory beside the clock."""
    return kept(study, words), _speed(study, words), _gap(study, words)


def method_names(words: Wording, row: Mapping) -> dict[str, str]:
    """The names of a method, for a text."""
    return {
        "drafter": words.name("drafter", row["drafter"]),
        "engine": words.name("engine", row["engine"]),
        "gamma": formats.whole(row["gamma"]),
        "size": words.size(row["drafter"], row["gamma"]),
    }


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
    rows = [row for row in study.tables["ledger"].rows if not row["lossless"] and known(row["speedup"])]
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
        spread = words.say("answer.interval_words", lo=times(lo), hi=times(hi), **method)
    key = "slower" if best["speedup"] < 1 else "single" if not known(lo) else "unsure" if lo <= 1 else "faster"
    return words.spans(
        f"answer.{key}",
        speedup=times(best["speedup"]),
        interval_words=spread,
        selection=words.joined(_selection(study, words), _beyond(study, words, best), _fastest(study, words, best)),
        **method_names(words, best),
    )


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


def accept_values(chosen: Chosen, words: Wording) -> dict[str, str]:
    """What the texts on the figure of the rule quote; the context's end is enough to find the place."""
    return {
        "context": formats.visible(chosen.context[-28:]).strip(),
        "drafter": words.name("drafter", chosen.drafter),
        "positions": str(chosen.positions),
        "beta": number(chosen.beta, 3),
        "shown": str(len(chosen.bars)),
        "symbols": str(chosen.symbols),
        "draws": formats.whole(chosen.draws),
    }


def difference_values(study: Study, words: Wording) -> dict[str, str]:
    """The paired difference in words, its interval, and what the interval allows to say."""
    found = study.summary["paired_difference"]
    lo, hi = found.get("lo"), found.get("hi")
    if not known(lo) or not known(hi):
        spread, key = words.say("answer.no_interval"), "difference_none"
    else:
        ends = {
            "lo": number(lo, 4),
            "hi": number(hi, 4),
            "method": words.told(found.get("method")) or MISSING,
        }
        spread = words.say("answer.interval_words", **ends)
        key = "difference_lower" if hi < 0 else "difference_higher" if lo > 0 else "difference_noise"
    verdict = words.say(f"sections.mtp.{key}")
    return {
        "difference": number(found["mean"], 4),
        "difference_interval": spread,
        "difference_verdict": f" {verdict}",
        "verdict": verdict,
    }


def module_losses(study: Study, words: Wording) -> str:
    """Where the module, its target and the draft model ended, as a sentence."""
    rows = {row["model"]: row for row in study.tables["models"].rows}
    mtp, draft = rows.get("mtp", {}), rows.get("draft", {})
    return words.say(
        "questions.module.losses",
        module_loss=number(mtp.get("validation_mtp_loss"), 3),
        target_loss=number(mtp.get("validation_loss"), 3),
        draft_loss=number(draft.get("validation_loss"), 3),
    )


def more_is_less(study: Study, words: Wording) -> str:
    """The two largest gammas of one drafter side by side; empty where there is only one gamma."""
    ledger = study.tables["ledger"]
    for drafter in ("draft", *ledger.values("drafter")):
        rows = [row for row in ledger.where(drafter=drafter) if row["gamma"] > 0]
        rows = sorted((row for row in rows if row["engine"] == rows[0]["engine"]), key=lambda row: row["gamma"])
        if len(rows) > 1:
            low, high = rows[-2], rows[-1]
            names = {
                **method_names(words, high),
                "low": formats.whole(low["gamma"]),
                "high": formats.whole(high["gamma"]),
            }
            yields = {
                "low_tokens": number(low["tokens_per_round"], 2),
                "high_tokens": number(high["tokens_per_round"], 2),
            }
            return words.say("questions.more_is_less.measured", **names, **yields)
    return ""


def most_tokens(study: Study, words: Wording) -> str:
    """The row that yields the most tokens a round, and what its clock shows."""
    most = study.summary["most_tokens"]
    if not most:
        return ""
    row = study.method(most["engine"], most["drafter"], most["gamma"])
    tokens = row["tokens_per_round"]
    return words.say(
        "questions.forwards.most_tokens",
        **{**method_names(words, most), "tokens": number(tokens, 2)},
        share=formats.percent(1 / tokens) if known(tokens) and tokens > 0 else MISSING,
        speedup=times(row["speedup"]),
    )


def verify_costs(study: Study) -> dict[str, str]:
    """What the check of several positions took over that of one, from the cheapest to the dearest."""
    found = [row["v"] for row in study.tables["ledger"].rows if row["gamma"] and known(row["v"])]
    return {"v_least": number(min(found, default=None), 2), "v_most": number(max(found, default=None), 2)}


def cheap_values(study: Study, words: Wording) -> dict[str, str]:
    """The draft model's share of the parameters, and of the time of a forward."""
    sizes = {row["model"]: row["parameters"] for row in study.tables["models"].rows}
    costs = study.tables["forwards"].where(model="draft", positions=1)
    share = sizes["draft"] / sizes["plain"] if sizes.get("draft") and sizes.get("plain") else None
    return {
        "parameter_share": formats.percent(share),
        "c_draft": formats.percent(costs[0]["c"]) if costs else MISSING,
        "engine": words.name("engine", costs[0]["engine"]) if costs else MISSING,
    }
