# The acceptance rule, drawn many times at real positions.
rule acceptance_of_seed:
    input:
        **BUNDLE_WITH_TREES,
    output:
        [
            RESULTS / "acceptance" / "{seed}" / name
            for name in (
                "draws.csv",
                "contexts.csv",
                "texts.csv",
                "rounds.csv",
                "typical.csv",
                "position.json",
                "round.json",
                "certificate.json",
            )
        ],
    log:
        LOGS / "acceptance" / "{seed}.log",
    benchmark:
        BENCHMARKS / "acceptance" / "{seed}.tsv"
    conda:
        ENVIRONMENT
    threads: config["threads"]
    resources:
        gpu=GPU,
        mem_mb=1500,
    params:
        settings=settings("acceptance"),
        code=code_hash("acceptance"),
    shell:
        f"python -m specledger acceptance {TREES_ARGUMENTS} --output {{output:q}}"
