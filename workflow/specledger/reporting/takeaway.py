"""What a reader takes along: the tables to the byte, all of them as one tidy file, what columns mean, how to cite."""

import csv
import io
import re
from collections.abc import Iterable

from specledger.foundation.records import csv_writer
from specledger.foundation.version import VERSION
from specledger.reporting import formats
from specledger.reporting.document import Cite, Download
from specledger.reporting.study import Study
from specledger.reporting.wording import TEMPLATES, Wording

DOWNLOADS = tuple(
    "claims ledger time forwards cost_model waterfall best_gamma noise engines agreement "
    "rates independence gap acceptance oracle contexts p_values sequences controls "
    "false_alarms prefix greedy seeds models differences systems trees ranks heads typical".split()
)
DICTIONARY = "dictionary"
TIDY = "everything"
TIDY_HEAD = ("table", "row", "column", "value")


def _csv(rows: Iterable[Iterable[object]]) -> bytes:
    buffer = io.StringIO()
    csv_writer(buffer).writerows(rows)
    return buffer.getvalue().encode("utf-8")


def meanings() -> list[tuple[str, str, str]]:
    """(tables, columns, meaning) of every line of results.md that explains columns of CSV files."""
    found, table = [], ""
    for line in (TEMPLATES / "results.md").read_text(encoding="utf-8").splitlines():
        if line.startswith("#"):
            table = ", ".join(re.findall(r"(\w+)\.csv", line.partition(":")[0]))
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if table and line.startswith("|") and len(cells) == 2 and cells[0] not in ("column", "---"):
            found.append((table, cells[0], cells[1]))
    return found


def dictionary() -> bytes:
    """dictionary.csv: a row a column, or several columns that share a meaning."""
    return _csv([("tables", "columns", "meaning"), *meanings()])


def tidy(tables: Iterable[tuple[str, bytes]]) -> bytes:
    """Every cell of every table in a row of its own, as the text that it is; rows count from 1."""
    rows: list[tuple] = [TIDY_HEAD]
    for name, content in tables:
        head, *body = csv.reader(io.StringIO(content.decode("utf-8"), newline=""))
        for number, line in enumerate(body, start=1):
            rows += [(name, number, column, value) for column, value in zip(head, line, strict=True)]
    return _csv(rows)


def downloads(study: Study, words: Wording) -> tuple[Download, ...]:
    """Every table as it lies on disk, and the dictionary."""
    found = []
    for name in DOWNLOADS:
        table = study.tables[name]
        size = formats.number(len(table.content) / 1000, 1)
        note = words.say("page.bytes", rows=formats.whole(len(table.rows)), size=size)
        found.append(Download(name=name, note=note, content=table.content))
    content = dictionary()
    size = formats.number(len(content) / 1000, 1)
    note = words.say("page.bytes", rows=formats.whole(len(meanings())), size=size)
    return (*found, Download(name=DICTIONARY, note=note, content=content))


def _bibtex(key: str, fields: dict[str, str]) -> str:
    lines = "".join(f"  {name} = {{{value}}},\n" for name, value in fields.items())
    return f"@misc{{{key},\n{lines}}}"


def cite(study: Study, words: Wording) -> Cite:
    """How to name this run: in plain words and as BibTeX; no date, since results carry none of their own."""
    about = study.provenance
    values = {
        "version": VERSION,
        "study": about["study"],
        "seeds": len(study.seeds),
        "seed_list": formats.runs(list(study.seeds)),
        "devices": words.listed(about["devices"]) or formats.MISSING,
        "corpus": words.say(f"facts.{corpus_kind(study)}"),
        "sha": str(study.corpus["sha256"])[:16],
        "settings": str(about["settings_hash"])[:16],
        "commit": (about["commit"] or formats.MISSING)[:16] + ("+" if about["dirty"] else ""),
    }
    fields = {
        "title": f"{{{words.say('cite.title', **values)}}}",
        "author": "{specledger developers}",
        "note": words.say("cite.note", **values),
    }
    safe = {name: re.sub(r"[\\{}%#&_$~^]", lambda found: f"\\{found[0]}", text) for name, text in fields.items()}
    safe |= {name: fields[name] for name in ("title", "author")}
    key = re.sub(r"\W", "", f"specledger-{about['study']}-{values['settings'][:8]}".replace("-", "_"))
    return Cite(plain=words.say("cite.plain", **values), bibtex=_bibtex(key, safe))


def corpus_kind(study: Study) -> str:
    """fallback, tiny or own: the key of the corpus' name."""
    corpus = study.corpus
    return "fallback" if corpus["fallback"] else "tiny" if corpus["tiny_shakespeare"] else "own"
