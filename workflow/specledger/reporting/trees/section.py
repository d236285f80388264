"""Trees beside chains; only where the study has trees."""

from specledger.reporting import views_systems
from specledger.reporting.builder import Builder
from specledger.reporting.document import Section
from specledger.reporting.systems import facts as systems_facts


def trees(make: Builder) -> Section:
    study, words = make.study, make.words
    shown = study.tables["trees"].rows
    found = systems_facts.trees(study, words)
    keys = ["brief", *(["brief_found"] if shown else [])]
    return make.section(
        "trees",
        "",
        make.joined(*(f"sections.trees.{key}" for key in keys), **found),
        make.picture("trees_speed"),
        make.fold("trees", "yields", make.text("sections.trees.lead"), make.picture("trees")),
        make.fold(
            "trees",
            "best",
            make.text("sections.trees.bound"),
            make.text("sections.trees.found", **found) if shown else None,
            views_systems.trees(study, words) if shown else None,
        ),
        make.fold(
            "trees",
            "ranks",
            make.text("sections.trees.ranks"),
            make.picture("ranks"),
            views_systems.ranks(study, words) if study.tables["ranks"].rows else None,
        ),
        make.questions("trees"),
    )
