"""Tables of sections 3 to 5: tokens per round, costs, models, and the ledger itself."""

from dataclasses import replace

from specledger.foundation.drafters import branched
from specledger.reporting import formats
from specledger.reporting.document import Cell, View, cell
from specledger.reporting.formats import known, number, times
from specledger.reporting.labels import main_rows
from specledger.reporting.study import Study
from specledger.reporting.tables import Row
from specledger.reporting.views import columns, count, named, num, plainly, view, with_interval, yes_no
from specledger.reporting.views_bounds import bounded, limits_of, spread_of
from specledger.reporting.wording import Wording

PARTS = ("draft", "catch_up", "verify", "accept", "sync", "other")
MOST_SEEDS = 48


def _method(words: Wording, row: Row) -> tuple:
    nodes = words.say("columns.nodes") if branched(row["drafter"]) else ""
    size = cell(formats.whole(row["gamma"]), sort=row["gamma"], note=nodes)
    return named(words, "engine", row["engine"]), named(words, "drafter", row["drafter"]), size


def tokens(study: Study, words: Wording) -> View:
    """Measured yield beside eq. (1)."""
    rows = []
    shown = main_rows(study.tables["ledger"].rows)
    for row in shown:
        if row["drafter"] == "none":
            continue
        both = known(row["eq1"]) and known(row["tokens_per_round"])
        off = row["tokens_per_round"] / row["eq1"] - 1 if both else None
        rows.append(
            (
                *_method(words, row),
                with_interval(row, "alpha"),
                with_interval(row, "tokens_per_round", 2),
                num(row["eq1"], 2),
                num(off, 1, formats.percent),
            )
        )
    heads = columns(words, "engine drafter gamma alpha tokens_per_round eq1 gap")
    left = len(study.tables["ledger"].rows) - len(shown)
    return view(words, "tokens", heads, rows, source="ledger", left_out=left)


def forwards(study: Study, words: Wording) -> View:
    """What a forward costs, and c and v(γ)."""
    rows = []
    timed = [row for row in study.tables["forwards"].rows if row["part"] != "round"]
    shown = main_rows(timed)
    for row in shown:
        lo, hi, mark = bounded(row["seconds_lo"], row["seconds_hi"], limits_of("seconds"))
        spread = formats.interval(lo, hi, formats.milliseconds)
        rows.append(
            (
                named(words, "engine", row["engine"]),
                named(words, "model" if row["model"] == "target" else "drafter", row["model"]),
                count(row["gamma"] if row["part"] == "propose" else None),
                count(row["positions"]),
                cell(formats.milliseconds(row["seconds"]), sort=row["seconds"], note=spread + mark if spread else ""),
                num(row["c"], 3),
            )
        )
    heads = columns(words, "engine model gamma positions seconds ratio")
    left = len(timed) - len(shown)
    return view(words, "forwards", heads, rows, source="forwards", left_out=left)


def models(study: Study, words: Wording) -> View:
    """Parameters, settings and losses."""
    rows = [
        (
            named(words, "model", row["model"]),
            *(count(row[key]) for key in ("parameters", "head_parameters", "steps", "batch")),
            plainly(row["learning_rate"], formats.setting),
            count(row["n"]),
            with_interval(row, "validation_loss", 4),
            with_interval(row, "validation_mtp_loss", 4),
        )
        for row in study.tables["models"].rows
    ]
    heads = columns(words, "model parameters head steps batch learning_rate n loss mtp_loss")
    return view(words, "models", heads, rows, source="models")


def seeds(study: Study, words: Wording) -> View:
    """Losses seed by seed, with the paired difference."""
    losses = {(row["model"], row["seed"]): row for row in study.tables["seeds"].rows}

    def loss(model: str, seed: int, column: str = "validation_loss") -> float | None:
        return losses[model, seed][column] if (model, seed) in losses else None

    rows = []
    for seed in study.seeds:
        plain, mtp = loss("plain", seed), loss("mtp", seed)
        difference = mtp - plain if known(plain) and known(mtp) else None
        values = (plain, mtp, difference, loss("mtp", seed, "validation_mtp_loss"), loss("draft", seed))
        rows.append((count(seed), *(num(value, 4) for value in values)))
    heads = columns(words, "seed plain mtp paired module draft")
    return view(words, "seeds", heads, rows, source="seeds", most=MOST_SEEDS)


def differences(study: Study, words: Wording) -> View:
    """The paired difference: its interval, the equivalence test, and what this many seeds could have seen."""
    rows = []
    for row in study.tables["differences"].rows:
        spread = formats.interval(row["lo"], row["hi"], decimals=4)
        key = row["verdict"] or "undecided"
        seen = words.say("notes.sd", n=number(row["detectable_sd"], 1)) if known(row["detectable_sd"]) else ""
        shown = words.name("equivalence", key)
        rows.append(
            (
                num(row["mean"], 4, note=spread),
                num(row["sd"], 4),
                count(row["n"]),
                cell(f"±{formats.setting(row['margin'])}", sort=row["margin"]),
                cell(formats.interval(row["tost_lo"], row["tost_hi"], decimals=4), sort=row["tost_lo"]),
                plainly(row["tost_p"], formats.p_value),
                cell(shown, sort=shown),
                num(row["detectable"], 4, note=seen),
            )
        )
    heads = columns(words, "paired sd n equivalence_margin tost_interval tost_p verdict detectable")
    return view(words, "differences", heads, rows, source="differences")


def one_guess(study: Study, words: Wording) -> View:
    """Drafters side by side at γ = 1."""
    rows = [
        (
            named(words, "engine", row["engine"]),
            named(words, "drafter", row["drafter"]),
            with_interval(row, "alpha"),
            with_interval(row, "tokens_per_round", 2),
            num(row["c"], 3),
            with_interval(row, "speedup", 2, times),
            num(row["theorem38"], 2, times),
        )
        for row in study.tables["ledger"].where(gamma=1)
    ]
    heads = columns(words, "engine drafter alpha tokens_per_round c speedup theorem38")
    return view(words, "one_guess", heads, rows, source="ledger")


def cost_of_typical(study: Study, row: Row) -> str:
    """The TV that a lossy acceptance costs this row, with its interval; empty where the row's is lossless."""
    found = study.tables["typical"].where(drafter=row["drafter"], gamma=row["gamma"])
    if not found:
        return ""
    return " ".join(filter(None, (formats.small(found[0]["tv"]), spread_of(found[0], "tv"))))


def _same(study: Study, words: Wording, row: Row) -> Cell:
    """Whether the row follows the law of plain decoding, and what it costs where that was given up."""
    found, lossy = yes_no(words, row["lossless"]), cost_of_typical(study, row)
    return replace(found, note=words.say("columns.lossy", tv=lossy.partition(" ")[0])) if lossy else found


def ledger(study: Study, words: Wording) -> View:
    """One row a method: counts, seconds, speed-up, and its theory."""
    rows = [
        (
            *_method(words, row),
            with_interval(row, "alpha"),
            with_interval(row, "tokens_per_round", 2),
            num(row["target_forwards"], 0),
            num(row["draft_forwards"], 0),
            with_interval(row, "wall_s", 3),
            with_interval(row, "speedup", 2, times),
            num(row["theorem38"], 2, times),
            num(row["cost_model"], 2, times),
            num(row["c"], 3),
            num(row["v"], 2),
            _same(study, words, row),
        )
        for row in study.tables["ledger"].rows
    ]
    heads = columns(
        words,
        "engine drafter gamma alpha tokens_per_round target_forwards draft_forwards wall speedup "
        "theorem38 cost_model c v same",
    )
    return view(words, "ledger", heads, rows, source="ledger")
