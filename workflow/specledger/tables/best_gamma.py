from specledger.tables.columns import ENGINE, TRUTHS, WORDS, Column, Table

TABLE = Table(
    title="predicted and found",
    columns=(
        ENGINE,
        Column("drafter", "as in ledger.csv"),
        Column("gammas", "the γ that were measured; drafters with one are left out", WORDS),
        Column("gamma_predicted speedup_predicted", "where cost_model is largest"),
        Column("gamma_found speedup_found", "where the measured speed-up is; whether they are the same"),
        Column("agrees", "where the measured speed-up is; whether they are the same", TRUTHS),
        Column("loss_if_predicted", "what the predicted γ gives away, as a share of speedup_found"),
        Column(
            "one_less loss_if_one_less one_more loss_if_one_more",
            "the next γ among the measured, and what it gives away",
        ),
    ),
    may_be_empty=True,
)
