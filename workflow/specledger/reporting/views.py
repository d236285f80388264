"""Tables as readers see them: columns chosen, numbers formatted, intervals beneath their means."""

from collections.abc import Callable, Iterable

from specledger.reporting import formats
from specledger.reporting.document import Cell, Column, View, cell
from specledger.reporting.formats import MISSING, known, number
from specledger.reporting.tables import Row
from specledger.reporting.views_bounds import CUT, spread_of
from specledger.reporting.wording import Wording

NUMERIC = frozenset(
    "published measured rows difference texts identical first_divergence margin p q kept residual sum frequency "
    "positions acceptance beta tv_output tv_expected tv_q999 beyond tv_draft chi2 df p_value least_p seed "
    "position gamma alpha eq1 tokens_per_round gap seconds ratio parameters head steps batch learning_rate n loss "
    "mtp_loss plain mtp paired module draft target_forwards draft_forwards wall speedup theorem38 cost_model c v "
    "total draft_part catch_up verify accept sync other beta_inside least_tv_p least_chi2_p worst_leak largest_bound "
    "tv_p_value chi2_p_value leak tv_bound vocabulary blocks deviation fisher sum_p holm bh below ks power repeats "
    "draws_each rejected rate level guess examined passed rate_j reached reached_rb counted averaged homogeneity "
    "geometric lag1 drift dependence ending measured_tokens sd equivalence_margin section tost_interval tost_p "
    "detectable added trained v_chain v_tree most predicted best_chain best_tree tree_ratio depth first_sibling "
    "second_sibling third_sibling".split()
)
WORDS = {
    "engine": "engine", "gamma": "gamma", "alpha": "alpha", "beta": "beta", "c": "c", "v": "v", "ratio": "v",
    "tv_output": "tv", "tv_draft": "tv", "tv_expected": "tv", "tv_p_value": "tv", "tv_bound": "tv", "holm": "holm",
    "p_value": "p", "chi2_p_value": "chi2", "sum_p": "chi2", "power": "power", "drafter": "drafter", "eq1": "eq1",
    "theorem38": "theorem38", "cost_model": "cost", "same": "lossless", "tokens_per_round": "round", "bh": "bh",
    "largest_bound": "tv", "least_tv_p": "tv", "least_chi2_p": "chi2", "tost_p": "equivalence", "speedup": "speedup",
    "v_chain": "v", "v_tree": "v", "best_tree": "tree", "head_name": "head",
}  # fmt: skip
WIDE = frozenset({"claim", "why", "rule", "fault", "caught_by", "wide_where"})
GLYPHS = {"reproduced": "✓", "not reproduced": "✗", "inconclusive": "?", "not comparable": "≠"}
MARKS = {verdict: verdict.replace(" ", "-") for verdict in GLYPHS}


def columns(words: Wording, names: str, **labels: str) -> tuple[Column, ...]:
    """Headings by their keys in the texts; `labels` gives those that are names of parts."""
    return tuple(
        Column(
            label=labels.get(name) or words.say(f"columns.{name}"),
            numeric=name in NUMERIC,
            wide=name in WIDE,
            word=WORDS.get(name, ""),
        )
        for name in names.split()
    )


def view(words: Wording, name: str, heads: tuple[Column, ...], rows: Iterable[tuple[Cell, ...]], **options) -> View:
    """A view titled by the texts; `values` fill its caption, `most` cuts its rows and says so, `left_out` too."""
    values, most = options.pop("values", {}), options.pop("most", None)
    rows = tuple(rows)
    kept = rows if most is None else rows[:most]
    notes = [words.say("page.cut", shown=len(kept), total=len(rows))] if len(kept) < len(rows) else []
    if left := options.pop("left_out", 0):
        notes.append(words.say("page.left_out", count=left))
    if any(CUT in one.note for row in kept for one in row):
        notes.append(words.say("page.bounded"))
    return View(
        name=name,
        title=words.say(f"tables.{name}.title"),
        caption=words.say(f"tables.{name}.caption", **values),
        columns=heads,
        rows=kept,
        total=len(rows),
        cut_note=words.joined(*notes),
        **options,
    )


def num(value: float | None, decimals: int = 3, form: Callable = number, note: str = "") -> Cell:
    """A number that sorts by its value."""
    return cell(form(value, decimals), sort=value if known(value) else None, note=note)


def plainly(value: float | None, form: Callable) -> Cell:
    """A number in a form that takes no decimals."""
    return cell(form(value), sort=value if known(value) else None)


def count(value: float | None) -> Cell:
    return plainly(value, formats.whole)


def with_interval(row: Row, column: str, decimals: int = 3, form: Callable = number) -> Cell:
    """A mean with its interval beneath."""
    # Plain decoding yields one token a round by definition: an interval of no width would look measured.
    measured = row[f"{column}_lo"] != row[f"{column}_hi"]
    return num(row[column], decimals, form, note=spread_of(row, column, decimals) if measured else "")


def named(words: Wording, kind: str, key: str | None) -> Cell:
    name = words.name(kind, key) or MISSING
    return Cell(text=name, sort=name, mark=key if kind == "drafter" and key else "")


def yes_no(words: Wording, value: bool | None) -> Cell:
    if value is None:
        return cell(MISSING)
    name = words.say("columns.yes" if value else "columns.no")
    return cell(name, sort=name, mark="" if value else "no")


def verdict(words: Wording, key: str) -> Cell:
    name = words.name("verdict", key)
    return Cell(text=f"{GLYPHS.get(key, '?')} {name}", sort=name, mark=MARKS.get(key, ""))


def mean(values: Iterable[float | None]) -> float | None:
    """The mean of what is known; None where nothing is."""
    found = [value for value in values if known(value)]
    return sum(found) / len(found) if found else None


def least(values: Iterable[float | None]) -> float | None:
    return min((value for value in values if known(value)), default=None)


def largest(values: Iterable[float | None]) -> float | None:
    return max((value for value in values if known(value)), default=None)


def grouped(rows: Iterable[Row], *keys: str) -> dict[tuple, list[Row]]:
    """Rows by the values of some columns, in order of appearance."""
    found: dict[tuple, list[Row]] = {}
    for row in rows:
        found.setdefault(tuple(row[key] for key in keys), []).append(row)
    return found
