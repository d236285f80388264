"""Would a fault show? The evidence that the distribution is kept, and that the tests could have told."""

from specledger.reporting import views_proof
from specledger.reporting.builder import Builder
from specledger.reporting.document import Section, Text
from specledger.reporting.proof import explorable as proof_explorable
from specledger.reporting.proof import facts as proof_facts


def proof(make: Builder) -> Section:
    """Exact, at many positions, through the whole decoder, broken on purpose, and the right rule's false alarms."""
    study, words, summary = make.study, make.words, make.study.summary
    values = proof_facts.proof_values(study, words)
    exact = summary["oracle_max"] is not None and summary["oracle_max"] <= proof_facts.ROUNDING

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
            said(proof_facts.positions_key(study)),
            views_proof.contexts(study, words),
        ),
        make.fold(
            "proof",
            "sequences",
            said("sequences"),
            said(proof_facts.sequences_key(study)),
            views_proof.sequences(study, words),
        ),
        make.fold(
            "proof",
            "controls",
            said("controls"),
            said(*proof_facts.controls_text(study)),
            proof_explorable.battery(study, words),
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
