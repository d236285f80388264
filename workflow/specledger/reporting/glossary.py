"""The words of the report: what each means, in a section of its own and at the places where it comes first."""

from specledger.reporting.document import Word
from specledger.reporting.inline import plain
from specledger.reporting.wording import Wording


def entries(words: Wording) -> tuple[Word, ...]:
    """Every word, in the order of the texts."""
    found = []
    for key, entry in words.raw("words").items():
        text = words.spans(f"words.{key}.text")
        found.append(Word(id=key, term=entry["term"], text=text, plain=plain(text)))
    return tuple(found)
