"""What a report consists of, without a word on how it looks: both renderers walk through these blocks."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from specledger.reporting.formats import MISSING
from specledger.reporting.inline import Span

Paragraph = tuple[Span, ...]


@dataclass(frozen=True, kw_only=True)
class Cell:
    """A cell as it is shown; `sort` orders it (None is missing and stays last), `mark` picks its look."""

    text: str
    note: str = ""
    sort: float | str | None = None
    mark: str = ""

    def __post_init__(self):
        assert self.text != "", "an empty cell is written as a dash"


@dataclass(frozen=True, kw_only=True)
class Column:
    """A heading; numbers are set flush right; `word` is the id of what the heading means among the words."""

    label: str
    numeric: bool = False
    wide: bool = False
    word: str = ""


@dataclass(frozen=True, kw_only=True)
class View:
    """A table as it is shown; `source` names the CSV that holds its facts, `total` how many rows there are.

    `cards` stacks each row's cells on a narrow screen; `paper` is for a table whose rows the page shows in an
    explorable. A row of one cell is a band over all columns, which heads the rows behind it.
    """

    name: str
    title: str
    caption: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    source: str = ""
    total: int = 0
    cut_note: str = ""
    cards: bool = False
    paper: bool = False
    kind: str = field(default="table", init=False)


@dataclass(frozen=True, kw_only=True)
class Text:
    paragraphs: tuple[Paragraph, ...]
    kind: str = field(default="text", init=False)


@dataclass(frozen=True, kw_only=True)
class Formula:
    name: str
    label: str
    note: str
    kind: str = field(default="formula", init=False)


@dataclass(frozen=True, kw_only=True)
class Picture:
    name: str
    alt: str
    caption: Paragraph
    kind: str = field(default="figure", init=False)


@dataclass(frozen=True, kw_only=True)
class Question:
    ask: str
    answer: tuple[Paragraph, ...]


@dataclass(frozen=True, kw_only=True)
class Questions:
    items: tuple[Question, ...]
    kind: str = field(default="questions", init=False)


@dataclass(frozen=True, kw_only=True)
class Run:
    """A stretch of a generated text that came about in one way."""

    kind: str
    text: str


@dataclass(frozen=True, kw_only=True)
class Legend:
    kind: str
    label: str


@dataclass(frozen=True, kw_only=True)
class Sample:
    prompt: str
    runs: tuple[Run, ...]
    legend: tuple[Legend, ...]
    kind: str = field(default="sample", init=False)


@dataclass(frozen=True, kw_only=True)
class Word:
    """An entry of the glossary; `plain` is its meaning without markup, for a tooltip."""

    id: str
    term: str
    text: Paragraph
    plain: str


@dataclass(frozen=True, kw_only=True)
class Words:
    items: tuple[Word, ...]
    kind: str = field(default="words", init=False)


@dataclass(frozen=True, kw_only=True)
class Fact:
    term: str
    value: str
    note: str = ""
    wide: bool = False


@dataclass(frozen=True, kw_only=True)
class Facts:
    items: tuple[Fact, ...]
    kind: str = field(default="facts", init=False)


@dataclass(frozen=True, kw_only=True)
class Code:
    title: str
    lead: str
    text: str
    kind: str = field(default="code", init=False)


@dataclass(frozen=True, kw_only=True)
class Control:
    """A slider: its bounds, step and value as an <input> wants them, and the value in words."""

    id: str
    label: str
    least: str
    most: str
    step: str
    value: str
    text: str


@dataclass(frozen=True, kw_only=True)
class Outcome:
    id: str
    label: str
    text: str


@dataclass(frozen=True, kw_only=True)
class Explorable:
    """Something to play with, as it stands before any touch.

    `data` is what its template and its script show, numbers as they were measured; `words` are their texts.
    """

    name: str
    title: str
    lead: Paragraph
    words: Mapping[str, str]
    data: Mapping[str, object]
    controls: tuple[Control, ...] = ()
    outcomes: tuple[Outcome, ...] = ()
    kind: str = field(default="explorable", init=False)


Block = Text | Formula | Picture | View | Questions | Sample | Words | Facts | Code | Explorable


@dataclass(frozen=True, kw_only=True)
class Fold:
    """What the page opens in place from one line: its title, a note on how much is behind it, and its blocks."""

    id: str
    title: str
    blocks: tuple[Block, ...]
    note: str = ""


@dataclass(frozen=True, kw_only=True)
class Section:
    """A topic of the report: what was found in a few sentences, one figure, and all else behind folds.

    `number` is empty for what stands outside the numbered ones.
    """

    id: str
    number: str
    title: str
    nav: str
    brief: Text
    figure: Picture | None
    folds: tuple[Fold, ...]

    @property
    def blocks(self) -> tuple[Block, ...]:
        """Every block in its order, as if nothing were folded."""
        figure = (self.figure,) if self.figure else ()
        return (self.brief, *figure, *(block for fold in self.folds for block in fold.blocks))


@dataclass(frozen=True, kw_only=True)
class Banner:
    """Something that a reader must know before any number: level is alarm, warning or note."""

    id: str
    level: str
    title: str
    text: Paragraph
    items: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Tally:
    verdict: str
    glyph: str
    label: str
    count: str


@dataclass(frozen=True, kw_only=True)
class ClaimGroup:
    """Readings of one kind: how many got which verdict, in the order of the scoreboard, and the readings."""

    id: str
    title: str
    about: str
    counts: tuple[str, ...]
    view: View


@dataclass(frozen=True, kw_only=True)
class Claims:
    """The published readings: where they come from, the scoreboard, those not reproduced, and all by group."""

    source: Paragraph
    verdicts: tuple[Tally, ...]
    groups: tuple[ClaimGroup, ...]
    refuted: View | None


@dataclass(frozen=True, kw_only=True)
class Download:
    """A CSV file to take away, as bytes."""

    name: str
    note: str
    content: bytes


@dataclass(frozen=True, kw_only=True)
class Cite:
    """How to name this run, in a sentence and as BibTeX."""

    plain: str
    bibtex: str


@dataclass(frozen=True, kw_only=True)
class Reference:
    label: str
    title: str
    url: str


@dataclass(frozen=True, kw_only=True)
class Document:
    lang: str
    words: Mapping[str, str]
    title: str
    subtitle: str
    facts: tuple[Fact, ...]
    banners: tuple[Banner, ...]
    answer: tuple[Paragraph, ...]
    answer_notes: tuple[Paragraph, ...]
    claims_lead: Paragraph
    claims: Claims | None
    glossary: tuple[Word, ...]
    sections: tuple[Section, ...]
    appendix: tuple[Fold, ...]
    downloads: tuple[Download, ...]
    tables_lead: Paragraph
    whole_lead: Paragraph
    figures_lead: Paragraph
    figure_names: tuple[str, ...]
    cite: Cite
    references: tuple[Reference, ...]


def cell(text: str, sort: float | str | None = None, note: str = "", mark: str = "") -> Cell:
    """A cell; empty text becomes a dash."""
    return Cell(text=text or MISSING, note=note, sort=sort, mark=mark)
