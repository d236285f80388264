"""One real round of the draft model: what each row of the target's forward sees, and what it says."""

from collections.abc import Mapping

from specledger.reporting import explorables
from specledger.reporting.document import Explorable
from specledger.reporting.findings import setting
from specledger.reporting.formats import small, symbol
from specledger.reporting.study import Study
from specledger.reporting.wording import Wording

CONTEXT_SHOWN = 6  # cells of the context; the ones before it are counted
SYMBOLS_SHOWN = 6  # likeliest symbols of a row of p


def _row(p: list[float], symbols: list[str]) -> list[dict]:
    """The likeliest symbols of one row, and their probabilities."""
    order = sorted(range(len(p)), key=lambda token: (-p[token], token))[:SYMBOLS_SHOWN]
    return [{"symbol": symbols[token], "p": explorables.rounded(p[token])} for token in order]


def _round(found: Mapping, symbols: list[str]) -> dict:
    context, proposals = found["context"], found["proposals"]
    guesses = [
        {
            "symbol": symbols[token],
            "p": explorables.rounded(p[token]),
            "q": explorables.rounded(q[token]),
            "uniform": explorables.rounded(uniform),
        }
        for token, p, q, uniform in zip(proposals, found["p"], found["q"], found["accept_uniforms"], strict=False)
    ]
    tail = context[-CONTEXT_SHOWN:]
    return {
        "position": found["position"],
        "context": [symbols[token] for token in tail],
        "before": len(context) - len(tail),
        "guesses": guesses,
        "rows": [_row(p, symbols) for p in found["p"]],
        "accept_len": found["accept_len"],
        "token": symbols[found["token"]],
        "alone": found["alone_max_difference"],
    }


def _verdict(shown: Mapping, number: int, words: Mapping[str, str]) -> str:
    """The fate of the draft token that row `number` verifies; after the last one it gives the bonus token."""
    if number > shown["accept_len"]:
        return words["lost"]
    if number == len(shown["guesses"]):
        return words["bonus"].format(symbol=shown["token"])
    return words["kept"] if number < shown["accept_len"] else words["redrawn"].format(symbol=shown["token"])


def chosen(rounds: list[dict]) -> int:
    """The first round in which something passes and something fails, so that both can be seen; else the first."""
    mixed = (at for at, one in enumerate(rounds) if 0 < one["accept_len"] < len(one["guesses"]))
    return next(mixed, 0)


def mask(study: Study, words: Wording) -> Explorable | None:
    """None where no round was kept, in a corpus too short for it."""
    record = study.played.rounds
    symbols = [symbol(one) for one in record["symbols"]]
    rounds = [_round(found, symbols) for found in record["rounds"] if found["proposals"]]
    if not rounds:
        return None
    at = chosen(rounds)
    window, texts = setting(study.provenance["config"], "model.context"), words.raw("explorables.mask")
    shown, gamma = rounds[at], len(rounds[at]["guesses"])
    # The row that decided: of the first rejected draft token, or the last one, which gave the bonus token.
    row = min(shown["accept_len"], gamma) + len(shown["context"]) - 1
    verdicts = [_verdict(shown, number, texts) for number in range(gamma + 1)]
    return explorables.block(
        "mask",
        words,
        {"rounds": rounds, "round": at, "gamma": gamma, "row": row, "window": window}
        | {"sentence_joint": words.raw("page.sentence_joint"), "verdicts": verdicts},
        outcomes={
            "forwards": "1",
            "rows": str(gamma + 1),
            "tokens": str(shown["accept_len"] + 1),
            "alone": small(shown["alone"], 6),
        },
    )
