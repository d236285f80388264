"""Blocks and sections out of one study in one language."""

from dataclasses import dataclass

from specledger.reporting.document import (
    Block,
    Explorable,
    Fold,
    Formula,
    Picture,
    Question,
    Questions,
    Section,
    Text,
    View,
)
from specledger.reporting.formats import whole
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

    def fold(self, topic: str, name: str, *blocks: Block | None) -> Fold | None:
        """Blocks behind one line, titled by the topic's texts; None where there are none."""
        kept = tuple(block for block in blocks if block is not None)
        if not kept:
            return None
        rows = max((block.total for block in kept if isinstance(block, View)), default=0)
        title = self.words.say(f"sections.{topic}.folds.{name}")
        return Fold(id=f"fold-{topic}-{name}", title=title, note=self._rows(rows), blocks=kept)

    def table(self, topic: str, shown: View | None) -> Fold | None:
        """A table behind the line that names it."""
        if shown is None:
            return None
        return Fold(id=f"fold-{topic}-{shown.name}", title=shown.title, note=self._rows(shown.total), blocks=(shown,))

    def trial(self, shown: Explorable | None) -> Fold | None:
        """An explorable behind the line that names it."""
        if shown is None:
            return None
        return Fold(id=f"try-{shown.name}", title=shown.title, note=self.words.say("page.try"), blocks=(shown,))

    def _rows(self, count: int) -> str:
        return self.words.say("page.rows", count=whole(count)) if count else ""

    def questions(self, topic: str, **values: object) -> Fold:
        """The topic's questions and answers behind one line."""
        items = [
            Question(
                ask=self.words.say(f"questions.{name}.ask", **values),
                answer=self.words.paragraphs(f"questions.{name}.answer", **values),
            )
            for name in self.words.raw(f"sections.{topic}.questions")
        ]
        blocks = (Questions(items=tuple(items)),)
        return Fold(
            id=f"fold-{topic}-questions", title=self.words.say("page.answered"), note=str(len(items)), blocks=blocks
        )

    def section(self, name: str, number: str, brief: Text, figure: Picture | None, *folds: Fold | None) -> Section:
        """A topic; folds that are None fall out."""
        key = f"sections.{name}"
        return Section(
            id=name,
            number=number,
            title=self.words.say(f"{key}.title"),
            nav=self.words.say(f"{key}.nav"),
            brief=brief,
            figure=figure,
            folds=tuple(fold for fold in folds if fold is not None),
        )
