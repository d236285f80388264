"""Blocks and sections out of one study in one language."""

from dataclasses import dataclass

from specledger.reporting.document import Block, Formula, Picture, Question, Questions, Section, Text
from specledger.reporting.study import Study
from specledger.reporting.wording import Wording


@dataclass(frozen=True, kw_only=True)
class Builder:
    """Blocks out of one study in one language."""

    study: Study
    words: Wording

    def text(self, key: str, **values: object) -> Text:
        return Text(paragraphs=self.words.paragraphs(key, **values))

    def joined(self, *keys: str, **values: object) -> Text:
        """Several texts as one paragraph."""
        spans = [self.words.spans(key, **values) for key in keys]
        return Text(paragraphs=(sum((self.words.joint + found for found in spans[1:]), spans[0]),))

    def formula(self, name: str) -> Formula:
        key = f"formulas.{name}"
        return Formula(name=name, label=self.words.say(key), note=self.words.say(f"{key}_note"))

    def picture(self, name: str, **values: object) -> Picture:
        key = f"figures.{name}"
        caption = self.words.spans(f"{key}.caption", **values)
        return Picture(name=name, alt=self.words.say(f"{key}.alt"), caption=caption)

    def questions(self, section: str, **values: object) -> Questions:
        names = self.words.raw(f"sections.{section}.questions")
        items = [
            Question(
                ask=self.words.say(f"questions.{name}.ask", **values),
                answer=self.words.paragraphs(f"questions.{name}.answer", **values),
            )
            for name in names
        ]
        return Questions(items=tuple(items))

    def section(self, name: str, number: str, *blocks: Block | None) -> Section:
        """A section with its published readings before its questions."""
        key = f"sections.{name}"
        return Section(
            id=name,
            number=number,
            title=self.words.say(f"{key}.title"),
            nav=self.words.say(f"{key}.nav"),
            blocks=tuple(block for block in blocks if block is not None),
        )
