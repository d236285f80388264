from specledger.tables.columns import Column, Table

TABLE = Table(
    title="whole texts of complete decoders against the target's exact law",
    columns=(
        Column(
            "engine context_rule drafter gamma temperature top_k top_p min_p",
            "the decoder and its distributions; empty: no cut",
        ),
        Column(
            "test",
            "`2-gram`, `3-gram`: the first tokens against their joint law, pooled χ² (of more than 170 symbols the 64 likeliest after the prompt are told apart, and the others are one; texts past a prefix at which a rounding decides what a cut keeps are left out); a test that could not be made has no row; `acceptance`: z of the accepted against Σ min(p, q) at the examined prefixes; `accounting`: identities of the counters that were violated",
        ),
        Column("texts tokens seeds", "texts of all seeds; tokens of each"),
        Column(
            "statistic df p_value",
            "over seeds: sums of χ² and df, z's added and divided by √ of their number (a seed where acceptance is certain has none), or violations (p is then 1 or 0)",
        ),
        Column("least_p", "the smallest p-value of a seed"),
        Column("holm_p", "p_value after Holm over the whole table"),
    ),
)
