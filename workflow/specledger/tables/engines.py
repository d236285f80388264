from specledger.tables.columns import Column, Table

TABLE = Table(
    title="which engines ran",
    columns=(
        Column("engine", "recompute, cached or compiled, as in ledger.csv"),
        Column("available", "whether the engine ran at every seed"),
        Column("why", "why not"),
        Column("compile_s", "seconds of compiling, in none of the other times", interval=True),
        Column("seeds", "seeds that were asked"),
    ),
)
