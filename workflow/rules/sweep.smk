# Texts and seconds; the only stage that times, and so the one that wants the machine for itself.
rule sweep_of_seed:
    input:
        **BUNDLE_WITH_TREES,
        kernels=KERNELS,
    output:
        [
            RESULTS / "sweep" / "{seed}" / name
            for name in (
                "runs.csv",
                "rounds.csv",
                "forwards.csv",
                "apart.csv",
                "agreement.csv",
                "engines.csv",
                "sample.json",
                "certificate.json",
            )
        ],
    log:
        LOGS / "sweep" / "{seed}.log",
    benchmark:
        BENCHMARKS / "sweep" / "{seed}.tsv"
    conda:
        ENVIRONMENT
    # Clamped to --cores, and so all of them; on a cluster the profile asks for a whole node.
    threads: config["threads"] if ELSEWHERE else os.cpu_count()
    resources:
        gpu=workflow.global_resources.get("gpu", GPU) if ON_GPU else 0,
        mem_mb=1000,
    params:
        settings=settings("sweep"),
        code=code_hash("sweep"),
    shell:
        f"python -m specledger sweep {TREES_ARGUMENTS} --output {{output:q}}"
