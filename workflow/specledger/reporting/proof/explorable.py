"""The evidence to play with: which test catches which fault, p-values by drafter, and the exact law."""

from specledger.reporting import explorables
from specledger.reporting.document import Explorable
from specledger.reporting.formats import known, p_value, scientific
from specledger.reporting.proof.facts import CORRECT, caught_by, family_p, pooled_contexts
from specledger.reporting.study import Study
from specledger.reporting.views_proof import TESTS, least_p
from specledger.reporting.wording import Wording

OUTCOMES = ("caught", "unseen", "missed", "passed", "rejected")


def battery(study: Study, words: Wording) -> Explorable:
    """All tests are on; the p-values are those of the first drafter."""
    rows = [
        {
            "rule": row["rule"],
            "source": words.told(row["source"]),
            "kind": row["kind"],
            "caught_by": caught_by(row["caught_by"]),
            "expected": bool(row["expected_caught"]),
            "right": row["rule"] in CORRECT,
            "rejected": bool(row["caught"]),
            "p_value": least_p(row),
            "power": row["power"],
            "n": row["n"],
        }
        for row in study.tables["controls"].rows
    ]
    met = {test for row in rows for test in row["caught_by"]}
    tests = sorted(met, key=lambda test: (TESTS.index(test) if test in TESTS else len(TESTS), test))
    # The right rule first; then the faults that fewest tests see, since these need them all.
    rows.sort(key=lambda row: (not row["right"], not row["caught_by"], len(row["caught_by"])))
    bins: dict[str, list[list]] = {}
    for row in study.tables["p_values"].rows:
        bins.setdefault(row["drafter"], []).append([row["bin_lo"], row["count"], row["expected"]])
    faults = [row for row in rows if not row["right"]]
    expected = [row for row in faults if row["expected"]]
    caught = [row for row in expected if row["caught_by"]]
    summary = study.summary
    return explorables.block(
        "battery",
        words,
        {"rows": rows, "tests": tests, "bins": bins, "drafter": next(iter(bins), None)},
        names={"fault": (row["rule"] for row in rows), "test": tests, "drafter": bins}
        | {"kind": (), "sample_of": dict.fromkeys(row["kind"] for row in rows)},
        outcomes={
            "caught": words.say("explorables.battery.of", count=len(caught), total=len(expected)),
            "slipped": str(len(expected) - len(caught)),
            "oracle": scientific(summary["oracle_max"]) if known(summary["oracle_max"]) else "",
            "pooled": p_value(family_p(pooled_contexts(study))),
        },
    )
