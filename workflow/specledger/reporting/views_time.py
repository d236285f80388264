"""Tables of the clock: time by part, theory against clock, the waterfall, the best γ, noise, engines."""

from collections.abc import Iterable
from statistics import median

from specledger.reporting import formats
from specledger.reporting.document import Cell, Column, View, cell
from specledger.reporting.formats import known, number, times
from specledger.reporting.labels import PARTS, main_rows
from specledger.reporting.study import Study
from specledger.reporting.tables import Row, Table
from specledger.reporting.time.figure import peer_name
from specledger.reporting.views import count, named, num, plainly, view, with_interval, yes_no
from specledger.reporting.wording import Wording

TEXTUAL = frozenset(
    "engine drafter why model reference available pair adds_up agrees inside step case loop device "
    "program gammas".split()
)
WIDE = frozenset({"why", "program", "step"})


def _columns(words: Wording, names: Iterable[str], **labels: str) -> tuple[Column, ...]:
    labels = {name: labels.get(name) or words.say(f"time_columns.{name}") for name in names}
    return tuple(Column(label=label, numeric=name not in TEXTUAL, wide=name in WIDE) for name, label in labels.items())


def _method(words: Wording, row: Row) -> tuple[Cell, ...]:
    return named(words, "engine", row["engine"]), named(words, "drafter", row["drafter"]), count(row["gamma"])


def _percent(value: float | None, decimals: int = 1) -> Cell:
    return num(value, decimals, formats.percent)


def parts(study: Study, words: Wording) -> View:
    """Milliseconds of a text by part, what is left over, and whether it adds up."""
    timed = study.tables["time"].rows
    shown = main_rows(timed)
    rows = [
        (
            *_method(words, row),
            *(plainly(row[part] or None, formats.milliseconds) for part in PARTS),
            plainly(row["wall_s"], formats.milliseconds),
            num(row["off"], 2, formats.percent),
            _percent(row["other_share"]),
            yes_no(words, row["adds_up"]),
        )
        for row in shown
    ]
    labels = {part: words.name("part", part).capitalize() for part in PARTS}
    heads = _columns(words, ["engine", "drafter", "gamma", *PARTS, "total", "off", "other_share", "adds_up"], **labels)
    return view(words, "time", heads, rows, source="time", left_out=len(timed) - len(shown))


def theory(study: Study, words: Wording) -> View:
    """Theorem 3.8, the full costs and the clock side by side."""
    predicted = study.tables["cost_model"].rows
    shown = main_rows(predicted)
    rows = [
        (
            *_method(words, row),
            num(row["tokens_per_round"], 2),
            *(plainly(row[name], formats.milliseconds) for name in ("t_ar", "t_propose", "t_verify", "overhead")),
            num(row["theorem38"], 2, times),
            num(row["cost_model"], 2, times),
            with_interval(row, "measured", 2, times),
            _percent(row["theorem38_miss"]),
            _percent(row["miss"]),
        )
        for row in shown
    ]
    names = (
        "engine drafter gamma tokens_apart t_ar t_propose t_verify overhead theorem38 cost_model measured "
        "theorem38_miss miss"
    )
    options = {"source": "cost_model", "left_out": len(predicted) - len(shown)}
    return view(words, "cost_model", _columns(words, names.split()), rows, **options)


def waterfall(study: Study, words: Wording) -> View:
    """The steps of the best and the worst row of each engine."""
    rows = []
    for row in study.tables["waterfall"].rows:
        step, case = words.name("step", row["step"]), words.name("case", row["case"])
        factor = num(row["factor"], 3)
        ratios = (num(row[name], 3, times) for name in ("ratio_before", "ratio_after"))
        rows.append((*_method(words, row), cell(case, sort=case), cell(step, sort=row["place"]), *ratios, factor))
    names = "engine drafter gamma case step ratio_before ratio_after factor"
    return view(words, "waterfall", _columns(words, names.split()), rows, source="waterfall")


def best_gamma(study: Study, words: Wording) -> View:
    """Predicted and found, and the price of the neighbours that were measured."""

    def loss(row: Row, name: str, gamma: str) -> Cell:
        note = words.size(row["drafter"], row[gamma]) if known(row[gamma]) else ""
        return num(row[name], 1, formats.percent, note=note)

    rows = [
        (
            named(words, "engine", row["engine"]),
            named(words, "drafter", row["drafter"]),
            cell(str(row["gammas"]), sort=str(row["gammas"])),
            num(row["gamma_predicted"], 0, note=times(row["speedup_predicted"])),
            num(row["gamma_found"], 0, note=times(row["speedup_found"])),
            yes_no(words, row["agrees"]),
            _percent(row["loss_if_predicted"]),
            loss(row, "loss_if_one_less", "one_less"),
            loss(row, "loss_if_one_more", "one_more"),
        )
        for row in study.tables["best_gamma"].rows
    ]
    names = "engine drafter gammas gamma_predicted gamma_found agrees loss_if_predicted loss_if_less loss_if_more"
    return view(words, "best_gamma", _columns(words, names.split()), rows, source="best_gamma")


def noise(study: Study, words: Wording) -> View:
    """A pair of the same, and a pair that differs by its clocks."""
    rows = []
    for row in study.tables["noise"].rows:
        pair = words.name("pair", row["pair"])
        spread = formats.interval(row["lo"], row["hi"], decimals=4)
        cost = formats.interval(row["cost_percent_lo"], row["cost_percent_hi"], decimals=1)
        rows.append(
            (
                cell(pair, sort=pair),
                *_method(words, row),
                num(row["ratio"], 4, note=spread),
                yes_no(words, row["inside"] if row["pair"] == "A/A" else None),
                num(row["cost_percent"], 1, note=cost),
                num(row["spread_percent"], 1),
                count(row["n_pairs"]),
            )
        )
    names = "pair engine drafter gamma ratio inside cost_percent spread_percent n_pairs"
    return view(words, "noise", _columns(words, names.split()), rows, source="noise")


def _seconds_to_compile(seconds: tuple[float, ...]) -> Cell:
    """The median over seeds, and from where to where they go: compiled code may lie ready, so seeds differ by kind."""
    spread = formats.interval(min(seconds), max(seconds), decimals=1) if len(seconds) > 1 else ""
    return num(median(seconds) if seconds else None, 1, note=f"{spread}\nn = {len(seconds)}" if spread else "")


def engines(study: Study, words: Wording) -> View:
    rows = [
        (
            named(words, "engine", row["engine"]),
            yes_no(words, row["available"]),
            _seconds_to_compile(study.played.compile_s.get(row["engine"], ())),
            cell(words.told(row["why"]), sort=row["why"]),
        )
        for row in study.tables["engines"].rows
    ]
    return view(words, "engines", _columns(words, "engine available compile_s why".split()), rows, source="engines")


def agreement(study: Study, words: Wording) -> View | None:
    """Texts that are the same on two engines; None where no engine has another to agree with."""
    rows = [
        (
            named(words, "engine", row["engine"]),
            named(words, "engine", row["reference"]),
            named(words, "drafter", row["drafter"]),
            count(row["gamma"]),
            count(row["texts"]),
            cell(
                formats.whole(row["identical"]),
                sort=row["identical"],
                mark="" if row["identical"] == row["texts"] else "no",
            ),
            count(row["first_divergence"]),
            plainly(row["margin"], formats.scientific),
        )
        for row in study.tables["agreement"].rows
    ]
    names = "engine reference drafter gamma texts identical first_divergence margin"
    heads = _columns(words, names.split())
    return view(words, "agreement", heads, rows, source="agreement") if rows else None


def peers(table: Table, words: Wording) -> View:
    """Other programs and ours on the same weights, the fastest first."""
    rows = []
    for row in sorted(table.rows, key=lambda row: -row["tokens_per_s"]):
        spread = formats.interval(row["seconds_lo"], row["seconds_hi"], decimals=3)
        ratio = formats.interval(row["ratio_to_ours_lo"], row["ratio_to_ours_hi"], decimals=2)
        name = peer_name(row, words)
        rows.append(
            (
                cell(name, sort=name),
                num(row["tokens_per_s"], 0),
                num(row["seconds"], 3, note=spread),
                num(row["ratio_to_ours"], 2, times, note=ratio),
                count(row["tokens"]),
                count(row["repeats"]),
            )
        )
    names = "program tokens_per_s seconds ratio_to_ours tokens repeats"
    return view(words, "peers", _columns(words, names.split()), rows)


def training_speed(table: Table, words: Wording) -> View:
    rows = []
    for row in table.rows:
        speed = formats.interval(row["tokens_per_s_lo"], row["tokens_per_s_hi"], number, decimals=0)
        ratio = formats.interval(row["ratio_lo"], row["ratio_hi"], decimals=2)
        rows.append(
            (
                named(words, "model", row["model"]),
                cell(f"{row['loop']}, {row['precision']}", sort=str(row["loop"])),
                num(row["tokens_per_s"], 0, note=speed),
                num(row["ratio"], 2, times, note=ratio),
                count(row["threads"]),
                cell(str(row["device"]), sort=str(row["device"])),
            )
        )
    heads = _columns(words, "model loop tokens_per_s training_ratio threads device".split())
    return view(words, "training_speed", heads, rows)
