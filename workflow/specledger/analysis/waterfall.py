"""From forwards saved to time saved: what each part of a round takes back, step by step, with an exact product."""

import pandas as pd

from specledger.analysis.frames import PLAIN, ordered
from specledger.analysis.timing import METHOD, PARTS
from specledger.tables.registry import TABLES

FORWARDS, DRAFTING, CATCHING_UP, WIDER = "forwards_saved", "drafting", "catch_up", "wider_verify"
ACCEPTING, WAITING, REST, PAIRS = "accept", "sync", "rest", "pairs"
STEP_OF = {
    "draft": DRAFTING, "catch_up": CATCHING_UP, "verify": WIDER, "accept": ACCEPTING, "sync": WAITING, "other": REST,
}  # fmt: skip
BEST, WORST = "best", "worst"


def _seconds_a_round(texts: pd.DataFrame) -> dict[str, float]:
    """Seconds of each part over all texts of a method, a round; of plain decoding a round is a token."""
    return {part: float(texts[f"{part}_s"].fillna(0.0).sum() / texts["rounds"].sum()) for part in PARTS}


def steps_of(texts: pd.DataFrame, plain: pd.DataFrame, speedup: float) -> list[tuple[str, float, float]]:
    """(step, ratio before, ratio after) of one method, from 1 to its measured speed-up.

    The first step saves forwards: a round yields several tokens, and is taken to cost what a token of plain
    decoding costs. Each further one replaces a part of that cost by what a round spends on it, in the order
    of `PARTS`; after the last the cost is the whole round's. The ratio is then one of sums of seconds; the
    final step goes over to the median of pairs, which is the ledger's figure.
    """
    ours, theirs = _seconds_a_round(texts), _seconds_a_round(plain)
    tokens = float(texts["tokens"].sum() / texts["rounds"].sum())
    whole = sum(theirs.values())
    steps, before, cost = [(FORWARDS, 1.0, tokens)], tokens, whole
    for part in PARTS:
        cost += ours[part] - theirs[part]
        after = tokens * whole / cost
        steps.append((STEP_OF[part], before, after))
        before = after
    return [*steps, (PAIRS, before, speedup)]


def _chosen(ledger: pd.DataFrame) -> list[tuple[str, pd.Series, bool]]:
    """The best and the worst row of each engine, and whether it is so over all engines."""
    methods = ledger[ledger["drafter"] != PLAIN].dropna(subset=["speedup"])
    if methods.empty:
        return []
    # Where there are lossless rows the study's best and worst are among them, as in its answer.
    lossless = methods[methods["lossless"].astype(bool)]
    judged = methods if lossless.empty else lossless
    overall = {BEST: judged["speedup"].idxmax(), WORST: judged["speedup"].idxmin()}
    return [
        (case, methods.loc[place], place == overall[case])
        for _, rows in methods.groupby("engine", sort=False)
        for case, place in ((BEST, rows["speedup"].idxmax()), (WORST, rows["speedup"].idxmin()))
    ]


def waterfall_table(ledger: pd.DataFrame, texts: pd.DataFrame) -> pd.DataFrame:
    """The steps of the best and the worst method of each engine; `overall` marks those of the whole study."""
    rows = []
    for case, row, overall in _chosen(ledger):
        engine = texts[texts["engine"] == row["engine"]]
        of_method = engine[(engine["drafter"] == row["drafter"]) & (engine["gamma"] == row["gamma"])]
        found = steps_of(of_method, engine[engine["drafter"] == PLAIN], float(row["speedup"]))
        for place, (step, before, after) in enumerate(found, start=1):
            cells = {name: row[name] for name in METHOD} | {"case": case, "overall": overall, "place": place}
            ratios = {"ratio_before": before, "ratio_after": after, "factor": after / before}
            rows.append(cells | {"step": step} | ratios)
    return ordered(pd.DataFrame(rows, columns=TABLES["waterfall"].computed), ["engine", "case", "place"])
