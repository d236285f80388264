from specledger.tables.columns import TRUTHS, Column, Table

TABLE = Table(
    title="one row per engine × drafter × γ, over all seeds",
    columns=(
        Column("engine context_rule", "recompute with rule window; cached and compiled with rule sliding"),
        Column(
            "drafter gamma",
            "draft, draft_dynamic, ngram, lookup, mtp, a head (`medusa1`, …), or a drafter's trees (`…_tree`; `…_typical`: judged by typical acceptance); proposals a round, of a tree its nodes (of draft_dynamic and lookup the most that they make); plain decoding is `none` at 0",
        ),
        Column("tree_nodes", "proposals that are verified at once; of a chain, γ"),
        Column("temperature", "of target and drafter"),
        Column(
            "lossless",
            "whether plain and speculative decoding define the same distribution at any length under this rule; false of typical acceptance, and where the texts part from the reference engine's by a margin of 1e-5 or more, or an unknown one (agreement.csv)",
            TRUTHS,
        ),
        Column("target_forwards draft_forwards tokens", "means a text; a draft forward of the n-gram is one query"),
        Column("alpha", "accepted over examined proposals, pooled within a seed, mean over seeds", interval=True),
        Column("tokens_per_round", "tokens a target forward", interval=True),
        Column("wall_s", "seconds of a text", interval=True),
        Column(
            "speedup",
            "over plain decoding of the same engine: median, over all blocks of all seeds, of the log ratio of a text to the plain text of its block, turned back. The interval is by bootstrap, as speedup_method says with its numbers of seeds and blocks: seeds are drawn with all their blocks, median ± Student's t × √(n/(n − 1)) × sd of the drawn medians on the log scale",
            interval=True,
        ),
        Column("speedup_method", "how its interval came about, with the numbers of seeds and blocks"),
        Column("speedup_vs_recompute", "the same over plain decoding of the engine recompute", interval=True),
        Column(
            "c", "seconds of a proposal of γ tokens, over γ, over those of a one-token target forward of that engine"
        ),
        Column(
            "eq1 theorem38",
            "Leviathan et al. 2023, eq. (1) and Theorem 3.8 at the row's own α and c; empty for trees and for drafters that choose how much they propose",
        ),
        Column(
            "cost_model", "tokens_per_round / (v + γ c): speed-up by forwards alone, at the row's own tokens a round"
        ),
        Column("v", "seconds of verifying γ + 1 positions over those of a one-token forward"),
        Column(
            "overhead cost_model_overhead",
            "what a timed round takes beside its proposal and its forward, in target forwards; the cost model with it",
        ),
        Column("proposals", "proposals a round"),
        Column("tv", "of rows under typical acceptance: as in typical.csv"),
        Column(
            "seeds repeats",
            "seeds; texts that were timed, of the seed with the fewest (`sweep.stop` ends a method early). Acceptance, rounds and forwards are counted in the first `sweep.stop.blocks` texts of every method alone",
        ),
    ),
)
