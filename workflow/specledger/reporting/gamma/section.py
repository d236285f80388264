"""Draft tokens per round: the formulas, the tokens per round, and their difference from eq. (1)."""

from specledger.reporting import findings, views_claims, views_ledger, views_rates
from specledger.reporting.builder import Builder
from specledger.reporting.document import Fold, Section
from specledger.reporting.gamma import explorable as gamma_explorable
from specledger.reporting.gamma import facts as gamma_facts


def _formulas(make: Builder) -> Fold | None:
    return make.fold(
        "gamma",
        "formulas",
        make.text("sections.gamma.lead"),
        make.formula("eq1"),
        make.text("sections.gamma.theorem"),
        make.formula("theorem38"),
        make.text("sections.gamma.cost"),
        make.formula("cost_model"),
        make.text("sections.gamma.after"),
        views_claims.readings(make.study, make.words, "3"),
    )


def _by_position(make: Builder) -> Fold | None:
    """Is α one number? By position, clustered by text, and counted in two ways."""
    study, words = make.study, make.words
    values = gamma_facts.rates_values(study, words)
    engine = words.name("engine", gamma_facts.shown_engine(study.tables["rates"]))
    clusters = {"engine": engine, **views_rates.clusters(study, words)}
    return make.fold(
        "gamma",
        "positions",
        make.text("sections.gamma.rates"),
        make.picture("acceptance_by_position", **clusters),
        make.text(f"sections.gamma.{gamma_facts.rates_key(study)}", **values, **clusters),
        make.text("sections.gamma.rao_blackwell", **values),
        views_rates.independence(study, words),
        views_rates.rates(study, words),
    )


def _gap(make: Builder) -> Fold | None:
    """From eq. (1) to the measured yield; one sentence where no engine's texts allow the split."""
    widest = gamma_facts.widest_gap(make.study, make.words)
    if widest is None:
        return make.fold("gamma", "gap", make.text("sections.gamma.gap_unknown"))
    return make.fold(
        "gamma",
        "gap",
        make.text("sections.gamma.gap"),
        make.picture("gap"),
        make.text("sections.gamma.gap_widest", **widest),
        views_rates.gap(make.study, make.words),
    )


def gamma(make: Builder) -> Section:
    study, words = make.study, make.words
    values = findings.cheap_values(study, words) | {"measured": findings.more_is_less(study, words)}
    widest = gamma_facts.widest_gap(study, words)
    keys = ["brief", *(["brief_gap"] if widest else []), f"brief_{gamma_facts.rates_key(study)}"]
    return make.section(
        "gamma",
        "3",
        make.joined(*(f"sections.gamma.{key}" for key in keys), **(widest or {})),
        make.picture("tokens_per_round"),
        _formulas(make),
        make.trial(gamma_explorable.speedup(study, words)),
        make.table("gamma", views_ledger.tokens(study, words)),
        _by_position(make),
        _gap(make),
        make.fold("gamma", "forwards", make.text("sections.gamma.clock"), views_ledger.forwards(study, words)),
        make.questions("gamma", **values),
    )
