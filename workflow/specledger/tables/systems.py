from specledger.tables.columns import TRUTHS, WORDS, Column, Table

TABLE = Table(
    title="published systems, and ours beside them",
    about="""
One row per system and drafter of ours, chains and trees apart, each in its fastest setting on the engine `cached`.
""",
    columns=(
        Column("system title", "as in config/claims.yaml", WORDS),
        Column("source", "as in config/claims.yaml"),
        Column("published setting comparable", "as in config/claims.yaml", WORDS),
        Column("engine", "cached"),
        Column("drafter", "as in ledger.csv"),
        Column("shape", "chain or tree; proposals of a chain, nodes of a tree", WORDS),
        Column("gamma", "chain or tree; proposals of a chain, nodes of a tree"),
        Column("lossless", "as in ledger.csv", TRUTHS),
        Column(
            "parameters train_share",
            "beyond the target; seconds of training over those of the target (of the MTP module: what training with it took longer)",
        ),
        Column(
            "alpha_by_position",
            "of the rounds that accepted all before, the share that accepted at 1, 2, …, all texts together",
            WORDS,
        ),
        Column("tokens_per_round speedup", "as in ledger.csv", interval=True),
        Column("speedup_method", "as in ledger.csv"),
        Column("tv", "0 where the row is lossless, else as in typical.csv", interval=True),
        Column("seeds", "as in ledger.csv"),
    ),
    may_be_empty=True,
)
