"""What a reader may play with: how it gets its words, its data and its place on the page.

Each explorable is a block built here or in a module explorables_*.py, a template, and a script of the same name
in workflow/report/explorables. The template shows the state before any touch, so that the page is complete without
a script; the script shows the same state by the same numbers.
"""

import json
from collections.abc import Iterable, Mapping

from jinja2.utils import htmlsafe_json_dumps
from markupsafe import Markup

from specledger.reporting import formats
from specledger.reporting.document import Explorable, Outcome
from specledger.reporting.formats import known
from specledger.reporting.inline import Span
from specledger.reporting.wording import Wording

FOLDER = "explorables"
STYLES = (f"{FOLDER}/explorables.css",)
SCRIPTS = tuple(
    f"{FOLDER}/{name}.js"
    for name in "common theory sampling tables mask rule speedup module sample ledger waterfall battery seeds".split()
)
FILTERS = {
    name: getattr(formats, name)
    for name in "number whole small scientific p_value times percent milliseconds interval symbol visible".split()
}
FILTERS["raised"] = lambda power: str(power).translate(formats.SUPERSCRIPTS)
OWN = ("title", "lead")  # what Python says; all else goes to template and script


def block(
    name: str,
    words: Wording,
    data: Mapping[str, object],
    *,
    lead: tuple[Span, ...] | None = None,
    names: Mapping[str, Iterable[str]] | None = None,
    outcomes: Mapping[str, str] | None = None,
    **fields: object,
) -> Explorable:
    """An explorable with its texts and those of `names` (kind: keys); an outcome's label is the text of its key."""
    key = f"explorables.{name}"
    texts = {one: " ".join(text.split()) for one, text in words.raw(key).items() if one not in OWN}
    texts["joint"] = words.raw("names.joint")
    for kind, keys in (names or {}).items():
        texts |= {f"{kind}_{one}": words.name(kind, one) for one in keys}
    return Explorable(
        name=name,
        title=words.say(f"{key}.title"),
        lead=words.spans(f"{key}.lead") if lead is None else lead,
        words=texts,
        data=data,
        outcomes=tuple(
            Outcome(id=one, label=texts[one], text=text or formats.MISSING) for one, text in (outcomes or {}).items()
        ),
        **fields,
    )


def rounded(value: float | None, digits: int = 6) -> float | None:
    """A number to so many significant digits, None where it is missing: the page carries no more than it shows."""
    return float(f"{value:.{digits}g}") if known(value) else None


def carried(shown: Explorable) -> Markup:
    """Words and data as JSON that may stand inside a <script>; the same bytes for the same content."""
    content = {"words": dict(shown.words), "data": shown.data}
    options = {"sort_keys": True, "allow_nan": False, "ensure_ascii": False, "separators": (",", ":")}
    return htmlsafe_json_dumps(content, dumps=json.dumps, **options)
