from specledger.tables.columns import Column, Table

TABLE = Table(
    title="siblings, judged in wide trees before any tree was chosen",
    columns=(
        Column("drafter depth rank", "place in the tree; rank 0 is the first sibling"),
        Column(
            "examined",
            "siblings that were judged, all seeds together: their parent was accepted and those before them were not",
        ),
        Column("acceptance", "mean probability of acceptance, with a t interval over seeds", interval=True),
        Column("seeds", "seeds that judged any"),
    ),
    may_be_empty=True,
)
