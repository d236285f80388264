"""What the evidence on the distribution says in words; every sentence with a verdict is chosen by the numbers."""

from specledger.reporting import formats
from specledger.reporting.document import Paragraph
from specledger.reporting.formats import known
from specledger.reporting.study import Study
from specledger.reporting.tables import Row
from specledger.reporting.views import largest, least
from specledger.reporting.wording import Wording
from specledger.sampling.distributions import SETTINGS

ROUNDING = 1e-12  # what float64 may leave between two exact laws of a block
LEVEL = 0.001
CORRECT = frozenset({"correct", "correct-decoder"})


def pooled_contexts(study: Study) -> Row:
    """The row of contexts.csv that takes all drafters together."""
    table = study.tables["contexts"]
    return (table.where(drafter="all") or table.rows)[0]


def contexts_each(study: Study) -> Row:
    """The row of one drafter: p is the same for each of them, so it holds all positions that were judged."""
    return next((row for row in study.tables["contexts"].rows if row["drafter"] != "all"), pooled_contexts(study))


def family_p(row: Row) -> float | None:
    """The summed χ²'s p-value; Fisher's is too liberal on p-values of pooled cells to decide anything."""
    return row["sum_p"]


def right_rules_rejected(study: Study) -> tuple[Row, ...]:
    """Rows of the battery in which the right rule itself was rejected."""
    return tuple(row for row in study.tables["controls"].rows if row["rule"] in CORRECT and row["caught"])


def departures(study: Study, words: Wording) -> list[str]:
    """Where the output departs from the target, each as a phrase; empty where nowhere."""
    summary, pooled = study.summary, family_p(pooled_contexts(study))
    everywhere = known(pooled) and pooled < LEVEL
    found = {
        "oracle": known(summary["oracle_max"]) and summary["oracle_max"] > ROUNDING,
        "positions": summary["acceptance_rejected"],
        "contexts": summary["contexts_holm_rejected"],
        "pooled": everywhere,
        "sequences": summary["sequences_rejected"],
    }
    values = {"pooled_p": formats.p_value(pooled)}
    return [words.say(f"answer.where_{key}", **values) for key, here in found.items() if here]


def trust(study: Study) -> str:
    """Whether the tests proved that they can fail: the key of the sentence that says so."""
    summary = study.summary
    if not summary["controls_expected"]:
        return "trust_none"
    if summary["controls_caught_of_expected"] < summary["controls_expected"]:
        return "trust_missed"
    if right_rules_rejected(study):
        return "trust_right"
    if not summary["false_alarms_inside"]:
        return "trust_alarms"
    if not summary["controls_unseen"]:
        return "trust_all"
    return "trust_lucky" if outcomes(study)["lucky"] else "trust_unseen"


def tests_made(study: Study, words: Wording) -> str:
    """The tests on draws that were made, in one phrase; empty where nothing could be tested."""
    families = {"positions": "acceptance_tested", "contexts": "contexts_tested", "sequences": "sequences_tested"}
    return words.listed([words.say(f"answer.made_{name}") for name, key in families.items() if study.summary[key]])


def kept(study: Study, words: Wording) -> Paragraph:
    """Was the distribution kept, and could the tests have told: the first of the three answers."""
    summary = study.summary
    where, made = departures(study, words), tests_made(study, words)
    different = summary["greedy_total"] - summary["greedy_identical"]
    key = "rejected" if where else "untested" if not made else "greedy_differs" if different else "kept"
    values = {"where": words.listed(where), "different": formats.whole(different), "made": made}
    return words.spans(f"answer.{key}", **values) + words.joint + words.spans(f"answer.{trust(study)}")


def summary_values(study: Study) -> dict[str, str]:
    """Counts of the evidence that any text may quote."""
    summary = study.summary
    whole = {
        "tests": "acceptance_tested", "rejected": "acceptance_rejected", "contexts": "contexts_tested",
        "contexts_rejected": "contexts_holm_rejected", "sequence_tests": "sequences_tested",
        "sequences_rejected": "sequences_rejected", "blocks": "oracle_blocks", "controls": "controls_total",
        "expected": "controls_expected", "caught": "controls_caught_of_expected",
    }  # fmt: skip
    found = {name: formats.whole(summary[key]) for name, key in whole.items()}
    return found | {
        "oracle": formats.scientific(summary["oracle_max"]),
        "context_draws": formats.whole(largest(row["draws"] for row in study.tables["contexts"].rows)),
        "unseen": formats.whole(len(summary["controls_unseen"])),
        "lucky": formats.whole(len(outcomes(study)["lucky"])),
    }


def fault_names(words: Wording, rules: list[str]) -> str:
    """Broken rules in plain words, in one phrase; what has no words keeps its id."""
    return words.raw("page.list_apart").join(words.name("fault", rule) for rule in rules)


def caught_by(names: str | None) -> list[str]:
    """The tests of a `caught_by` cell."""
    return [name.strip() for name in (names or "").split(",") if name.strip()]


def test_names(words: Wording, names: str | None) -> str:
    """The tests of a `caught_by` cell in words, in their order; empty where nothing caught it."""
    return words.raw("page.list_joint").join(words.name("test", name) for name in caught_by(names))


def outcomes(study: Study) -> dict[str, object]:
    """What the battery came to: the missed, the foretold misses, those caught against expectation."""
    rows = [row for row in study.tables["controls"].rows if row["rule"] not in CORRECT]
    return {
        "missed": [row["rule"] for row in rows if row["expected_caught"] and not row["caught"]],
        "unseen": [row["rule"] for row in rows if not row["expected_caught"] and not row["caught"]],
        "lucky": [row["rule"] for row in rows if not row["expected_caught"] and row["caught"]],
        "right": right_rules_rejected(study),
    }


def positions_key(study: Study) -> str:
    """What the tests at many positions found: the key of the sentence."""
    summary, pooled = study.summary, family_p(pooled_contexts(study))
    if not summary["contexts_tested"]:
        return "positions_untested"
    if summary["contexts_holm_rejected"]:
        return "positions_found"
    return "positions_pooled" if known(pooled) and pooled < LEVEL else "positions_clean"


def sequences_key(study: Study) -> str:
    """What the tests on whole texts found: the key of the sentence."""
    if not study.summary["sequences_tested"]:
        return "sequences_untested"
    return "sequences_found" if study.summary["sequences_rejected"] else "sequences_clean"


def controls_text(study: Study) -> list[str]:
    """The keys of the sentences on the battery, by what happened in it."""
    found = outcomes(study)
    keys = ["controls_missed" if found["missed"] else "controls_all"]
    keys.append("right_rejected" if found["right"] else "right_passed")
    return keys + [f"controls_{key}" for key in ("unseen", "lucky") if found[key]]


def proof_values(study: Study, words: Wording) -> dict[str, str]:
    """What the texts of the section quote."""
    found, right = outcomes(study), right_rules_rejected(study)
    sequences, alarms = study.tables["sequences"].rows, study.tables["false_alarms"].rows
    pooled, gamma = pooled_contexts(study), largest(row["gamma"] for row in sequences)
    outside = [words.name("test", row["test"]) for row in alarms if not row["inside"]]
    counts = {f"{key}_count": formats.whole(len(found[key])) for key in ("missed", "unseen", "lucky")}
    lists = {f"{key}_list": fault_names(words, found[key]) for key in ("missed", "unseen", "lucky")}
    return {
        **counts,
        **lists,
        "right_tests": words.listed([test_names(words, row["caught_by"]) or formats.MISSING for row in right]),
        "right_p": formats.p_value(least(row["p_value"] for row in right)),
        "panel": formats.whole(contexts_each(study)["tested"]),
        "pooled_p": formats.p_value(family_p(pooled)),
        "sequence_texts": formats.whole(largest(row["texts"] for row in sequences)),
        "sequence_gamma": formats.whole(gamma),
        "grams": words.say(
            "sections.proof." + ("triples" if any(r["test"] == "3-gram" for r in sequences) else "pairs")
        ),
        "block": formats.whole(gamma + 1 if known(gamma) else None),
        "settings_count": formats.whole(len({tuple(r[name] for name in SETTINGS) for r in sequences})),
        "alarm_repeats": formats.whole(largest(row["repeats"] for row in alarms)),
        "alarm_most": formats.percent(largest(row["hi"] for row in alarms), 1),
        "alarm_level": formats.setting(largest(row["level"] for row in alarms)),
        "outside": words.listed(outside),
    }


def beta_inside(row: Row) -> bool:
    """Whether the interval of the acceptance holds β, what it must come to."""
    ends = (row["acceptance_lo"], row["beta"], row["acceptance_hi"])
    return all(map(known, ends)) and ends[0] <= ends[1] <= ends[2]


def power_values(study: Study) -> dict[str, str]:
    """What the draws at one position could have seen."""
    rows = study.tables["acceptance"].rows
    leaks = [row["detectable_leak"] for row in rows if known(row["detectable_leak"])]
    return {
        "rows": formats.whole(len(rows)),
        "leak_least": formats.percent(min(leaks, default=None), 1),
        "leak_most": formats.percent(max(leaks, default=None), 1),
        "blind": formats.whole(len(rows) - len(leaks)),
        "plausible": formats.percent(pooled_contexts(study)["plausible_share"], 1),
        "plausible_n": formats.whole(contexts_each(study)["contexts"]),
        "tv_bound": formats.small(largest(row["tv_bound"] for row in rows), 4),
        "beta_inside": formats.whole(sum(map(beta_inside, rows))),
    }


def power_keys(study: Study) -> list[str]:
    """The sentences on what the draws could see; the chapter's TV only where its corpus was used."""
    leaks = [known(row["detectable_leak"]) for row in study.tables["acceptance"].rows]
    keys = ["power" if all(leaks) else "power_some" if any(leaks) else "power_none"]
    share = pooled_contexts(study)["plausible_share"]
    if study.corpus["tiny_shakespeare"] and known(share):
        keys.append("plausible_some" if share > 0 else "plausible_none")
    return keys
