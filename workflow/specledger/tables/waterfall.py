from specledger.tables.columns import DRAFTER_AND_GAMMA, ENGINE, TRUTHS, WORDS, Column, Table

TABLE = Table(
    title="from forwards saved to time saved",
    about="""
The fastest and the slowest row of each engine; `overall` marks those of the study (among lossless rows, where there are any).
""",
    columns=(
        ENGINE,
        DRAFTER_AND_GAMMA,
        Column("case", "best or worst; whether of all engines; order of the steps", WORDS),
        Column("overall", "best or worst; whether of all engines; order of the steps", TRUTHS),
        Column("place", "best or worst; whether of all engines; order of the steps"),
        Column(
            "step",
            "forwards_saved (tokens a round, at a plain token's cost), then each part of that cost replaced by what a round spends on it: drafting, catch_up, wider_verify, accept, sync, rest; pairs goes from sums of seconds to the ledger's median of pairs",
            WORDS,
        ),
        Column("ratio_before ratio_after factor", "the factors' product is the measured speed-up, exactly"),
    ),
    may_be_empty=True,
)
