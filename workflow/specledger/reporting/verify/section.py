"""Verification in one forward pass: the prefix check and greedy identity."""

from specledger.reporting import findings, views_checks, views_claims
from specledger.reporting.builder import Builder
from specledger.reporting.document import Section
from specledger.reporting.verify import explorable as verify_explorable


def verify(make: Builder) -> Section:
    study, words = make.study, make.words
    return make.section(
        "verify",
        "1",
        make.text("sections.verify.brief"),
        None,
        make.fold("verify", "how", make.text("sections.verify.lead"), views_claims.readings(study, words, "1")),
        make.trial(verify_explorable.mask(study, words)),
        make.table("verify", views_checks.prefix(study, words)),
        make.table("verify", views_checks.greedy(study, words)),
        make.questions("verify", **findings.check_costs(study, words)),
    )
