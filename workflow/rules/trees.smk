# The shape of each drafter's trees. It comes from acceptances alone and not from seconds, so that texts keep their bytes.
rule trees_of_seed:
    input:
        **BUNDLE,
    output:
        [RESULTS / "trees" / "{seed}" / name for name in ("shapes.csv", "ranks.csv", "certificate.json")],
    log:
        LOGS / "trees" / "{seed}.log",
    benchmark:
        BENCHMARKS / "trees" / "{seed}.tsv"
    conda:
        ENVIRONMENT
    threads: config["threads"]
    resources:
        gpu=GPU,
        mem_mb=1500,
    params:
        settings=settings("trees"),
        code=code_hash("trees"),
    shell:
        f"python -m specledger trees {BUNDLE_ARGUMENTS} --output {{output:q}}"


# What rules read whose drafters propose trees too.
BUNDLE_WITH_TREES = BUNDLE | {"shapes": [RESULTS / "trees" / "{seed}" / "shapes.csv"] if TREES else []}
TREES_ARGUMENTS = BUNDLE_ARGUMENTS + " --shapes {input.shapes:q}"
