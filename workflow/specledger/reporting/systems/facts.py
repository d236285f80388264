"""What the systems, typical acceptance and the trees say in words."""

from specledger.foundation.drafters import base_of
from specledger.reporting import formats
from specledger.reporting.formats import known, number, percent, times
from specledger.reporting.study import Study
from specledger.reporting.views_bounds import spread_of
from specledger.reporting.wording import Wording

VERDICTS = ("reached", "ruled out by v(N)", "not reached", "inconclusive")
SECOND = 1  # the place of the second draft token among the acceptances by position


def counts(study: Study) -> dict[str, str]:
    """How many systems, and how many drafters of ours stand for them."""
    rows = study.tables["systems"].rows
    drafters = {base_of(row["drafter"]) for row in rows}
    return {"systems": formats.whole(len({row["system"] for row in rows})), "drafters": formats.whole(len(drafters))}


def typical(study: Study, words: Wording) -> list[tuple[str, dict[str, str]]]:
    """The sentence on what typical acceptance costs; none where it was not measured."""
    rows = [row for row in study.tables["typical"].rows if known(row["tv"])]
    if not rows:
        return []
    row = max(rows, key=lambda row: row["tv"])
    values = {
        "drafter": words.name("drafter", base_of(row["drafter"])),
        "size": words.size(row["drafter"], row["gamma"]),
        "contexts": formats.whole(row["contexts"]),
        "tv": " ".join(filter(None, (formats.small(row["tv"]), spread_of(row, "tv")))),
        "share": percent(row["accepted_share"]),
    }
    return [("typical", values)]


def positions(study: Study, words: Wording) -> dict[str, str]:
    """Acceptance of the second draft token: of heads that do not depend on the first one, and of drafters that do."""
    found = {}
    for row in study.tables["systems"].rows:
        rates = str(row["alpha_by_position"] or "").split()
        if row["shape"] == "chain" and len(rates) > SECOND:
            found[row["drafter"]] = number(float(rates[SECOND]), 2)
    pairs = [f"{words.name('drafter', name)} {rate}" for name, rate in found.items()]
    measured = words.say("questions.side_by_side.measured", list=words.listed(pairs)) if len(pairs) > 1 else ""
    return {"measured": measured}


def trees(study: Study, words: Wording) -> dict[str, str]:
    """How many trees beat their chains, and the best of them."""
    rows = study.tables["trees"].rows
    tally = [
        words.say("systems.tally", count=number_of, verdict=words.raw("systems.in_words")[verdict])
        for verdict in VERDICTS
        if (number_of := sum(row["verdict"] == verdict for row in rows))
    ]
    ratios = [row for row in rows if known(row["ratio"])]
    best = max(ratios, key=lambda row: row["ratio"], default=None)
    top = {"drafter": formats.MISSING, "ratio": formats.MISSING, "most": formats.MISSING}
    if best:
        spread = formats.interval(best["ratio_lo"], best["ratio_hi"], decimals=2)
        top = {
            "drafter": words.name("drafter", best["drafter"]),
            "ratio": " ".join(filter(None, (times(best["ratio"]), spread))),
            "most": times(max((row["most_ratio"] for row in rows if known(row["most_ratio"])), default=None)),
        }
    return {"count": str(len(rows)), "tally": words.raw("page.list_joint").join(tally), **top}
