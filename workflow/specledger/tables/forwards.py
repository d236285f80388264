from specledger.tables.columns import Column, Table

TABLE = Table(
    title="single forwards, proposals and rounds at a full context",
    columns=(
        Column(
            "engine part model",
            "`forward` of the target over so many new positions, `propose` of a drafter, a whole `round`",
        ),
        Column("drafter gamma positions", "who proposed how many; new positions of the forward"),
        Column("seconds", "median of a seed, mean over seeds", interval=True),
        Column("c", "over the target's forward of one position, same engine; of a proposal for each of its tokens"),
    ),
)
