# What must hold exactly, seed by seed.
rule checks_of_seed:
    input:
        **BUNDLE_WITH_TREES,
        kernels=KERNELS,
        plain=model_files("plain"),
    output:
        [
            RESULTS / "checks" / "{seed}" / name
            for name in ("prefix.csv", "greedy.csv", "oracle.csv", "certificate.json")
        ],
    log:
        LOGS / "checks" / "{seed}.log",
    benchmark:
        BENCHMARKS / "checks" / "{seed}.tsv"
    conda:
        ENVIRONMENT
    threads: config["threads"]
    resources:
        gpu=GPU,
        mem_mb=1000,
    params:
        settings=settings("checks"),
        code=code_hash("checks"),
    shell:
        f"python -m specledger checks {TREES_ARGUMENTS} --plain {{input.plain:q}} --output {{output:q}}"
