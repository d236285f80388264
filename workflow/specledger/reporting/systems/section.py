"""The published systems in one ledger; only where the study has heads or trees."""

from specledger.reporting import views_systems
from specledger.reporting.builder import Builder
from specledger.reporting.document import Section
from specledger.reporting.systems import facts as systems_facts


def systems(make: Builder) -> Section:
    study, words = make.study, make.words
    values = systems_facts.counts(study)
    return make.section(
        "systems",
        "",
        make.text("sections.systems.brief", **values),
        None,
        make.table("systems", views_systems.systems(study, words)),
        make.fold(
            "systems",
            "typical",
            *(make.text(f"sections.systems.{key}", **found) for key, found in systems_facts.typical(study, words)),
        ),
        make.fold(
            "systems",
            "training",
            make.text("sections.systems.training") if study.tables["heads"].rows else None,
            views_systems.heads(study, words),
        ),
        make.questions("systems", **systems_facts.positions(study, words)),
    )
