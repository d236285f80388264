from specledger.tables.columns import ENGINE, Column, Table

TABLE = Table(
    title="which engines ran",
    columns=(
        ENGINE,
        Column("available", "whether the engine ran at every seed"),
        Column("why", "why not"),
        Column("compile_s", "seconds of compiling, in none of the other times", interval=True),
        Column("seeds", "seeds that were asked"),
    ),
)
