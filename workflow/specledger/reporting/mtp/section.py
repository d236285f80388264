"""Multi-token prediction: the module, its training, the paired difference, and a drafted text."""

from specledger.reporting import findings, formats, views_claims, views_ledger
from specledger.reporting.builder import Builder
from specledger.reporting.document import Legend, Run, Sample, Section, Text
from specledger.reporting.gamma import facts as gamma_facts
from specledger.reporting.mtp import explorable as mtp_explorable
from specledger.reporting.mtp import seeds as mtp_seeds

KINDS = ("accepted", "sampled", "resampled")
SAMPLE_LENGTH = 240


def sample_of(make: Builder) -> tuple[Text, Sample]:
    """The opening of the self-drafted text, its characters by how they came about."""
    record, words = make.study.sample, make.words
    tokens = record["tokens"][:SAMPLE_LENGTH]
    runs: list[list[str]] = []
    for token in tokens:
        if runs and runs[-1][0] == token["kind"]:
            runs[-1][1] += formats.written(token["text"])
        else:
            runs.append([token["kind"], formats.written(token["text"])])
    counts = {kind: sum(token["kind"] == kind for token in tokens) for kind in KINDS}
    method = {"drafter": "mtp", "gamma": 1, **record}
    values = findings.method_names(words, method) | {kind: str(number) for kind, number in counts.items()}
    lead = make.text("sections.mtp.sample_lead", **(values | {"total": str(len(tokens))}))
    return lead, Sample(
        prompt=formats.written(record["prompt"]),
        runs=tuple(Run(kind=kind, text=text) for kind, text in runs),
        legend=tuple(Legend(kind=kind, label=words.name("kind", kind)) for kind in KINDS),
    )


def mtp(make: Builder) -> Section:
    study, words = make.study, make.words
    difference = findings.difference_values(study, words)
    equivalence = gamma_facts.equivalence_values(study, words)
    return make.section(
        "mtp",
        "4",
        make.text("sections.mtp.brief", **difference),
        make.picture("seeds"),
        make.fold(
            "mtp",
            "how",
            make.text("sections.mtp.lead"),
            mtp_explorable.module(study, words),
            views_claims.readings(study, words, "4"),
        ),
        make.fold("mtp", "training", make.picture("learning_curves"), views_ledger.models(study, words)),
        make.fold(
            "mtp",
            "difference",
            make.text("sections.mtp.paired", **difference),
            make.text(f"sections.mtp.equivalence_{gamma_facts.equivalence_key(study)}", **equivalence),
            views_ledger.differences(study, words),
            views_ledger.seeds(study, words),
        ),
        make.trial(mtp_seeds.seeds(study, words)),
        make.table("mtp", views_ledger.one_guess(study, words)),
        make.fold("mtp", "sample", *sample_of(make), mtp_explorable.sample(study, words)),
        make.questions("mtp", losses=findings.module_losses(study, words), **difference),
    )
