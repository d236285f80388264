from specledger.tables.columns import WORDS, Column, Table

TABLE = Table(
    title="what was trained on top of the target",
    about="""
One row per head and loss, over seeds.
""",
    columns=(
        Column(
            "head trunk",
            "as in `training.heads`; `frozen`: the target's own, untouched; `its own`: trained with the head",
        ),
        Column("head_parameters", "parameters beyond the target"),
        Column("steps", "steps"),
        Column(
            "loss",
            "`ahead2`: the token after the next, and so on (`ahead1`: the next token, where the trunk was trained on)",
            WORDS,
        ),
        Column("n", "seeds"),
        Column("value", "nats a character on the validation text, with a t interval", interval=True),
        Column("train_s", "mean seconds"),
        Column("train_share", "over those of the target's training of the same seed, with a t interval", interval=True),
    ),
    may_be_empty=True,
)
