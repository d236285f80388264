"""The acceptance rule: its figure, its formulas and its simulation."""

from specledger.reporting import findings, views_acceptance, views_checks, views_claims
from specledger.reporting.builder import Builder
from specledger.reporting.document import Section
from specledger.reporting.proof import facts as proof_facts
from specledger.reporting.rule import explorable as rule_explorable
from specledger.reporting.rule.figure import Chosen


def accept(make: Builder, chosen: Chosen) -> Section:
    study, words = make.study, make.words
    values = findings.accept_values(chosen, words)
    power = proof_facts.power_values(study)
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
        make.trial(rule_explorable.rule(study, words, chosen)),
        make.table("accept", views_checks.position(words, chosen)),
        make.fold(
            "accept",
            "simulation",
            make.text("sections.accept.after"),
            views_acceptance.acceptance(study, words),
            *(make.text(f"sections.accept.{key}", **power) for key in proof_facts.power_keys(study)),
        ),
        make.table("accept", views_acceptance.acceptance_rows(study, words)),
        make.questions("accept"),
    )
