"""What the results say in a sentence: the banners, and the texts' values."""

import re
from collections.abc import Mapping

from specledger.reporting import formats
from specledger.reporting.document import Banner
from specledger.reporting.formats import MISSING, known, number, times
from specledger.reporting.labels import is_apart
from specledger.reporting.proof.facts import summary_values
from specledger.reporting.rule.figure import Chosen
from specledger.reporting.study import Study, has_trees
from specledger.reporting.wording import Wording, shape_of

GPU = re.compile(r"nvidia|geforce|tesla|quadro|cuda|\brtx|\bgtx|instinct|radeon", re.IGNORECASE)


def on_cpu(provenance: Mapping) -> bool:
    """Whether no GPU was at work, by the devices' names (a record `cpu` of the provenance goes first)."""
    if provenance.get("cpu") is not None:
        return bool(provenance["cpu"])
    return bool(provenance["devices"]) and not any(GPU.search(name) for name in provenance["devices"])


def setting(config: Mapping, path: str, default: object = None) -> object:
    """The value under a dotted key of a config."""
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
    in_csv = words.raw("figures.in_csv") if any(is_apart(row["drafter"]) for row in ledger.rows) else ""
    return summary_values(study) | {
        "n": str(len(study.seeds)),
        "level": formats.percent(study.level),
        "method": words.told(summary["interval"].get("method") or "t over seeds"),
        "difference_method": words.told(summary["paired_difference"].get("method") or "paired t over seeds"),
        "seed": str(study.shown_seed),
        "elsewhere": words.raw("figures.elsewhere") if has_trees(study.tables) else in_csv,
        "in_csv": in_csv,
        "draws": formats.whole(draws),
        "fed_short": formats.whole(prefix["fed_short"]),
        "fed_long": formats.whole(prefix["fed_long"]),
        "prefix32": formats.small(summary["prefix_max"], 1),
        "prefix64": formats.small(summary.get("prefix_max_float64"), 1),
        "identical": formats.whole(summary["greedy_identical"]),
        "total": formats.whole(summary["greedy_total"]),
        "repeats": formats.whole(repeats),
        "stop_blocks": formats.whole(setting(config, "sweep.stop.blocks")),
        "stop_share": formats.percent(setting(config, "sweep.stop.half_width")),
        "tokens": formats.whole(max((row["tokens"] for row in ledger.rows if known(row["tokens"])), default=None)),
        "temperature": formats.setting(ledger.rows[0]["temperature"]),
        "context": formats.whole(setting(config, "model.context", prefix["fed_long"])),
        "mtp_weight": formats.setting(setting(config, "training.mtp_weight")),
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


def method_names(words: Wording, row: Mapping) -> dict[str, str]:
    """The names of a method, for a text."""
    return {
        "drafter": words.name("drafter", row["drafter"]),
        "engine": words.name("engine", row["engine"]),
        "gamma": formats.whole(row["gamma"]),
        "size": words.size(row["drafter"], row["gamma"]),
    }


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
            **dict(zip(("lo", "hi"), formats.between(lo, hi, number, 4), strict=True)),
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
    """The row with the most tokens per round, and its measured speed-up."""
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


def check_costs(study: Study, words: Wording) -> dict[str, str]:
    """What the check of a chain's positions took over that of one, from the lowest to the highest."""
    chains = [row for row in study.tables["ledger"].rows if row["gamma"] and shape_of(row["drafter"]) == "chain"]
    found = [row["v"] for row in chains if known(row["v"])]
    if not found:
        return {"measured": ""}
    least, most = number(min(found), 2), number(max(found), 2)
    key = "measured" if least != most else "measured_one"
    return {"measured": words.say(f"questions.wasted.{key}", least=least, most=most)}


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
