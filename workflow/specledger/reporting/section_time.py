"""Where the time goes: by part, against theory, step by step, and what of it is noise."""

from specledger.reporting import explorables_ledger, findings_time, views_time
from specledger.reporting.builder import Builder
from specledger.reporting.document import Block, Section, Text
from specledger.reporting.extras import extra


def _said(make: Builder, key: str, values: dict[str, str]) -> Text:
    return make.text(f"sections.time.{key}", **values)


def _by_part(make: Builder) -> tuple[Block, ...]:
    key, values = findings_time.adds_up(make.study, make.words)
    return (
        make.text("sections.time.lead"),
        make.picture("time_parts"),
        _said(make, key, values),
        views_time.parts(make.study, make.words),
    )


def _against_theory(make: Builder) -> tuple[Block, ...]:
    study, words = make.study, make.words
    key, values = findings_time.theory(study, words)
    if not values:
        return (make.text("sections.time.theory"), _said(make, key, values))
    return (
        make.text("sections.time.theory"),
        make.picture("theory"),
        _said(make, key, values | {"by_engine": findings_time.by_engine(study, words)}),
        views_time.theory(study, words),
    )


def _waterfall(make: Builder) -> tuple[Block | None, ...]:
    values = findings_time.waterfall(make.study, make.words)
    if values is None:
        return ()
    return (
        _said(make, "waterfall", values),
        make.picture("waterfall"),
        explorables_ledger.waterfall(make.study, make.words),
        views_time.waterfall(make.study, make.words),
    )


def _best_gamma(make: Builder) -> tuple[Block, ...]:
    key, values = findings_time.best_gamma(make.study)
    found = (_said(make, key, values),)
    return (*found, views_time.best_gamma(make.study, make.words)) if values else found


def _noise(make: Builder) -> tuple[Block, ...]:
    keys, values = findings_time.noise(make.study, make.words)
    keys = [f"sections.time.{key}" for key in ("noise", *keys)]
    return (make.joined(*keys, **values), views_time.noise(make.study, make.words))


def _engines(make: Builder) -> tuple[Block | None, ...]:
    keys, values = findings_time.engines(make.study, make.words)
    said = make.joined(*(f"sections.time.{key}" for key in ("engines", *keys)), **values)
    return (said, views_time.engines(make.study, make.words), views_time.agreement(make.study, make.words))


def _others(make: Builder) -> tuple[Block, ...]:
    """Other programs on our weights, and a plain training loop beside ours, where they were run."""
    found: list[Block] = []
    peers, speed = (extra(make.study.results, name) for name in ("peers", "training_speed"))
    if peers is not None:
        found += [make.text("sections.time.peers"), make.picture("peers"), views_time.peers(peers, make.words)]
    if speed is not None:
        found += [make.text("sections.time.training"), views_time.training_speed(speed, make.words)]
    return tuple(found)


def time(make: Builder) -> Section:
    return make.section(
        "time",
        "",
        *_by_part(make),
        *_against_theory(make),
        *_waterfall(make),
        *_best_gamma(make),
        *_noise(make),
        *_engines(make),
        *_others(make),
        make.questions("time"),
    )
