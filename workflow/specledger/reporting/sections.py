"""The five sections and what follows them, as blocks."""

from collections.abc import Mapping
from dataclasses import dataclass

from specledger.reporting import explorables, findings, formats, views_checks, views_ledger
from specledger.reporting.document import (
    Block,
    Code,
    Fact,
    Facts,
    Formula,
    Legend,
    Picture,
    Question,
    Questions,
    Run,
    Sample,
    Section,
    Text,
)
from specledger.reporting.drawing_rule import Chosen, choose
from specledger.reporting.study import Study
from specledger.reporting.wording import Wording

KINDS = ("accepted", "sampled", "resampled")
SAMPLE_LENGTH = 240


@dataclass(frozen=True, kw_only=True)
class Builder:
    """Blocks out of one study in one language."""

    study: Study
    words: Wording

    def text(self, key: str, **values: object) -> Text:
        return Text(paragraphs=self.words.paragraphs(key, **values))

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


def verify(make: Builder) -> Section:
    return make.section(
        "verify",
        "1",
        make.text("sections.verify.lead"),
        views_checks.readings(make.study, make.words, "1"),
        views_checks.prefix(make.study, make.words),
        views_checks.greedy(make.study, make.words),
        make.questions("verify"),
    )


def accept(make: Builder, chosen: Chosen) -> Section:
    values = findings.accept_values(chosen, make.words)
    return make.section(
        "accept",
        "2",
        make.text("sections.accept.lead", **values),
        make.formula("accept"),
        make.formula("residual"),
        make.picture("acceptance_rule", **values),
        views_checks.position(make.words, chosen),
        make.text("sections.accept.after"),
        views_checks.acceptance(make.study, make.words),
        views_checks.acceptance_rows(make.study, make.words),
        views_checks.readings(make.study, make.words, "2"),
        make.questions("accept"),
    )


def gamma(make: Builder) -> Section:
    study, words = make.study, make.words
    values = findings.cheap_values(study, words) | {"measured": findings.more_is_less(study, words)}
    return make.section(
        "gamma",
        "3",
        make.text("sections.gamma.lead"),
        make.formula("eq1"),
        make.text("sections.gamma.theorem"),
        make.formula("theorem38"),
        make.text("sections.gamma.cost"),
        make.formula("cost_model"),
        explorables.speedup(study, words),
        make.text("sections.gamma.after"),
        make.picture("tokens_per_round"),
        views_ledger.tokens(study, words),
        make.text("sections.gamma.clock"),
        make.picture("wall_clock"),
        views_ledger.forwards(study, words),
        views_checks.readings(study, words, "3"),
        make.questions("gamma", **values),
    )


def sample_of(make: Builder) -> tuple[Text, Sample]:
    """The opening of the self-drafted text, its characters by how they came about."""
    record, words = make.study.sample, make.words
    tokens = record["tokens"][:SAMPLE_LENGTH]
    runs: list[list[str]] = []
    for token in tokens:
        if runs and runs[-1][0] == token["kind"]:
            runs[-1][1] += token["text"]
        else:
            runs.append([token["kind"], token["text"]])
    counts = {kind: sum(token["kind"] == kind for token in tokens) for kind in KINDS}
    method = {"drafter": "mtp", "gamma": 1, **record}
    values = findings.method_names(words, method) | {kind: str(number) for kind, number in counts.items()}
    lead = make.text("sections.mtp.sample_lead", **(values | {"total": str(len(tokens))}))
    return lead, Sample(
        prompt=record["prompt"],
        runs=tuple(Run(kind=kind, text=text) for kind, text in runs),
        legend=tuple(Legend(kind=kind, label=words.name("kind", kind)) for kind in KINDS),
    )


def mtp(make: Builder) -> Section:
    study, words = make.study, make.words
    difference = findings.difference_values(study, words)
    return make.section(
        "mtp",
        "4",
        make.text("sections.mtp.lead"),
        views_ledger.models(study, words),
        make.picture("learning_curves"),
        make.text("sections.mtp.paired", **difference),
        make.picture("seeds"),
        views_ledger.seeds(study, words),
        make.text("sections.mtp.versus"),
        views_ledger.one_guess(study, words),
        *sample_of(make),
        views_checks.readings(study, words, "4"),
        make.questions("mtp", **difference),
    )


def ledger(make: Builder) -> Section:
    study, words = make.study, make.words
    return make.section(
        "ledger",
        "5",
        make.text("sections.ledger.lead"),
        views_ledger.ledger(study, words),
        make.text("sections.ledger.after"),
        make.text("sections.ledger.time"),
        make.picture("time_parts"),
        views_ledger.time(study, words),
        views_checks.readings(study, words, "5"),
        make.questions("ledger", most_tokens=findings.most_tokens(study, words)),
    )


def intervals(make: Builder) -> Section:
    title = make.words.say("page.intervals")
    return Section(id="intervals", number="", title=title, nav=title, blocks=(make.text("intervals.lead"),))


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
    """A setting as it would be typed; nothing is `–`."""
    if value is None:
        return formats.MISSING
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list | tuple):
        return f"[{', '.join(plain_value(item) for item in value)}]"
    return repr(value) if isinstance(value, str) else str(value)


def provenance(make: Builder, commit: str) -> Section:
    about, words = make.study.provenance, make.words
    values = {
        "study": about["study"],
        "settings_hash": about["settings_hash"],
        "commit": commit,
        "seeds": formats.runs(about["seeds"]),
        "devices": formats.listed(about["devices"]),
        "threads": formats.listed(about["threads"]),
        "platform": about["platform"],
        "train": formats.duration(about["train_s"]),
        "sweep": formats.duration(about["sweep_s"]),
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
    title = words.say("page.provenance")
    return Section(id="provenance", number="", title=title, nav=title, blocks=(Facts(items=tuple(facts)), config))


def all_sections(study: Study, words: Wording, commit: str) -> tuple[Section, ...]:
    make = Builder(study=study, words=words)
    return (
        verify(make),
        accept(make, choose(study.positions)),
        gamma(make),
        mtp(make),
        ledger(make),
        intervals(make),
        provenance(make, commit),
    )
