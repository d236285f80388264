"""The ledger: every method with its measurement and its theory."""

from specledger.reporting import findings, views_claims, views_ledger
from specledger.reporting.builder import Builder
from specledger.reporting.document import Section
from specledger.reporting.ledger import explorable as ledger_explorable


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
        make.fold("ledger", "rows", views_ledger.ledger(study, words), ledger_explorable.ledger(study, words)),
        make.questions("ledger", most_tokens=findings.most_tokens(study, words)),
    )
