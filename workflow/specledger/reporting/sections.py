"""The topics in their order; those with much to show have modules of their own."""

from specledger.reporting import (
    explorables_ledger,
    explorables_mask,
    explorables_mtp,
    explorables_rule,
    explorables_seeds,
    findings,
    findings_proof,
    findings_rates,
    formats,
    views_acceptance,
    views_checks,
    views_claims,
    views_ledger,
)
from specledger.reporting.builder import Builder
from specledger.reporting.document import Legend, Run, Sample, Section, Text
from specledger.reporting.drawing_rule import Chosen, choose
from specledger.reporting.section_audit import audit
from specledger.reporting.section_gamma import gamma
from specledger.reporting.section_proof import proof
from specledger.reporting.section_systems import systems_and_trees
from specledger.reporting.section_time import time

KINDS = ("accepted", "sampled", "resampled")
SAMPLE_LENGTH = 240


def verify(make: Builder) -> Section:
    study, words = make.study, make.words
    return make.section(
        "verify",
        "1",
        make.text("sections.verify.brief"),
        None,
        make.fold("verify", "how", make.text("sections.verify.lead"), views_claims.readings(study, words, "1")),
        make.trial(explorables_mask.mask(study, words)),
        make.table("verify", views_checks.prefix(study, words)),
        make.table("verify", views_checks.greedy(study, words)),
        make.questions("verify", **findings.check_costs(study, words)),
    )


def accept(make: Builder, chosen: Chosen) -> Section:
    study, words = make.study, make.words
    values = findings.accept_values(chosen, words)
    power = findings_proof.power_values(study)
    return make.section(
        "accept",
        "2",
        make.text("sections.accept.brief"),
        make.picture("acceptance_rule", **values),
        make.fold(
            "accept",
            "how",
            make.text("sections.accept.lead", **values),
            make.formula("accept"),
            make.formula("residual"),
            views_claims.readings(study, words, "2"),
        ),
        make.trial(explorables_rule.rule(study, words, chosen)),
        make.table("accept", views_checks.position(words, chosen)),
        make.fold(
            "accept",
            "simulation",
            make.text("sections.accept.after"),
            views_acceptance.acceptance(study, words),
            *(make.text(f"sections.accept.{key}", **power) for key in findings_proof.power_keys(study)),
        ),
        make.table("accept", views_acceptance.acceptance_rows(study, words)),
        make.questions("accept"),
    )


def sample_of(make: Builder) -> tuple[Text, Sample]:
    """The opening of the self-drafted text, its characters by how they came about."""
    record, words = make.study.sample, make.words
    tokens = record["tokens"][:SAMPLE_LENGTH]
    runs: list[list[str]] = []
    for token in tokens:
        if runs and runs[-1][0] == token["kind"]:
            runs[-1][1] += formats.written(token["text"])
        else:
            runs.append([token["kind"], formats.written(token["text"])])
    counts = {kind: sum(token["kind"] == kind for token in tokens) for kind in KINDS}
    method = {"drafter": "mtp", "gamma": 1, **record}
    values = findings.method_names(words, method) | {kind: str(number) for kind, number in counts.items()}
    lead = make.text("sections.mtp.sample_lead", **(values | {"total": str(len(tokens))}))
    return lead, Sample(
        prompt=formats.written(record["prompt"]),
        runs=tuple(Run(kind=kind, text=text) for kind, text in runs),
        legend=tuple(Legend(kind=kind, label=words.name("kind", kind)) for kind in KINDS),
    )


def mtp(make: Builder) -> Section:
    study, words = make.study, make.words
    difference = findings.difference_values(study, words)
    equivalence = findings_rates.equivalence_values(study, words)
    return make.section(
        "mtp",
        "4",
        make.text("sections.mtp.brief", **difference),
        make.picture("seeds"),
        make.fold(
            "mtp",
            "how",
            make.text("sections.mtp.lead"),
            explorables_mtp.module(study, words),
            views_claims.readings(study, words, "4"),
        ),
        make.fold("mtp", "training", make.picture("learning_curves"), views_ledger.models(study, words)),
        make.fold(
            "mtp",
            "difference",
            make.text("sections.mtp.paired", **difference),
            make.text(f"sections.mtp.equivalence_{findings_rates.equivalence_key(study)}", **equivalence),
            views_ledger.differences(study, words),
            views_ledger.seeds(study, words),
        ),
        make.trial(explorables_seeds.seeds(study, words)),
        make.table("mtp", views_ledger.one_guess(study, words)),
        make.fold("mtp", "sample", *sample_of(make), explorables_mtp.sample(study, words)),
        make.questions("mtp", losses=findings.module_losses(study, words), **difference),
    )


def ledger(make: Builder) -> Section:
    study, words = make.study, make.words
    return make.section(
        "ledger",
        "5",
        make.text("sections.ledger.brief", most_tokens=findings.most_tokens(study, words)),
        make.picture("wall_clock"),
        make.fold(
            "ledger",
            "how",
            make.text("sections.ledger.lead"),
            make.text("sections.ledger.after"),
            views_claims.readings(study, words, "5"),
        ),
        make.fold("ledger", "rows", views_ledger.ledger(study, words), explorables_ledger.ledger(study, words)),
        make.questions("ledger", most_tokens=findings.most_tokens(study, words)),
    )


def all_sections(make: Builder) -> tuple[Section, ...]:
    audited = audit(make)
    return (
        verify(make),
        accept(make, choose(make.study.positions)),
        proof(make),
        gamma(make),
        mtp(make),
        ledger(make),
        *systems_and_trees(make),
        time(make),
        *([audited] if audited else []),
    )
