"""Would a fault show? The evidence that the distribution is kept, and that the tests could have told."""

from specledger.reporting import explorables_proof, findings_proof, views_proof
from specledger.reporting.builder import Builder
from specledger.reporting.document import Section, Text


def proof(make: Builder) -> Section:
    """Exact, at many positions, through the whole decoder, broken on purpose, and the right rule's false alarms."""
    study, words, summary = make.study, make.words, make.study.summary
    values = findings_proof.proof_values(study, words)
    exact = summary["oracle_max"] is not None and summary["oracle_max"] <= findings_proof.ROUNDING

    def said(*keys: str) -> Text:
        return make.joined(*(f"sections.proof.{key}" for key in keys), **values)

    return make.section(
        "proof",
        "",
        said("brief"),
        make.picture("p_values", panel=values["panel"]),
        make.fold(
            "proof",
            "exact",
            said("lead"),
            said("oracle", "oracle_exact" if exact else "oracle_off"),
            views_proof.oracle(study, words),
        ),
        make.fold(
            "proof",
            "positions",
            said("positions"),
            said(findings_proof.positions_key(study)),
            views_proof.contexts(study, words),
        ),
        make.fold(
            "proof",
            "sequences",
            said("sequences"),
            said(findings_proof.sequences_key(study)),
            views_proof.sequences(study, words),
        ),
        make.fold(
            "proof",
            "controls",
            said("controls"),
            said(*findings_proof.controls_text(study)),
            explorables_proof.battery(study, words),
            views_proof.controls(study, words),
        ),
        make.fold(
            "proof",
            "alarms",
            said("alarms", "alarms_inside" if summary["false_alarms_inside"] else "alarms_outside"),
            views_proof.false_alarms(study, words),
        ),
        make.questions("proof"),
    )
