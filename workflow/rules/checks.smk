# What must hold exactly, seed by seed.
rule checks:
    input:
        **CAST,
        plain=model_files("plain"),
    output:
        [RESULTS / "checks" / "{seed}" / name for name in ("prefix.csv", "greedy.csv", "certificate.json")],
    params:
        settings=settings("checks"),
        code=code_hash("checks"),
    threads: config["threads"]
    resources:
        gpu=GPU,
        mem_mb=1000,
    log:
        LOGS / "checks" / "{seed}.log",
    benchmark:
        BENCHMARKS / "checks" / "{seed}.tsv"
    conda:
        ENVIRONMENT
    shell:
        "{PYTHON:q} -m specledger checks" + CAST_ARGUMENTS +
        " --plain {MODELS:q}/plain/{wildcards.seed} --output {RESULTS:q}/checks/{wildcards.seed}"
