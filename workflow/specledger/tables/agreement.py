from specledger.tables.columns import DRAFTER_AND_GAMMA, ENGINE, Column, Table

TABLE = Table(
    title="texts of one engine against those of another",
    columns=(
        ENGINE,
        Column("reference", "the first engine of the same context rule"),
        DRAFTER_AND_GAMMA,
        Column("texts", "texts for the same random numbers"),
        Column("identical", "those of them that are the same on both"),
        Column(
            "first_divergence margin",
            "of those that are not: the earliest place, and the largest margin there, how far the random number lay from the nearest cut between two choices, in probability; empty where none is known",
        ),
        Column("margins_unknown", "of those that are not: how many margins are unknown"),
        Column("tokens", "tokens of a text"),
        Column("seeds", "how many"),
    ),
    may_be_empty=True,
)
