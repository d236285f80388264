"""Every sentence of the report, by language, from the files of workflow/report/text/<language>/."""

import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from specledger.foundation.drafters import SPECS, branched
from specledger.foundation.errors import UserError
from specledger.reporting.formats import MISSING, known, split_duration, whole
from specledger.reporting.inline import Span, filled, paragraphs, parse

TEMPLATES = Path(__file__).resolve().parent.parent.parent / "report"
TEXTS = TEMPLATES / "text"
FIGURE_TEXTS = ("figures", "figures_time", "figures_trees", "names")  # the files that figures take their words from

ROW = re.compile(r"(?P<engine>\w+), (?P<drafter>\w+), gamma (?P<gamma>\d+)")  # a row of the ledger, named in results
TREE_OF = re.compile(r"\((?P<drafter>\w+), (?P<gamma>\d+) nodes")  # a drafter and the size of its tree


def shape_of(drafter: str | None) -> str:
    """chain or tree: what a drafter proposes."""
    return "tree" if branched(drafter or "") else "chain"


@dataclass(frozen=True, kw_only=True)
class Wording:
    """Texts by dotted key, and the values that their {names} stand for."""

    texts: Mapping
    values: Mapping[str, object]

    def raw(self, key: str):
        """The entry under a dotted key; KeyError when the language lacks it."""
        entry = self.texts
        for part in key.split("."):
            if part not in entry:
                raise KeyError(f"text {key} is missing")
            entry = entry[part]
        return entry

    def has(self, key: str) -> bool:
        try:
            self.raw(key)
        except KeyError:
            return False
        return True

    def _all(self, values: Mapping[str, object]) -> dict[str, object]:
        return {**self.values, **values}

    def say(self, key: str, **values: object) -> str:
        """A text without markup."""
        return filled(" ".join(self.raw(key).split()), self._all(values))

    def spans(self, key: str, **values: object) -> tuple[Span, ...]:
        """One paragraph."""
        return parse(self.raw(key), self._all(values))

    def paragraphs(self, key: str, **values: object) -> tuple[tuple[Span, ...], ...]:
        """Several paragraphs."""
        return paragraphs(self.raw(key), self._all(values))

    def name(self, kind: str, key: str | None) -> str:
        """A drafter's, engine's or model's name; an unknown one keeps its key."""
        return self.texts.get("names", {}).get(kind, {}).get(key, key) or ""

    def size(self, drafter: str | None, gamma: float | None) -> str:
        """How large a proposal is: γ of a chain, nodes of a tree."""
        return self.name("size", shape_of(drafter)).format(gamma=whole(gamma))

    def duration(self, seconds: float | None) -> str:
        """Seconds in hours and minutes, as the language writes them."""
        if not known(seconds) or seconds < 0:
            return MISSING
        return " ".join(self.say(f"durations.{unit}", n=n) for unit, n in split_duration(seconds))

    @property
    def joint(self) -> tuple[Span, ...]:
        """What stands between two sentences."""
        return (Span(kind="text", text=self.raw("page.sentence_joint")),)

    def joined(self, *sentences: str) -> str:
        """Sentences of one paragraph; empty ones fall out."""
        return self.raw("page.sentence_joint").join(filter(None, sentences))

    def apart(self, *items: str) -> str:
        """a, b, c: parts of a name, as the language parts them."""
        return self.raw("names.joint").join(filter(None, items))

    def told(self, text: str | None) -> str:
        """What a result file says in words of its own (a method, a reason), in the words of the report."""

        def row(found: re.Match) -> str:
            names = {kind: self.name(kind, found[kind]) for kind in ("engine", "drafter")}
            return self.say("said.row", size=self.size(found["drafter"], int(found["gamma"])), **names)

        def tree(found: re.Match) -> str:
            size = self.name("size", "tree").format(gamma=found["gamma"])
            return f"({self.name('drafter', found['drafter'])}, {size}"

        text = TREE_OF.sub(tree, ROW.sub(row, text or ""))
        for pattern, words in self.raw("said.patterns"):
            text = re.sub(pattern, words, text)
        return text

    def listed(self, items: Iterable[str]) -> str:
        """a, b and c, as the language joins them."""
        items = [str(item) for item in items]
        if len(items) < 2:
            return "".join(items)
        joint, last = self.raw("page.list_joint"), self.raw("page.list_last")
        return f"{joint.join(items[:-1])}{last}{items[-1]}"


def languages() -> list[str]:
    """The languages that there are, English first: it is the default."""
    return sorted((folder.name for folder in TEXTS.iterdir() if folder.is_dir()), key=lambda name: (name != "en", name))


def _merged(into: dict, new: Mapping, where: str) -> dict:
    for key, value in new.items():
        if isinstance(value, Mapping) and isinstance(into.get(key), dict):
            _merged(into[key], value, f"{where}{key}.")
        elif key in into:
            raise KeyError(f"text {where}{key} comes twice")
        else:
            into[key] = value
    return into


def read_texts(language: str, parts: Iterable[str] | None = None) -> dict:
    """The texts of a language, from all its files or those named; UserError lists the languages that there are."""
    if language not in languages():
        raise UserError(f"config report.language: {language} — allowed: {', '.join(languages())}")
    names = sorted(path.stem for path in (TEXTS / language).glob("*.toml")) if parts is None else parts
    texts: dict = {}
    for name in names:
        _merged(texts, tomllib.loads((TEXTS / language / f"{name}.toml").read_text(encoding="utf-8")), "")
    if "names" in texts:
        titles = {name: title[language] for spec in SPECS.values() for name, title in spec.titles.items()}
        _merged(texts, {"names": {"drafter": titles}}, "")
    return texts


def read_wording(language: str, values: Mapping[str, object], parts: Iterable[str] | None = None) -> Wording:
    """The texts of a language with the values that they quote; UserError as `read_texts`."""
    return Wording(texts=read_texts(language, parts), values=values)
