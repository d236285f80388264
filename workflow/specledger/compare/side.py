"""One side of a comparison: its tables, its text, and the settings and sums that its certificates tell."""

import csv
from dataclasses import dataclass, field
from pathlib import Path

from specledger.foundation.errors import UserError
from specledger.foundation.records import read_json

TEXT = ("sha256", "characters", "validation_characters", "prompt")
MACHINE = ("device", "threads")  # of settings: said, and no reason not to compare
# Settings that say how much is measured, or of what: a figure of fewer texts is the same figure.
AMOUNTS = frozenset(
    "positions draws contexts context_draws published_draws texts repeats repeat_draws stop warmup_tokens "
    "engines gammas sizes choosers drafters heads samplings".split()
)


@dataclass(frozen=True)
class Made:
    """What a certificate says of one result."""

    settings: dict
    settings_hash: str
    code: str
    device: str
    threads: int | None
    torch: str
    inputs: dict = field(default_factory=dict)
    files: dict = field(default_factory=dict)

    @classmethod
    def of(cls, record: dict) -> "Made":
        return cls(
            settings=record.get("settings") or {},
            settings_hash=record.get("settings_hash", ""),
            code=record.get("code_hash", ""),
            device=record.get("device", ""),
            threads=record.get("threads"),
            torch=record.get("versions", {}).get("torch", ""),
            inputs=record.get("inputs", {}),
            files=record.get("files", {}),
        )


@dataclass(frozen=True)
class Side:
    """The tables of a study and what is known of how they were made."""

    tables: Path
    text: dict
    made: dict[str, dict[str, Made]]  # by stage, or name of a model or head; then by seed

    @classmethod
    def of(cls, tables: Path) -> "Side":
        """UserError where the folder holds no table. Certificates lie beside it, as in results/<study>."""
        if not any(tables.glob("*.csv")):
            raise UserError(f"{tables}: holds no tables; run snakemake again, it makes what is missing")
        root, made = tables.parent, {}
        for path in sorted([*root.glob("*/*/certificate.json"), *root.glob("*/*/*/certificate.json")]):
            made.setdefault(path.parent.parent.name, {})[path.parent.name] = Made.of(read_json(path))
        ngram = root / "ngram" / "ngram.json"
        if ngram.is_file():
            record = read_json(ngram)
            settings = {name: record[name] for name in ("order", "discount") if name in record}
            made["ngram"] = {"": Made.of(record | {"settings": settings})}
        corpus = root / "corpus" / "corpus.json"
        record = read_json(corpus) if corpus.is_file() else {}
        return cls(tables=tables, text={name: record[name] for name in TEXT if record.get(name) is not None}, made=made)

    def rows(self, name: str) -> list[dict[str, str]]:
        """The rows of a table; none where it is not there or empty."""
        path = self.tables / f"{name}.csv"
        if not path.is_file():
            return []
        with path.open(encoding="utf-8", newline="") as file:
            return list(csv.DictReader(file))

    def seeds(self) -> list[int]:
        return sorted({int(row["seed"]) for row in self.rows("seeds")})

    def machines(self) -> set[tuple[str, int | None]]:
        return {(one.device, one.threads) for seeds in self.made.values() for one in seeds.values() if one.device}

    def first(self, stage: str) -> Made | None:
        return next(iter(self.made.get(stage, {}).values()), None)


def flat(settings: dict, path: str = "") -> dict[str, object]:
    """Nested settings by dotted name; what stands under an amount keeps its name alone."""
    found = {}
    for key, value in settings.items():
        name = f"{path}.{key}" if path else key
        found |= flat(value, name) if isinstance(value, dict) and key not in AMOUNTS else {name: value}
    return found


def changed(yours: Side, reference: Side) -> tuple[dict[str, str], list[str]]:
    """The stages whose settings make other figures of theirs, each with what differs, and all differences in words."""
    blocked, said = {}, []
    for stage in sorted(yours.made.keys() & reference.made.keys()):
        ours, theirs = (flat(side.first(stage).settings) for side in (yours, reference))
        if not (ours and theirs):
            continue
        lines = []
        for name in sorted(ours.keys() | theirs.keys()):
            if ours.get(name) != theirs.get(name):
                lines.append(f"{name} is {_shown(ours.get(name))}, in the reference {_shown(theirs.get(name))}")
                if name not in MACHINE and name.rpartition(".")[2] not in AMOUNTS:
                    blocked.setdefault(stage, f"{stage}: {lines[-1]}")
        if lines:
            said.append(f"{stage}: {'; '.join(lines)}")
    return blocked, said


def _shown(value: object) -> str:
    text = "not set" if value is None else str(value)
    return text if len(text) <= 60 else f"{text[:57]}…"


def other_text(yours: Side, reference: Side) -> str | None:
    """In which way the texts differ; None where they are the same or where one side does not tell."""
    for name in TEXT:
        ours, theirs = yours.text.get(name), reference.text.get(name)
        if ours is not None and theirs is not None and ours != theirs:
            return f"another text: {name} is {_shown(ours)}, in the reference {_shown(theirs)}"
    return None


def in_words(yours: Side, reference: Side) -> list[str]:
    """What a reader must know before any figure: text, seeds, machines, code, settings."""
    said, text = [], other_text(yours, reference)
    if text:
        said.append(f"{text}; no figure is compared")
    if not (yours.text and reference.text):
        said.append("one side does not tell its text (corpus/corpus.json beside tables/); it is taken to be the same")
    ours, theirs = yours.seeds(), reference.seeds()
    if ours != theirs:
        said.append(f"seeds {_list(ours)}, in the reference {_list(theirs)}")
    machines = [", ".join(sorted(f"{d} with {t} thread(s)" for d, t in side.machines())) for side in (yours, reference)]
    if machines[0] != machines[1]:
        said.append(
            f"measured on {machines[0] or 'an unknown machine'}, the reference on {machines[1] or 'one unknown'}"
        )
    code = [
        stage
        for stage in sorted(yours.made.keys() & reference.made.keys())
        if yours.first(stage).code != reference.first(stage).code
    ]
    if code:
        said.append(f"other code in the stages {', '.join(code)}")
    return said + changed(yours, reference)[1]


def _list(seeds: list[int]) -> str:
    return f"{len(seeds)} ({', '.join(map(str, seeds))})"
