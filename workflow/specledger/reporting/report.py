"""One study in one language, as the document that both renderers print."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from specledger.reporting import findings, formats, glossary, takeaway, views_claims
from specledger.reporting import study as studies
from specledger.reporting.answer import facts as answer_facts
from specledger.reporting.appendix import appendix
from specledger.reporting.builder import Builder
from specledger.reporting.document import Document, Fact, Reference
from specledger.reporting.sections import all_sections
from specledger.reporting.study import Study
from specledger.reporting.wording import Wording, read_wording

PAGE_WORDS = (
    "skip contents ran answer claims downloads filter filter_count cut references footer top answered "
    "product unprintable words appendix about_best claims_how cite cite_lead copy_it copied english_figures "
    "english_paper"
).split()


def language(provenance: Mapping) -> str:
    """config report.language."""
    return provenance["config"]["report"]["language"]


def commit_words(study: Study, words: Wording, length: int) -> tuple[str, str]:
    """The commit's first characters and whether the tree was clean."""
    about = study.provenance
    if not about["commit"]:
        return words.say("facts.unknown"), ""
    state = {True: "dirty", False: "clean"}.get(about["dirty"], "unknown_state")
    return about["commit"][:length], words.say(f"facts.{state}")


WIDE_FACTS = ("corpus", "readings")


def first_facts(study: Study, words: Wording) -> tuple[Fact, ...]:
    """What was run, for the first screen."""
    about, corpus = study.provenance, study.corpus
    kind = takeaway.corpus_kind(study)
    commit, state = commit_words(study, words, 10)
    size = words.say(
        "facts.corpus_value",
        name=words.say(f"facts.{kind}"),
        characters=formats.whole(corpus.get("characters")),
        symbols=formats.whole(len(corpus.get("vocabulary") or ()) or None),
    )
    values = [
        ("study", about["study"], ""),
        ("device", words.listed(about["devices"]) or formats.MISSING, ""),
        ("seeds", words.say("facts.seeds_value", list=formats.runs(list(study.seeds)), count=len(study.seeds)), ""),
        ("training", words.duration(about["train_s"]), ""),
        ("sweep", words.duration(about["sweep_s"]), ""),
        ("commit", commit, state),
        ("settings", str(about["settings_hash"])[:10], ""),
        ("corpus", size, ""),
    ]
    if study.tables["claims"].rows:
        values.append(("readings", views_claims.tally_words(words, study.tables["claims"].rows), ""))
    return tuple(
        Fact(term=words.say(f"facts.{key}"), value=value, note=note, wide=key in WIDE_FACTS)
        for key, value, note in values
    )


def build(results: Path, figures: Path, provenance: Mapping) -> tuple[Document, Study]:
    """Read the study once and say it; UserError names the first file, key or language that is missing."""
    study = studies.load(Path(results), Path(figures), provenance)
    bare = read_wording(language(provenance), {})
    words = replace(bare, values=findings.shared_values(study, bare))
    make = Builder(study=study, words=words)
    claims = views_claims.claims(study, words)
    commit = " ".join(filter(None, commit_words(study, words, 40)))
    document = Document(
        lang=words.raw("lang"),
        words={key: words.raw(f"page.{key}") for key in PAGE_WORDS}
        | {"kind_of_reading": words.raw("claims.kind"), "all_readings": words.raw("claims.all")},
        title=words.say("page.title"),
        subtitle=words.say("page.subtitle"),
        facts=first_facts(study, words),
        banners=findings.banners(study, words),
        answer=answer_facts.answer(study, words),
        answer_notes=answer_facts.notes(study, words),
        claims_lead=words.spans("answer.claims_lead" if claims else "answer.claims_none"),
        claims=claims,
        glossary=glossary.entries(words),
        sections=all_sections(make),
        appendix=appendix(make, commit),
        downloads=takeaway.downloads(study, words),
        tables_lead=words.spans("page.downloads_lead"),
        whole_lead=words.spans("page.downloads_whole"),
        figure_names=tuple(study.figures),
        figures_lead=words.spans("page.downloads_figures", folder=f"results/{provenance['study']}/figures/"),
        cite=takeaway.cite(study, words),
        references=tuple(
            Reference(label=entry["label"], title=entry["title"], url=f"https://arxiv.org/abs/{entry['arxiv']}")
            for entry in words.raw("references")
        ),
    )
    return document, study
