"""The topics of the report in their order; each has a folder of its name."""

from specledger.reporting.audit.section import audit
from specledger.reporting.builder import Builder
from specledger.reporting.document import Section
from specledger.reporting.gamma.section import gamma
from specledger.reporting.ledger.section import ledger
from specledger.reporting.mtp.section import mtp
from specledger.reporting.proof.section import proof
from specledger.reporting.rule.figure import choose
from specledger.reporting.rule.section import accept
from specledger.reporting.study import has_trees
from specledger.reporting.systems.section import systems
from specledger.reporting.time.section import time
from specledger.reporting.trees.section import trees
from specledger.reporting.verify.section import verify


def all_sections(make: Builder) -> tuple[Section, ...]:
    tables, audited = make.study.tables, audit(make)
    grown = has_trees(tables)
    return (
        verify(make),
        accept(make, choose(make.study.positions)),
        proof(make),
        gamma(make),
        mtp(make),
        ledger(make),
        *([systems(make)] if tables["heads"].rows or grown else []),
        *([trees(make)] if grown else []),
        time(make),
        *([audited] if audited else []),
    )
