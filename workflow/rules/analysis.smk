# From observations to tables: exactly the configured seeds, whatever else lies in the folders.
TABLES = RESULTS / "tables"
CLAIMS = Path(workflow.basedir) / "config" / "claims.yaml"
TABLE_NAMES = (
    "ledger.csv",
    "time.csv",
    "forwards.csv",
    "cost_model.csv",
    "waterfall.csv",
    "best_gamma.csv",
    "noise.csv",
    "engines.csv",
    "agreement.csv",
    "acceptance.csv",
    "prefix.csv",
    "greedy.csv",
    "seeds.csv",
    "models.csv",
    "oracle.csv",
    "contexts.csv",
    "p_values.csv",
    "sequences.csv",
    "controls.csv",
    "false_alarms.csv",
    "rates.csv",
    "independence.csv",
    "gap.csv",
    "differences.csv",
    "heads.csv",
    "ranks.csv",
    "trees.csv",
    "typical.csv",
    "systems.csv",
    "claims.csv",
    "goals.csv",
    "summary.json",
)

# What somebody measured beside the study, with benchmarks/ or as an audit, where there is any.
EXTRAS = [
    RESULTS / path
    for path in ("peers/peers.csv", "peers/training_speed.csv", "audit/audit.csv")
    if (RESULTS / path).is_file() or (config.get("audit") and path == "audit/audit.csv")
]


rule tables:
    input:
        EXTRAS,
        rules.ngram.output.record,
        expand(
            MODELS / "{model}" / "{seed}" / "{name}",
            model=("plain", "mtp", "draft"),
            seed=SEEDS,
            name=("training.json", "history.csv"),
        ),
        expand(RESULTS / "heads" / "{head}" / "{seed}" / "training.json", head=HEADS, seed=SEEDS),
        expand(rules.trees_of_seed.output, seed=SEEDS if TREES else []),
        expand(rules.checks_of_seed.output, seed=SEEDS),
        expand(rules.acceptance_of_seed.output, seed=SEEDS),
        expand(rules.sequences_of_seed.output, seed=SEEDS),
        expand(rules.controls_of_seed.output, seed=SEEDS[0]),
        expand(rules.sweep_of_seed.output, seed=SEEDS),
        record=rules.corpus.output.record,
    output:
        report(
            [TABLES / name for name in TABLE_NAMES],
            category="Tables",
            caption="../report/captions/tables.rst",
        ),
    log:
        LOGS / "tables.log",
    benchmark:
        BENCHMARKS / "tables.tsv"
    conda:
        ENVIRONMENT
    params:
        settings=settings("analysis"),
        code=code_hash("tables"),
        results=results_folder,
        readings=meaning_of(CLAIMS),
        claims=lambda wildcards, input: str(CLAIMS),  # takes `input`, so that its place is not compared
    shell:
        "python -m specledger tables --settings {params.settings:q} --code {params.code} --log {log:q}"
        " --results {params.results:q} --claims {params.claims:q}"
