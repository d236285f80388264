from specledger.tables.columns import Column, Table

TABLE = Table(
    title="acceptance by position in the round",
    about="""
Intervals are Student's t at 95% with whole texts (a seed and a repeat) as clusters: acceptances of one text
go together. They are by text, for these models (the ledger's are over seeds), and apt to be too narrow with fewer than
20 texts.
""",
    columns=(
        Column("engine", "recompute, cached or compiled, as in ledger.csv"),
        Column("drafter gamma", "as in ledger.csv"),
        Column("position", "place in the round, from 1"),
        Column(
            "examined accepted", "rounds that proposed there and had accepted all before; those that accepted there too"
        ),
        Column("rate", "accepted over examined: Pr(A ≥ j given A ≥ j − 1)", interval=True),
        Column(
            "reached reached_rb",
            "Pr(A ≥ j) among the rounds that proposed so many: counted, and as the mean product of min(1, p/q) (Rao–Blackwell); they must agree",
        ),
        Column("texts", "how many have an examined proposal there"),
    ),
)
