"""What a reader may play with: the state that stands on the page before any touch, computed here."""

from specledger.reporting import findings
from specledger.reporting.document import Control, Explorable, Outcome
from specledger.reporting.formats import known, number, times
from specledger.reporting.inline import Span
from specledger.reporting.study import Study
from specledger.reporting.wording import Wording
from specledger.theory.speculation import best_gamma, expected_tokens_per_round, walltime_speedup

GAMMAS = tuple(range(1, 13))
ALPHA, COST = 0.7, 0.2  # where nothing was measured


def speedup(study: Study, words: Wording) -> Explorable:
    """Eq. (1) and Theorem 3.8 under three sliders, set to the draft model's (else the best) measured row."""
    rows = [row for row in study.tables["ledger"].rows if known(row["alpha"]) and known(row["c"])]
    drafts = [row for row in rows if row["drafter"] == "draft"] or rows
    row = max(drafts, key=lambda row: row["speedup"] or 0.0, default=None)
    alpha = round(row["alpha"], 2) if row else ALPHA
    cost = min(1.0, round(row["c"], 2)) if row else COST
    gamma = min(row["gamma"], GAMMAS[-1]) if row else GAMMAS[3]
    key = "explorables.speedup"
    space = (Span(kind="text", text=" "),)
    start = space + words.spans(f"{key}.measured", **findings.method_names(words, row)) if row else ()
    settings = (("alpha", 0, 1, 0.01, alpha, 2), ("c", 0, 1, 0.01, cost, 2), ("gamma", 1, GAMMAS[-1], 1, gamma, 0))
    best = best_gamma(alpha, cost, GAMMAS)
    outcomes = {
        "eq1": number(expected_tokens_per_round(alpha, gamma), 2),
        "theorem38": times(walltime_speedup(alpha, gamma, cost)),
        "best": f"{best} ({times(walltime_speedup(alpha, best, cost))})",
    }
    return Explorable(
        name="speedup",
        title=words.say(f"{key}.title"),
        lead=words.spans(f"{key}.lead") + start,
        controls=tuple(
            Control(
                id=name,
                label=words.say(f"{key}.{name}"),
                least=str(least),
                most=str(most),
                step=str(step),
                value=str(value),
                text=number(value, decimals),
            )
            for name, least, most, step, value, decimals in settings
        ),
        outcomes=tuple(
            Outcome(id=name, label=words.say(f"{key}.{name}"), text=text) for name, text in outcomes.items()
        ),
        values=tuple(walltime_speedup(alpha, one, cost) for one in GAMMAS),
        chosen=gamma,
    )
