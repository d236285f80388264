from specledger.tables.columns import ENGINE, WORDS, Column, Table

TABLE = Table(
    title="the best tree against the best chain",
    about="""
One row per engine and drafter with trees; both are chosen by the speed-up that is then shown.
""",
    columns=(
        ENGINE,
        Column("drafter", "as in ledger.csv"),
        Column("chain_gamma chain_tokens chain_speedup", "of the fastest chain: its γ, tokens a round, speed-up"),
        Column(
            "nodes depth expected_tokens",
            "of the fastest lossless tree: its size, its deepest level over seeds, and the tokens a round for which it was chosen",
        ),
        Column("tree_tokens", "as measured"),
        Column("tree_speedup", "as measured", interval=True),
        Column(
            "ratio",
            "the tree's speed over the chain's: median of blocks of the same run, and how its interval came about",
            interval=True,
        ),
        Column(
            "method",
            "the tree's speed over the chain's: median of blocks of the same run, and how its interval came about",
        ),
        Column("nodes_predicted", "the size that the full-cost model prefers"),
        Column("v_chain v_tree", "v of either: a forward over so many positions, in forwards of one"),
        Column(
            "most_ratio",
            "the most that any measured size could win over the chain at the measured v(N), with the cheaper of both draftings and of both judgings in its rounds; geometric mean over seeds, 95% t interval",
            interval=True,
        ),
        Column(
            "verdict",
            "reached (the whole interval at 1.15 or more), ruled out by v(N) (the whole interval of most_ratio below 1.15), not reached (the whole interval below), else inconclusive",
            WORDS,
        ),
    ),
    may_be_empty=True,
)
