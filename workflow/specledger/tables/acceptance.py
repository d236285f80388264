from specledger.tables.columns import Column, Table

TABLE = Table(
    title="the acceptance rule drawn many times at one position",
    columns=(
        Column("seed drafter position context temperature", "position in the validation text, and the text before it"),
        Column("draws", "draws of the rule"),
        Column("accepted", "accepted ones"),
        Column("acceptance", "their ratio, with Wilson's 95% interval (these draws are independent)", interval=True),
        Column("beta", "Σ min(p, q): what acceptance must be"),
        Column("tv_output", "total variation distance from p of the drawn frequencies, and of q"),
        Column(
            "tv_expected tv_q999", "mean and 99.9% quantile of tv_output if the draws follow p exactly (Monte Carlo)"
        ),
        Column("tv_p_value", "of tv_output and of the unpooled χ², by Monte Carlo: at least 1 / (resamples + 1)"),
        Column("tv_draft", "total variation distance from p of the drawn frequencies, and of q"),
        Column(
            "chi2 df p_value",
            "Pearson's χ² against p, cells pooled until each expects 5; rejections are counted with this one",
        ),
        Column("chi2_p_value", "of tv_output and of the unpooled χ², by Monte Carlo: at least 1 / (resamples + 1)"),
        Column(
            "detectable_leak",
            "smallest share of tokens that, drawn from q instead of p, the χ² at level .001 would see with power .9; empty where it would not even see all",
        ),
        Column("detectable_tv", "that share's distance from p, share × tv_draft"),
        Column(
            "tv_bound",
            "upper 95% bound on the total variation of the tested cells (rare symbols pooled), by the χ² observed: never 0",
        ),
        Column("resamples", "of the Monte Carlo"),
    ),
)
