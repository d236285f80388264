"""Where the time goes: by part, against theory, step by step, and what of it is noise."""

from specledger.reporting import views_time
from specledger.reporting.builder import Builder
from specledger.reporting.document import Block, Fold, Section, Text
from specledger.reporting.extras import extra
from specledger.reporting.ledger import explorable as ledger_explorable
from specledger.reporting.time import facts as time_facts


def _said(make: Builder, key: str, values: dict[str, str]) -> Text:
    return make.text(f"sections.time.{key}", **values)


def _by_part(make: Builder) -> Fold | None:
    key, values = time_facts.adds_up(make.study, make.words)
    return make.fold(
        "time",
        "parts",
        make.text("sections.time.lead"),
        make.picture("time_parts"),
        _said(make, key, values),
        views_time.parts(make.study, make.words),
    )


def _against_theory(make: Builder) -> Fold | None:
    study, words = make.study, make.words
    key, values = time_facts.theory(study, words)
    lead = make.text("sections.time.theory")
    if not values:
        return make.fold("time", "theory", lead, _said(make, key, values))
    said = _said(make, key, values | {"by_engine": time_facts.by_engine(study, words)})
    return make.fold("time", "theory", lead, make.picture("theory"), said, views_time.theory(study, words))


def _waterfall(make: Builder) -> Fold | None:
    values = time_facts.waterfall(make.study, make.words)
    if values is None:
        return None
    return make.fold(
        "time",
        "waterfall",
        _said(make, "waterfall", values),
        ledger_explorable.waterfall(make.study, make.words),
        views_time.waterfall(make.study, make.words),
    )


def _best_gamma(make: Builder) -> Fold | None:
    key, values = time_facts.best_gamma(make.study)
    shown = views_time.best_gamma(make.study, make.words) if values else None
    return make.fold("time", "best_gamma", _said(make, key, values), shown)


def _noise(make: Builder) -> Fold | None:
    keys, values = time_facts.noise(make.study, make.words)
    said = make.joined(*(f"sections.time.{key}" for key in ("noise", *keys)), **values)
    return make.fold("time", "noise", said, views_time.noise(make.study, make.words))


def _engines(make: Builder) -> Fold | None:
    keys, values = time_facts.engines(make.study, make.words)
    said = make.joined(*(f"sections.time.{key}" for key in ("engines", *keys)), **values)
    shown = (views_time.engines(make.study, make.words), views_time.agreement(make.study, make.words))
    return make.fold("time", "engines", said, *shown)


def _others(make: Builder) -> Fold | None:
    """Other programs on our weights, and a plain training loop beside ours, where they were run."""
    found: list[Block] = []
    peers, speed = (extra(make.study.results, name) for name in ("peers", "training_speed"))
    if peers is not None:
        found += [make.text("sections.time.peers"), make.picture("peers"), views_time.peers(peers, make.words)]
    if speed is not None:
        found += [make.text("sections.time.training"), views_time.training_speed(speed, make.words)]
    return make.fold("time", "others", *found)


def _brief(make: Builder) -> Text:
    study, words = make.study, make.words
    keys, values = ["brief"], time_facts.adds_up(study, words)[1]
    fit, fall = time_facts.theory(study, words)[1], time_facts.waterfall(study, words)
    for key, found in (("brief_theory", fit), ("brief_waterfall", fall)):
        keys += [key] if found else []
        values |= found or {}
    return make.joined(*(f"sections.time.{key}" for key in keys), **values)


def time(make: Builder) -> Section:
    shown = time_facts.waterfall(make.study, make.words) is not None
    return make.section(
        "time",
        "",
        _brief(make),
        make.picture("waterfall") if shown else None,
        _waterfall(make),
        _by_part(make),
        _against_theory(make),
        _best_gamma(make),
        _noise(make),
        _engines(make),
        _others(make),
        make.questions("time"),
    )
