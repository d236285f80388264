from specledger.tables.columns import TRUTHS, Column, Table

TABLE = Table(
    title="how often the tests reject the right rule",
    columns=(
        Column("test", "which test"),
        Column("repeats", "how often it was made of the right rule"),
        Column("n", "draws or texts"),
        Column("level", "of the test"),
        Column("rejected", "how often it rejects at that level"),
        Column("rate", "rejected over repeats"),
        Column("lo hi", "the Clopper-Pearson 99.9% interval of rate"),
        Column("inside", "whether the level lies inside", TRUTHS),
    ),
)
