from specledger.tables.columns import WORDS, Column, Table

TABLE = Table(
    title="broken rules must be caught, the right one let through",
    about="""
One row per rule, the right one (`correct`) first, as a single round and as a decoder, each once of
chains and once of trees (`draft_tree`; γ is then the number of nodes). Wrong accounts
are records of a right decoder, edited after it ran; `row-not-a-number` stands in for a row that is not a number;
`target-bfloat16` takes p from bfloat16 logits (the public report is of greedy decoding).
""",
    columns=(
        Column("rule source", "what is wrong with it; the public fault or the recipe it follows"),
        Column("kind", "`rule`: rounds at one position; `decoder`: texts through the complete decoder"),
        Column("drafter", "draft, or draft_tree for trees"),
        Column("gamma", "draft tokens of a round; of a tree its nodes"),
        Column("temperature", "of target and drafter"),
        Column("n", "draws or texts"),
        Column("caught_by", "all tests that rejected it at .001", WORDS),
        Column("p_value", "the smallest of its tests"),
        Column(
            "power",
            "the largest of its tests at this n and level; of a decoder from four further samples, so 0, .25, .5, .75 or 1",
        ),
        Column(
            "expected_caught",
            "whether a test should see it: a power of at least .95 by the exact law of a rule; for a decoder, a test named beforehand with p < 10⁻⁶ in all four samples. false: too small for this n, or no test's business",
        ),
        Column(
            "caught",
            "whether a test that should see it did, or any test where none should; of the right rule, whether one is below .001 after Holm over all tests of all its rows",
        ),
        Column("tests", "how many were run"),
    ),
)
