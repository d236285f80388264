"""Stage `controls`: right and wrong decoders through the same tests, with the models of one seed."""

from specledger.commands import measuring
from specledger.experiments.controls import (
    Stage,
    Texts,
    decoder_rows,
    decoders,
    false_alarm_rows,
    round_rules,
    rule_rows,
)
from specledger.foundation.progress import Progress
from specledger.foundation.records import write_rows

add_arguments = measuring.add_arguments


def run(options, log) -> None:
    settings, corpus, bundle = measuring.begin(options)
    stage = Stage.at(bundle, corpus.prompt.tolist(), options.seed)
    total = len(round_rules(stage.draft_tree()[1])) + len(decoders(bundle.target))
    asked = Texts(gamma=settings["gamma"], tokens=settings["tokens"], texts=settings["texts"])
    with Progress(f"controls seed {options.seed}", total, log, unit="decoder") as progress:
        rows = list(rule_rows(stage, draws=settings["draws"], after_each=progress.advance))
        rows += decoder_rows(stage, asked, after_each=progress.advance)
    write_rows(options.output / "controls.csv", [{"seed": options.seed, **row} for row in rows])
    alarms = false_alarm_rows(stage, repeats=settings["repeats"], draws=settings["repeat_draws"])
    write_rows(options.output / "false_alarms.csv", [{"seed": options.seed, **row} for row in alarms])
    measuring.certify(options, settings, bundle)
    wrong = {row["rule"] for row in rows if row["expected"]}
    missed = wrong - {row["rule"] for row in rows if row["expected"] and row["caught"]}
    log.say(
        f"controls seed {options.seed}: {len(wrong) - len(missed)} of {len(wrong)} faults that should be caught were"
    )
