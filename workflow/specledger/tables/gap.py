from specledger.tables.columns import DRAFTER_AND_GAMMA, ENGINE, Column, Table

TABLE = Table(
    title="from eq. (1) to the measured tokens a round",
    about="""
eq1 + drift + dependence + ending = measured, to the last printed digit. Engine `cached` only, under whose rule
of context the plain texts were decoded.
""",
    columns=(
        ENGINE,
        DRAFTER_AND_GAMMA,
        Column("eq1", "eq. (1) at the pooled alpha"),
        Column("drift", "uniform − eq1: what difficulty that lasts within a round changes"),
        Column(
            "dependence",
            "tokens of the rounds that proposed all γ, minus uniform: rounds start where the last one failed",
        ),
        Column(
            "ending",
            "measured − that: rounds that could not propose all of γ, at the end of a text and, for the MTP module, its first round, which has no hidden state to draft from",
        ),
        Column("measured", "tokens a round"),
        Column(
            "uniform",
            "tokens a round if rounds started at every position of a plainly decoded text alike; interval: cluster t by text",
            interval=True,
        ),
    ),
    may_be_empty=True,
)
