from specledger.tables.columns import Column, Table

TABLE = Table(
    title="logits that must not depend on later tokens",
    columns=(
        Column("seed model engine", "what was checked"),
        Column("precision", "float32 as everywhere, float64 to tell rounding from a broken mask"),
        Column("fed_short fed_long rows", "tokens fed, and the rows of logits that are compared"),
        Column("max_abs_difference", "largest difference of a logit"),
    ),
)
