# The acceptance rule, drawn many times at real positions.
rule acceptance:
    input:
        **CAST,
    output:
        [RESULTS / "acceptance" / "{seed}" / name for name in ("draws.csv", "position.json", "certificate.json")],
    params:
        settings=settings("acceptance"),
        code=code_hash("acceptance"),
    threads: config["threads"]
    resources:
        gpu=GPU,
        mem_mb=1500,
    log:
        LOGS / "acceptance" / "{seed}.log",
    benchmark:
        BENCHMARKS / "acceptance" / "{seed}.tsv"
    conda:
        ENVIRONMENT
    shell:
        "{PYTHON:q} -m specledger acceptance" + CAST_ARGUMENTS +
        " --output {RESULTS:q}/acceptance/{wildcards.seed}"
