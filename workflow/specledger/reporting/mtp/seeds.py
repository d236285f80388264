"""Seed by seed: losses, paired differences and acceptance, and what more or fewer seeds would show."""

from collections.abc import Iterable, Mapping

from specledger.reporting import explorables
from specledger.reporting.document import Explorable
from specledger.reporting.formats import interval, known, number
from specledger.reporting.study import Study
from specledger.reporting.views_bounds import ends_of
from specledger.reporting.wording import Wording, shape_of
from specledger.statistics.power import smallest_difference

LEFT, RIGHT = 30, 430  # of every strip, in SVG units
MOST_SEEDS = 64  # that the slider asks about
LOSSES = {"plain": ("plain", "validation_loss"), "mtp": ("mtp", "validation_loss")}
LOSSES |= {"module": ("mtp", "validation_mtp_loss"), "draft": ("draft", "validation_loss")}
DIGITS = 7
WHICH = ("engine", "drafter", "gamma")


def _half_width(n: int) -> float:
    """Half the paired t interval of n seeds at 95%, in sd of the differences."""
    from scipy import stats

    return float(stats.t.isf(0.025, n - 1) / n**0.5)


def _span(values: Iterable[float | None]) -> dict:
    """The ends of a strip, a tenth beyond the values on either side."""
    there = [value for value in values if known(value)]
    low, high = min(there, default=0.0), max(there, default=1.0)
    room = 0.08 * (high - low) or 0.05 * abs(high) or 1.0
    return {"low": low - room, "high": high + room}


def _acceptance(study: Study) -> list[dict]:
    """Each method's α by seed, with the ledger's mean and interval, on the best row's engine: others accept alike."""
    found: dict[tuple, dict] = {}
    engines = dict.fromkeys(row["engine"] for row in study.played.acceptance)
    best = (study.summary["best"] or {}).get("engine")
    shown = best if best in engines else next(iter(engines), None)
    for row in (row for row in study.played.acceptance if row["engine"] == shown):
        key = (row["engine"], row["drafter"], row["gamma"])
        found.setdefault(key, {})[row["seed"]] = explorables.rounded(row["alpha"], 3)
    methods = []
    for (engine, drafter, gamma), values in found.items():
        rows = study.tables["ledger"].where(engine=engine, drafter=drafter, gamma=gamma)
        row = rows[0] if rows else {}
        lo, hi, _ = ends_of(row, "alpha")
        shown = {"mean": row.get("alpha"), "lo": lo, "hi": hi}
        cells = {name: explorables.rounded(value) for name, value in shown.items()}
        named = {"engine": engine, "drafter": drafter, "gamma": gamma, "shape": shape_of(drafter)}
        methods.append(named | cells | {"values": [values.get(seed) for seed in study.seeds]})
    return methods


def _shown(methods: list[dict], best: Mapping) -> int | None:
    wanted = [at for at, one in enumerate(methods) if all(one[key] == best.get(key) for key in WHICH)]
    return (wanted or [0])[0] if methods else None


def seeds(study: Study, words: Wording) -> Explorable:
    """The slider stands at this study's number of seeds, no seed picked out."""
    cells = {(row["model"], row["seed"]): row for row in study.tables["seeds"].rows}
    losses = {
        name: [explorables.rounded(cells.get((model, seed), {}).get(column), DIGITS) for seed in study.seeds]
        for name, (model, column) in LOSSES.items()
    }
    pairs = list(zip(losses["plain"], losses["mtp"], strict=True))
    differences = [b - a if known(a) and known(b) else None for a, b in pairs]
    found = dict(study.tables["differences"].rows[0])
    mean, margin, sd, n = found["mean"], found["margin"], found["sd"], len(study.seeds)
    methods = _acceptance(study)
    chosen = _shown(methods, study.summary["best"] or {})
    alphas = _span(value for one in methods for value in (*one["values"], one["lo"], one["hi"]))
    counts = range(2, MOST_SEEDS + 1)
    reach = {
        "half": [explorables.rounded(_half_width(count)) for count in counts],
        "seen": [explorables.rounded(smallest_difference(count)) for count in counts],
    }
    at = min(max(n, 2), MOST_SEEDS)
    half, seen = (sd * reach[key][at - 2] if known(sd) else None for key in ("half", "seen"))
    half, seen = (None, None) if not known(mean) else (half, seen)
    wide = [*differences, found["lo"], found["hi"], 0.0, *((margin, -margin) if known(margin) else ())]
    wide += [mean + reach["half"][1] * sd, mean - reach["half"][1] * sd] if known(half) else []
    return explorables.block(
        "seeds",
        words,
        {
            "seeds": list(study.seeds),
            "losses": losses,
            "differences": [explorables.rounded(d, DIGITS) for d in differences],
        }
        | {"mean": mean, "lo": found["lo"], "hi": found["hi"], "sd": sd, "margin": margin, "reach": reach, "n": at}
        | {"methods": methods, "method": chosen, "left": LEFT, "right": RIGHT, "half": half}
        | {"spans": {"losses": _span(value for row in losses.values() for value in row), "differences": _span(wide)}}
        | {"alphas": {"low": max(alphas["low"], 0.0), "high": min(alphas["high"], 1.0)}},
        names={"engine": {one["engine"] for one in methods}, "drafter": {one["drafter"] for one in methods}}
        | {"model": ("plain", "mtp", "draft"), "size": ("chain", "tree")},
        outcomes={
            "mean": " ".join(filter(None, (number(mean, 4), interval(found["lo"], found["hi"], decimals=4)))),
            "halved": f"±{number(half, 4)}" if known(half) else "",
            "seen": number(seen, 4),
            "margin": f"±{number(margin, 4)}" if known(margin) else "",
        },
    )
