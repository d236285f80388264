from specledger.tables.columns import Column, Table

TABLE = Table(
    title="greedy texts that must be the same",
    columns=(
        Column("seed engine context_rule drafter gamma", "what was checked"),
        Column("prompt_tokens generated_tokens", "of the greedy text"),
        Column(
            "identical first_divergence top2_margin",
            "whether the texts are the same; where they part, and how far the two best logits lie apart there",
        ),
    ),
)
