from specledger.tables.columns import Column, Table

TABLE = Table(
    title="what training gave, seed by seed",
    columns=(
        Column("seed model", "plain, mtp or draft"),
        Column("parameters head_parameters", "of the model, and of the head beside it"),
        Column("steps chosen_step", "settings, and the step whose weights were kept"),
        Column(
            "validation_loss validation_mtp_loss",
            "nats a character over the whole validation text; the second is the MTP module's",
        ),
        Column(
            "tokens_per_s train_s",
            "training tokens a second; seconds, after an interruption those of the steps that were kept",
        ),
    ),
)
