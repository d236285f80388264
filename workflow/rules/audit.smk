# Other people's decoders, and ours among them, held against the exact distribution of our own models.
from specledger.audit import matrix, workers

AUDIT = config.get("audit")
AUDITED = RESULTS / "audit"
ENVIRONMENTS = Path(os.environ.get("SPECLEDGER_ENVIRONMENTS") or ".environments")
try:
    ROWS = {(row.system, row.mode): row for row in matrix.rows_of(AUDIT)} if AUDIT else {}
except UserError as error:
    sys.exit(f"specledger: {error}")
TREES_OF_ROWS = {row.tree(AUDIT): row for row in ROWS.values() if not row.own_vocabulary}


def environment_of(system):
    """The record of a system's environment; none for ours."""
    return [] if workers.adapter(system).REQUIREMENTS is None else [ENVIRONMENTS / system / "installed.json"]


def pins(system):
    """The requirements file of a system's environment."""
    return WORKFLOW / "envs" / workers.adapter(system).REQUIREMENTS


def adapters(system):
    """The files that a system's worker runs, of which no import tells."""
    folder = Path(workers.__file__).parent
    beside = [folder / "gguf_export.py"] if system == "llama.cpp" else []
    return (folder / "worker.py", Path(workers.adapter(system).__file__), *beside)


def tree_of_row(wildcards):
    row = ROWS[wildcards.system, wildcards.mode]
    return [] if row.own_vocabulary else AUDITED / "exact" / f"{row.tree(AUDIT)}.pickle"


def served(model, wildcards):
    """The model as the system of a row opens it: a file for llama.cpp, the folder's files for everybody else."""
    if workers.adapter(wildcards.system).MODEL == "gguf":
        return AUDITED / "gguf" / f"{model}-{SEEDS[0]}.gguf"
    return [str(path).format(seed=SEEDS[0]) for path in model_files(model)]


def audit_settings(**slice_):
    """What a stage of the audit depends on besides its files, as one string."""
    shared = {"start": config["corpus"]["prompt"], "threads": config["threads"]}
    return json.dumps({**shared, **slice_}, sort_keys=True, ensure_ascii=False)


def row_settings(wildcards):
    row = ROWS[wildcards.system, wildcards.mode]
    return audit_settings(
        row={key: value for key, value in vars(row).items() if key != "settings"},
        sampling=row.sampling(AUDIT).named(),
        context=config["model"]["context"],
        family=matrix.family_of(ROWS),
        **{key: AUDIT[key] for key in ("texts", "level", "time_limit_s")},
    )


def tree_settings(wildcards):
    row = TREES_OF_ROWS[wildcards.tree]
    return audit_settings(prompt=row.prompt, sampling={**row.sampling(AUDIT).named(), "seed": 0}, order=row.order)


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
        " --environment {input.environment:q} --tree {input.tree:q} --output {output:q}"


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
        settings=audit_settings(study=STUDY, target=f"mtp-{SEEDS[0]}", level=AUDIT and AUDIT["level"]),
        code=code_hash("audit-table", templates("audit.html.j2", "page.css")),
    shell:
        "python -m specledger audit-table --settings {params.settings:q} --code {params.code} --log {log:q}"
        " --rows {input.rows:q} --record {input.record:q} --page {output.page:q} --output {output.table:q}"
