"""How many to guess: the formulas, what a round yields, why eq. (1) misses it, and the clock."""

from specledger.reporting import explorables_speedup, findings, findings_rates, views_claims, views_ledger, views_rates
from specledger.reporting.builder import Builder
from specledger.reporting.document import Block, Section


def _formulas(make: Builder) -> tuple[Block, ...]:
    return (
        make.text("sections.gamma.lead"),
        make.formula("eq1"),
        make.text("sections.gamma.theorem"),
        make.formula("theorem38"),
        make.text("sections.gamma.cost"),
        make.formula("cost_model"),
        explorables_speedup.speedup(make.study, make.words),
    )


def _by_position(make: Builder) -> tuple[Block, ...]:
    """Is α one number? By position, clustered by text, and counted in two ways."""
    study, words = make.study, make.words
    values = findings_rates.rates_values(study, words)
    engine = words.name("engine", findings_rates.shown_engine(study.tables["rates"]))
    clusters = {"engine": engine, **views_rates.clusters(study, words)}
    return (
        make.text("sections.gamma.rates"),
        make.picture("acceptance_by_position", **clusters),
        make.text(f"sections.gamma.{findings_rates.rates_key(study)}", **values, **clusters),
        make.text("sections.gamma.rao_blackwell", **values),
        views_rates.independence(study, words),
        views_rates.rates(study, words),
    )


def _gap(make: Builder) -> tuple[Block | None, ...]:
    """From eq. (1) to the measured yield; nothing where no engine's texts allow the split."""
    widest = findings_rates.widest_gap(make.study, make.words)
    if widest is None:
        return (make.text("sections.gamma.gap_unknown"),)
    return (
        make.text("sections.gamma.gap"),
        make.picture("gap"),
        make.text("sections.gamma.gap_widest", **widest),
        views_rates.gap(make.study, make.words),
    )


def gamma(make: Builder) -> Section:
    study, words = make.study, make.words
    values = findings.cheap_values(study, words) | {"measured": findings.more_is_less(study, words)}
    return make.section(
        "gamma",
        "3",
        *_formulas(make),
        make.text("sections.gamma.after"),
        make.picture("tokens_per_round"),
        views_ledger.tokens(study, words),
        *_by_position(make),
        *_gap(make),
        make.text("sections.gamma.clock"),
        views_ledger.forwards(study, words),
        views_claims.readings(study, words, "3"),
        make.questions("gamma", **values),
    )
