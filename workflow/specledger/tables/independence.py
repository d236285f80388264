from specledger.tables.columns import Column, Table

TABLE = Table(
    title="acceptance within a round",
    about="""
Intervals are Student's t at 95% with whole texts (a seed and a repeat) as clusters: acceptances of one text
go together. They are by text, for these models (the ledger's are over seeds), and apt to be too narrow with fewer than
20 texts.
""",
    columns=(
        Column("engine", "recompute, cached or compiled, as in ledger.csv"),
        Column("drafter gamma", "as in ledger.csv"),
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
