"""What a pair's tables say, in sentences: whether speculation pays, for what, by which drafter, up to which batch."""

from collections.abc import Sequence

TITLES = {
    "none": "plain decoding",
    "lookup": "prompt lookup",
    "ngram": "n-gram",
    "early_exit": "early exit",
    "draft": "draft model",
}
RULES = {
    "verify": "the rule",
    "accept_always": "control: every draft token accepted",
    "resample_from_target": "control: drawn from p after a rejection",
}


def best_by_task(speed: Sequence[dict]) -> list[dict]:
    """The fastest drafter and gamma of each task, in the order of tasks, and whether it pays.

    It pays where the interval lies above 1, and is no gain where it lies below; between is undecided.
    """
    found = []
    for task in dict.fromkeys(row["task"] for row in speed):
        row = max((row for row in speed if row["task"] == task), key=lambda row: row["speedup"])
        lo, hi = row["speedup_lo"], row["speedup_hi"]
        pays = None if lo is None or lo <= 1 <= hi else lo > 1
        found.append({**row, "pays": pays})
    return found


def interval(row: dict, name: str = "speedup") -> str:
    """“1.52 (1.40 to 1.66)”, or the number alone where one prompt gives no interval."""
    mean, lo, hi = row[name], row[f"{name}_lo"], row[f"{name}_hi"]
    return f"{mean:.2f}" if lo is None else f"{mean:.2f} ({lo:.2f} to {hi:.2f})"


def headline(speed: Sequence[dict]) -> str:
    """One line for the top of the page."""
    best = best_by_task(speed)
    paying = [row["task"] for row in best if row["pays"]]
    if len(paying) == len(best):
        return "Speculation pays for every task"
    if not paying:
        return "Speculation is not shown to pay for any task"
    return f"Speculation pays for {joined(paying)}, and is not shown to pay for the rest"


def sentences(speed: Sequence[dict], stops: Sequence[dict], batch: Sequence[dict]) -> list[str]:
    """Of each task its best drafter; then of each drafter the batch size at which it stops paying."""
    found = []
    words = {True: "pays", False: "does not pay", None: "may or may not pay"}
    for row in best_by_task(speed):
        found.append(
            f"For {row['task']} speculation {words[row['pays']]}: {interval(row)} times as fast as plain decoding with "
            f"{TITLES[row['drafter']]} at γ = {row['gamma']}."
        )
    largest = max((row["batch"] for row in batch), default=1)
    for row in stops:
        name = TITLES[row["drafter"]].capitalize()
        if row["batch"] is None:
            found.append(f"{name} still pays over all tasks together at batch {largest}, the largest that was decoded.")
        elif row["batch"] == 1:
            words = "does not pay" if row["latest"] == 1 else "is not shown to pay"
            found.append(f"{name} {words} over all tasks together, even at batch 1.")
        else:
            between = "" if row["earliest"] is None else f" (by its interval from {row['earliest']}"
            between += "" if not between else f" to {row['latest']})" if row["latest"] else f" to above {largest})"
            found.append(f"{name} stops paying over all tasks together at batch {row['batch']}{between}.")
    return found


def proof(
    greedy: Sequence[dict], oracle: Sequence[dict], ngrams: Sequence[dict], level: float
) -> tuple[str, list[str]]:
    """Whether the pair is lossless as far as was tested, and why the run can't be trusted where a control passed."""
    distrust = [
        f"{RULES[row['rule']]} was not rejected (p {row['p_value']:.2g})"
        for row in oracle
        if row["rule"] != "verify" and visible(row) and row["p_value"] >= level and row["acceptance_p_value"] >= level
    ]
    rules = [row for row in oracle if row["rule"] == "verify"]
    faults = sum(row["kind"] == "fault" for row in greedy)
    rounding = sum(row["kind"] == "rounding" for row in greedy)
    least_acceptance = min((row["acceptance_p_value"] for row in rules), default=1.0) * max(len(rules), 1)
    bad = faults + sum(row["p_holm"] < level for row in rules) + (least_acceptance < level)
    bad += sum(row["p_holm"] is not None and row["p_holm"] < level for row in ngrams if row["drafter"] != "none")
    distrust += [
        f"two plain samples differ in their first {row['n']} tokens (p {row['p_holm']:.2g})"
        for row in ngrams
        if row["drafter"] == "none" and row["p_holm"] is not None and row["p_holm"] < level
    ]
    same = sum(row["kind"] == "same" for row in greedy)
    said = (
        f"{same} of {len(greedy)} greedy texts equal the plain ones token by token, {rounding} part where two tokens "
        f"lie within rounding, {faults} by more. The acceptance rule was drawn at {len(rules)} real positions"
    )
    verdict = "No departure was found" if not bad else "A departure was found"
    return f"{verdict}. {said}.", distrust


def visible(row: dict) -> bool:
    """Could so many draws see how far this control departs at its place? Not where p and q share hardly a token."""
    return row["detectable_tv"] is not None and row["departure"] >= row["detectable_tv"]


def joined(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
