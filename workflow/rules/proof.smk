# The complete decoders: right ones held against exact laws, and wrong ones that the same tests must catch.
rule sequences_of_seed:
    input:
        **BUNDLE,
        kernels=KERNELS,
    output:
        [RESULTS / "sequences" / "{seed}" / name for name in ("sequences.csv", "certificate.json")],
    log:
        LOGS / "sequences" / "{seed}.log",
    benchmark:
        BENCHMARKS / "sequences" / "{seed}.tsv"
    conda:
        ENVIRONMENT
    threads: config["threads"]
    resources:
        gpu=GPU,
        mem_mb=1500,
    params:
        settings=settings("sequences"),
        code=code_hash("sequences"),
    shell:
        f"python -m specledger sequences {BUNDLE_ARGUMENTS} --output {{output:q}}"


rule controls_of_seed:
    input:
        **BUNDLE,
    output:
        [RESULTS / "controls" / "{seed}" / name for name in ("controls.csv", "false_alarms.csv", "certificate.json")],
    log:
        LOGS / "controls" / "{seed}.log",
    benchmark:
        BENCHMARKS / "controls" / "{seed}.tsv"
    conda:
        ENVIRONMENT
    threads: config["threads"]
    resources:
        gpu=GPU,
        mem_mb=1500,
    params:
        settings=settings("controls"),
        code=code_hash("controls"),
    shell:
        f"python -m specledger controls {BUNDLE_ARGUMENTS} --output {{output:q}}"
