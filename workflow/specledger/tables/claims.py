from specledger.tables.columns import WORDS, Column, Table

TABLE = Table(
    title="published readings",
    columns=(
        Column("claim", "the reading and where it stands", WORDS),
        Column(
            "group",
            "identity (counts and formulas), correctness, measurement, or quoted (other systems' figures)",
            WORDS,
        ),
        Column("title section", "the reading and where it stands", WORDS),
        Column("source", "the reading and where it stands"),
        Column("published unit", "the reading and where it stands", WORDS),
        Column("rule", "fixed beforehand in config/claims.yaml"),
        Column("measured lo hi interval", "ours; what kind of interval it is, its level and n"),
        Column("verdict", "reproduced, not reproduced, inconclusive or not comparable, in a sentence", WORDS),
        Column(
            "reason note",
            "what decided, as a key of the report's texts (`claims.reasons`); what the claims file adds",
            WORDS,
        ),
        Column("why", "reproduced, not reproduced, inconclusive or not comparable, in a sentence"),
    ),
    after="""
`summary.json` holds what the first screen says: best row (of those that are lossless, where
there are any) and slowest row, paired difference of the losses and its equivalence test, c,
counts of checks and of broken rules. The raw observations lie beside the tables:
""",
    may_be_empty=True,
)
