from specledger.tables.columns import Column, Table

TABLE = Table(
    title="the law of a whole block, enumerated without a draw",
    columns=(
        Column(
            "drafter gamma",
            "what proposes, how many tokens, and of how many symbols (of more than 170, the 64 likeliest after the prompt alone)",
        ),
        Column("tree", "parents of the nodes of a tree, as in sweep.trees; empty for chains"),
        Column(
            "vocabulary",
            "what proposes, how many tokens, and of how many symbols (of more than 170, the 64 likeliest after the prompt alone)",
        ),
        Column("model", "`random`: small random weights; `trained`: the study's own models after the prompt"),
        Column("blocks", "cells of the joint law that were compared, a seed"),
        Column(
            "max_abs_deviation",
            "largest difference to the target's probability, in double precision, over seeds; verdicts and redraws are taken for step functions of their uniforms, found within 1e-14 and tried at further uniforms spread over [0, 1) in each case (`PROBES` of experiments/oracle.py), so that a fault in a narrower sliver could hide",
        ),
        Column("seeds", "how many"),
    ),
)
