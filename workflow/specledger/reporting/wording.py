"""Every sentence of the report, by language, from workflow/report/text.<language>.toml."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from specledger.foundation.errors import UserError
from specledger.reporting.inline import Span, paragraphs, parse

TEMPLATES = Path(__file__).resolve().parent.parent.parent / "report"


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
        return " ".join(self.raw(key).split()).format_map(self._all(values))

    def spans(self, key: str, **values: object) -> tuple[Span, ...]:
        """One paragraph."""
        return parse(self.raw(key), self._all(values))

    def paragraphs(self, key: str, **values: object) -> tuple[tuple[Span, ...], ...]:
        """Several paragraphs."""
        return paragraphs(self.raw(key), self._all(values))

    def name(self, kind: str, key: str | None) -> str:
        """A drafter's, engine's or model's name; an unknown one keeps its key."""
        return self.texts.get("names", {}).get(kind, {}).get(key, key) or ""


def read_wording(language: str, values: Mapping[str, object]) -> Wording:
    """The texts of a language; UserError lists the languages that there are."""
    path = TEMPLATES / f"text.{language}.toml"
    if not path.is_file():
        there = ", ".join(sorted(found.name.split(".")[1] for found in TEMPLATES.glob("text.*.toml")))
        raise UserError(f"config report.language: {language} — there is no {path.name}; allowed: {there}")
    return Wording(texts=tomllib.loads(path.read_text(encoding="utf-8")), values=values)
