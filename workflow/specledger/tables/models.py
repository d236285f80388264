from specledger.tables.columns import Column, Table

TABLE = Table(
    title="what training gave, over seeds",
    columns=(
        Column("model", "plain, mtp, draft, and ngram"),
        Column("parameters head_parameters", "of the model, and of the head beside it"),
        Column("steps batch learning_rate", "settings, and the step whose weights were kept"),
        Column("n", "seeds"),
        Column(
            "validation_loss validation_mtp_loss",
            "nats a character over the whole validation text; the second is the MTP module's",
            interval=True,
        ),
    ),
)
