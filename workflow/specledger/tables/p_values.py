from specledger.tables.columns import Column, Table

TABLE = Table(
    title="how the p-values of contexts.csv spread",
    columns=(
        Column("drafter", "as in contexts.csv"),
        Column(
            "bin_lo bin_hi count expected",
            "the histogram of the p-values (a bin's ends are its own, no interval), and what uniform ones would give",
        ),
    ),
)
