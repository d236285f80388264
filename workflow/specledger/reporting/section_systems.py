"""The published systems in one harness, and trees: both only where the study has heads or trees."""

from specledger.reporting import findings_systems, views_systems
from specledger.reporting.builder import Builder
from specledger.reporting.document import Section
from specledger.reporting.study import has_trees


def systems(make: Builder) -> Section:
    study, words = make.study, make.words
    values = findings_systems.counts(study)
    return make.section(
        "systems",
        "",
        make.text("sections.systems.brief", **values),
        None,
        make.table("systems", views_systems.systems(study, words)),
        make.fold(
            "systems",
            "typical",
            *(make.text(f"sections.systems.{key}", **found) for key, found in findings_systems.typical(study, words)),
        ),
        make.fold(
            "systems",
            "training",
            make.text("sections.systems.training") if study.tables["heads"].rows else None,
            views_systems.heads(study, words),
        ),
        make.questions("systems", **findings_systems.positions(study, words)),
    )


def trees(make: Builder) -> Section:
    study, words = make.study, make.words
    shown = study.tables["trees"].rows
    found = findings_systems.trees(study, words)
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


def systems_and_trees(make: Builder) -> tuple[Section, ...]:
    tables = make.study.tables
    found = (systems(make),) if tables["heads"].rows or has_trees(tables) else ()
    return (*found, trees(make)) if has_trees(tables) else found
