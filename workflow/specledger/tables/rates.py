from specledger.tables.columns import BY_TEXT, DRAFTER_AND_GAMMA, ENGINE, Column, Table

TABLE = Table(
    title="acceptance by position in the round",
    about=BY_TEXT,
    columns=(
        ENGINE,
        DRAFTER_AND_GAMMA,
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
