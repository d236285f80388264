from specledger.tables.columns import BY_TEXT, DRAFTER_AND_GAMMA, ENGINE, Column, Table

TABLE = Table(
    title="acceptance within a round",
    about=BY_TEXT,
    columns=(
        ENGINE,
        DRAFTER_AND_GAMMA,
        Column("alpha", "accepted over examined of all rounds", interval=True),
        Column("texts", "how many have an examined proposal there"),
        Column("tokens_per_round tokens_per_round_rb", "counted, and 1 + the mean sum of those products"),
        Column("homogeneity_p", "χ² that the rate is the same at each position of a round; empty at γ = 1"),
        Column("geometric_p", "χ² that accept_len is truncated geometric, of rounds that proposed all γ"),
        Column("lag1 lag1_p", "autocorrelation of accept_len from round to round within texts, and its p-value"),
    ),
    after="""
A small p-value here is no fault: it says that eq. (1)'s independent and equal acceptances are an approximation.
""",
)
