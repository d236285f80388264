from specledger.tables.columns import Column, Table

TABLE = Table(
    title="the rule at many contexts",
    about="""
One row per drafter, all seeds together, and one for `all`. A context at which everything falls into one cell
is counted and not tested.
""",
    columns=(
        Column("drafter", "as in ledger.csv; `all`: of all drafters together"),
        Column("contexts tested draws seeds", "contexts × seeds; those of them with something to test; draws at each"),
        Column("fisher_p", "Fisher's combination of the contexts' p-values: a diagnostic"),
        Column(
            "sum_chi2 sum_df sum_p",
            "the sum of their χ², its degrees of freedom and p-value: sees a small bias that is everywhere, and decides",
        ),
        Column(
            "holm_rejected bh_rejected",
            "contexts rejected at .001 after Holm, and after Benjamini and Hochberg: a large bias at a few contexts; empty where nothing was tested",
        ),
        Column("ks_p", "Kolmogorov-Smirnov test that the p-values are uniform: a diagnostic"),
        Column("below_05", "share of p-values under .05, with the Clopper-Pearson 95% interval", interval=True),
        Column(
            "plausible_share",
            "share of contexts where the published TV (0.0005, of config/claims.yaml) lies in the central 99% of what as many draws of the right rule give",
        ),
    ),
    after="""
χ² on pooled cells follows its law only nearly: over 4,800 such tests Fisher's combination has a simulated size of .004
at a nominal .001, and Holm at .001 a family size of about .006.
""",
)
