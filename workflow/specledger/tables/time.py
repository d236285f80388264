from specledger.tables.columns import TRUTHS, Column, Table

TABLE = Table(
    title="where the seconds of a text go, mean over texts",
    columns=(
        Column("engine drafter gamma", "as in the ledger"),
        Column("draft catch_up", "s: proposing; what a drafter computes of settled tokens that it has not seen"),
        Column("verify accept", "s: the target's forward and its logits; distributions, acceptance, draws, rollback"),
        Column("sync other", "s: waiting for the device; what lies between the clock's readings"),
        Column("wall_s parts_s off", "s: the whole text; the sum of its parts; parts_s / wall_s − 1"),
        Column("other_share", "other / wall_s; whether off is within 2% and other_share from −2% to 5%"),
        Column("adds_up", "other / wall_s; whether off is within 2% and other_share from −2% to 5%", TRUTHS),
    ),
)
