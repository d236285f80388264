from specledger.tables.columns import DRAFTER_AND_GAMMA, ENGINE, TRUTHS, WORDS, Column, Table

TABLE = Table(
    title="pairs that should not differ",
    columns=(
        ENGINE,
        Column(
            "pair",
            "`A/A`: two plain runs of one block; `clocks`: a run that reads the clocks over its twin that reads none",
            WORDS,
        ),
        DRAFTER_AND_GAMMA,
        Column(
            "ratio lo hi n_pairs n_seeds method level",
            "median ratio of seconds a token, with the interval of the ledger's speed-ups",
        ),
        Column(
            "inside inside_family",
            "whether 1.00 lies in it; the same at 95% for all pairs of the kind together",
            TRUTHS,
        ),
        Column("cost_percent", "what the clocks add to a text", interval=True),
        Column("spread_percent", "ratio of the upper to the lower quartile of single pairs, in percent"),
    ),
    may_be_empty=True,
)
