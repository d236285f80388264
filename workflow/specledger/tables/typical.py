from specledger.tables.columns import Column, Table

TABLE = Table(
    title="what the lossy acceptance costs",
    columns=(
        Column("drafter gamma contexts seeds", "drafter and number of nodes; contexts a seed"),
        Column("accepted_share", "share of contexts at which a proposal was accepted"),
        Column(
            "tv",
            "mean total variation of the next token's law from the target's, with a t interval over seeds",
            interval=True,
        ),
    ),
    may_be_empty=True,
)
