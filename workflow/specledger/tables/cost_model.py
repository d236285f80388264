from specledger.tables.columns import DRAFTER_AND_GAMMA, ENGINE, Column, Table

TABLE = Table(
    title="theory against clock, one row per method",
    about="""
Costs are of single calls, timed apart from the texts: each is taken over its seed's plain round, then the median over
seeds. Tokens a round come from acceptance/…/texts.csv: given a text that the target wrote, a guess at a position is
accepted with probability min(1, q/p) of the token there, so the probability that a round starts at a position
follows from the earlier ones, and with it the expected number of rounds that the decoder makes of the text
(analysis/yields.py says why that is without bias). Drafters that choose how much they propose decode texts of their own
(acceptance/…/rounds.csv); their costs by number of proposals are those of the drafter that does the same work. Under
the rule window a verdict past the window rests on other histories than the text's own, so the engine recompute
decodes texts of its own too (sweep/…/apart.csv); they are not timed.
""",
    columns=(
        ENGINE,
        DRAFTER_AND_GAMMA,
        Column(
            "tokens_per_round alpha_apart proposals",
            "of those texts: tokens a round, accepted over examined, proposals a round",
        ),
        Column("t_ar t_draft", "s: a target forward of one position; a token of a proposal of γ"),
        Column(
            "t_propose t_verify overhead",
            "s: of a round, over the numbers of proposals that rounds make: proposal, forward, everything else, and their sum",
        ),
        Column("plain_overhead", "s: what a token of plain decoding takes beside its forward"),
        Column(
            "t_round",
            "s: of a round, over the numbers of proposals that rounds make: proposal, forward, everything else, and their sum",
        ),
        Column("c v", "t_draft and t_verify over t_ar"),
        Column(
            "theorem38",
            "Theorem 3.8 at alpha_apart and c, v = 1 and no overhead; empty for drafters that choose how much they propose",
        ),
        Column("cost_model", "tokens_per_round × (t_ar + plain_overhead) / t_round"),
        Column("measured", "the ledger's speedup", interval=True),
        Column("miss theorem38_miss", "prediction over measured, minus 1"),
    ),
    after="""
summary.json holds R² = 1 − SS_res / SS_tot of the ratios, the worst miss and its row, by engine and over all.
""",
    may_be_empty=True,
)
