# Other people's decoders, and ours among them, held against the exact distribution of our own models.
rule audit_environment:
    input:
        # Not by time: a fresh clone goes on with environments that are there. The param says what they must hold.
        requirements=lambda wildcards: ancient(str(pins(wildcards.system))),
    output:
        ENVIRONMENTS / "{system}" / "installed.json",
    log:
        LOGS / "audit" / "environment-{system}.log",
    conda:
        ENVIRONMENT
    params:
        pins=lambda wildcards: hash_text(pins(wildcards.system).read_text(encoding="utf-8")),
    shell:
        "python -m specledger audit-environment --log {log:q} --system {wildcards.system:q}"
        " --requirements {input.requirements:q} --output {output:q}"


rule audit_gguf:
    input:
        model=lambda wildcards: [str(path) for path in model_files(wildcards.model)],
        environment=ENVIRONMENTS / "llama.cpp" / "installed.json",
    output:
        AUDITED / "gguf" / "{model}-{seed}.gguf",
    log:
        LOGS / "audit" / "gguf-{model}-{seed}.log",
    conda:
        ENVIRONMENT
    threads: config["threads"]
    params:
        settings=audit_settings(),
        code=code_hash("audit-gguf", adapters("llama.cpp")),
    shell:
        "python -m specledger audit-gguf --settings {params.settings:q} --code {params.code} --log {log:q}"
        " --model {input.model:q} --environment {input.environment:q} --output {output:q}"


rule audit_exact:
    input:
        text=rules.corpus.output.text,
        record=rules.corpus.output.record,
        target=[str(path).format(seed=SEEDS[0]) for path in model_files("mtp")],
        draft=[str(path).format(seed=SEEDS[0]) for path in model_files("draft")],
    output:
        AUDITED / "exact" / "{tree}.pickle",
    log:
        LOGS / "audit" / "exact-{tree}.log",
    conda:
        ENVIRONMENT
    threads: config["threads"]
    params:
        settings=tree_settings,
        code=code_hash("audit-exact"),
    shell:
        "python -m specledger audit-exact --settings {params.settings:q} --code {params.code} --log {log:q}"
        " --text {input.text:q} --record {input.record:q} --target {input.target:q} --draft {input.draft:q}"
        " --output {output:q}"


rule audit_row:
    input:
        text=rules.corpus.output.text,
        record=rules.corpus.output.record,
        target=lambda wildcards: served("mtp", wildcards),
        draft=lambda wildcards: served("draft", wildcards),
        environment=lambda wildcards: environment_of(wildcards.system),
        tree=tree_of_row,
        plain=plain_of_row,
    output:
        AUDITED / "rows" / "{system}" / "{mode}.json",
    log:
        LOGS / "audit" / "{system}" / "{mode}.log",
    benchmark:
        BENCHMARKS / "audit" / "{system}" / "{mode}.tsv"
    conda:
        ENVIRONMENT
    threads: config["threads"]
    params:
        settings=row_settings,
        code=lambda wildcards: code_hash("audit-row", adapters(wildcards.system)),
    shell:
        "python -m specledger audit-row --settings {params.settings:q} --code {params.code} --log {log:q}"
        " --text {input.text:q} --record {input.record:q} --target {input.target:q} --draft {input.draft:q}"
        " --environment {input.environment:q} --tree {input.tree:q} --plain {input.plain:q}"
        " --output {output:q}"


rule audit_table:
    input:
        rows=[AUDITED / "rows" / system / f"{mode}.json" for system, mode in ROWS],
        record=rules.corpus.output.record,
    output:
        table=report(AUDITED / "audit.csv", category="Tables", caption="../report/captions/tables.rst"),
        page=report(REPORT / "audit.html", category="Report", caption="../report/captions/page.rst"),
    log:
        LOGS / "audit" / "table.log",
    conda:
        ENVIRONMENT
    params:
        settings=audit_settings(
            study=STUDY, target=f"mtp-{SEEDS[0]}", level=AUDIT and AUDIT["level"], config=laid_over()
        ),
        code=code_hash("audit-table", templates("audit.html.j2", "page.css")),
    shell:
        "python -m specledger audit-table --settings {params.settings:q} --code {params.code} --log {log:q}"
        " --rows {input.rows:q} --record {input.record:q} --page {output.page:q} --output {output.table:q}"
