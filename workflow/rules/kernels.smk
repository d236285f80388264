# The kernels of the engine `compiled`: built once for all seeds. A stage on another machine builds its own, in seconds.
rule kernels:
    output:
        RESULTS / "kernels.json",
    log:
        LOGS / "kernels.log",
    benchmark:
        BENCHMARKS / "kernels.tsv"
    conda:
        ENVIRONMENT
    params:
        code=code_hash("kernels"),
    shell:
        "python -m specledger kernels --code {params.code} --log {log:q} --output {output:q}"


# When it was built matters to none that reads it.
KERNELS = ancient(rules.kernels.output) if "compiled" in config["sweep"]["engines"] else []
