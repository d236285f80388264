from specledger.tables.columns import WORDS, Column, Table

TABLE = Table(
    title="does MTP training change the target's loss?",
    columns=(
        Column("what", "validation loss with MTP minus without, nats a character, paired by seed", WORDS),
        Column("mean", "the mean of the differences"),
        Column("lo hi", "its paired t interval"),
        Column("n level method sd", "the mean with its paired t interval; pairs; sd of the differences"),
        Column("margin", "what would not matter, from the config"),
        Column(
            "tost_p tost_lo tost_hi",
            "equivalence by two one-sided t-tests: significant at .05 just where the 90% interval lies within ± margin",
        ),
        Column(
            "verdict",
            "`equivalent` where it does, even if the 95% interval leaves out 0; else `different` where that leaves out 0; else `undecided`",
            WORDS,
        ),
        Column(
            "detectable detectable_sd power",
            "smallest difference that this many pairs see at .05 with that power: in nats, and in sd",
        ),
    ),
)
