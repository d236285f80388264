"""What follows the topics, each behind a fold: words, how to read the intervals, where the results come from."""

import json
from collections.abc import Mapping

from specledger.reporting import formats, glossary, views_intervals
from specledger.reporting.builder import Builder
from specledger.reporting.document import Code, Fact, Facts, Fold, Words


def intervals(make: Builder) -> Fold:
    blocks = (make.text("intervals.lead"), views_intervals.intervals(make.study, make.words))
    return Fold(id="intervals", title=make.words.say("page.intervals"), blocks=blocks)


def words(make: Builder) -> Fold:
    """Every term of the report; the page alone has room for it."""
    blocks = (Words(items=glossary.entries(make.words)),)
    return Fold(id="glossary", title=make.words.say("page.words"), blocks=blocks)


def dotted(config: Mapping, prefix: str = "") -> list[str]:
    """The configuration as dotted keys, one a line, in its own order."""
    lines = []
    for key, value in config.items():
        if isinstance(value, Mapping) and value:
            lines += dotted(value, f"{prefix}{key}.")
        else:
            lines.append(f"{prefix}{key} = {plain_value(value)}")
    return lines


def plain_value(value: object) -> str:
    """A setting as it is typed in YAML; nothing is `–`."""
    if value is None:
        return formats.MISSING
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key}: {plain_value(inner)}" for key, inner in value.items()) + "}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(plain_value(item) for item in value)}]"
    return formats.written(json.dumps(value, ensure_ascii=False))


def provenance(make: Builder, commit: str) -> Fold:
    about, words = make.study.provenance, make.words
    values = {
        "study": about["study"],
        "settings_hash": about["settings_hash"],
        "commit": commit,
        "seeds": formats.runs(about["seeds"]),
        "devices": words.listed(about["devices"]),
        "threads": words.listed(about["threads"]),
        "platform": about["platform"],
        "train": words.duration(about["train_s"]),
        "sweep": words.duration(about["sweep_s"]),
        "corpus": make.study.corpus["sha256"],
        "versions": ", ".join(f"{name} {version}" for name, version in sorted(about["versions"].items())),
    }
    facts = [
        Fact(term=words.say(f"provenance.{key}"), value=str(value or formats.MISSING)) for key, value in values.items()
    ]
    config = Code(
        title=words.say("provenance.config"),
        lead=words.say("provenance.config_lead"),
        text="\n".join(dotted(about["config"])),
    )
    return Fold(id="provenance", title=words.say("page.provenance"), blocks=(Facts(items=tuple(facts)), config))


def appendix(make: Builder, commit: str) -> tuple[Fold, ...]:
    return words(make), intervals(make), provenance(make, commit)
