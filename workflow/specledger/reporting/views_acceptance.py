"""Tables of the draws at single positions: by drafter, and one by one."""

from specledger.reporting import formats
from specledger.reporting.document import Cell, View, cell
from specledger.reporting.formats import known
from specledger.reporting.proof.facts import beta_inside
from specledger.reporting.study import Study
from specledger.reporting.tables import Row
from specledger.reporting.views import columns, count, grouped, largest, least, mean, named, num, plainly, view
from specledger.reporting.wording import Wording

MOST_ROWS = 64


def _resamples(study: Study) -> dict[str, str]:
    return {"resamples": formats.whole(largest(row["resamples"] for row in study.tables["acceptance"].rows))}


def _leak(value: float | None, note: str = "") -> Cell:
    """The smallest share of leaked tokens that the draws would show."""
    return num(value, 2, formats.percent, note=note)


def acceptance(study: Study, words: Wording) -> View:
    """The simulation by drafter: means, worst cases and counts over all positions of all seeds."""
    rows = []
    for (drafter,), found in grouped(study.tables["acceptance"].rows, "drafter").items():
        beyond = sum(1 for row in found if known(row["tv_q999"]) and row["tv_output"] > row["tv_q999"])
        rows.append(
            (
                named(words, "drafter", drafter),
                count(len(found)),
                *(num(mean(row[key] for row in found), 4) for key in ("acceptance", "beta")),
                count(sum(map(beta_inside, found))),
                *(num(mean(row[key] for row in found), 4, formats.small) for key in ("tv_output", "tv_expected")),
                count(beyond),
                *(plainly(least(row[key] for row in found), formats.p_value) for key in ("tv_p_value", "chi2_p_value")),
                _leak(largest(row["detectable_leak"] for row in found)),
                num(largest(row["tv_bound"] for row in found), 4, formats.small),
            )
        )
    heads = columns(
        words,
        "drafter positions acceptance beta beta_inside tv_output tv_expected beyond least_tv_p least_chi2_p "
        "worst_leak largest_bound",
    )
    return view(words, "acceptance", heads, rows, source="acceptance", values=_resamples(study))


def _row(words: Wording, row: Row) -> tuple:
    spread = formats.interval(row["acceptance_lo"], row["acceptance_hi"], decimals=4)
    quantile = words.say("notes.quantile", tv=formats.small(row["tv_q999"], 4)) if known(row["tv_q999"]) else ""
    pooled = words.say("notes.pooled", p=formats.p_value(row["p_value"])) if known(row["p_value"]) else ""
    distance = f"TV {formats.small(row['detectable_tv'], 4)}" if known(row["detectable_tv"]) else ""
    return (
        count(row["seed"]),
        named(words, "drafter", row["drafter"]),
        cell(f"…{formats.visible((row['context'] or '')[-12:])}", sort=row["context"]),
        num(row["acceptance"], 4, note=spread),
        num(row["beta"], 4),
        num(row["tv_output"], 4, formats.small),
        num(row["tv_expected"], 4, formats.small, note=quantile),
        plainly(row["tv_p_value"], formats.p_value),
        cell(formats.p_value(row["chi2_p_value"]), sort=row["chi2_p_value"], note=pooled),
        _leak(row["detectable_leak"], note=distance),
        num(row["tv_bound"], 4, formats.small),
        num(row["tv_draft"], 3),
    )


def acceptance_rows(study: Study, words: Wording) -> View:
    """The simulation position by position."""
    rows = [_row(words, row) for row in study.tables["acceptance"].rows]
    heads = columns(
        words,
        "seed drafter context acceptance beta tv_output tv_expected tv_p_value chi2_p_value leak tv_bound tv_draft",
    )
    options = {"source": "acceptance", "most": MOST_ROWS, "values": _resamples(study)}
    return view(words, "acceptance_rows", heads, rows, **options)
