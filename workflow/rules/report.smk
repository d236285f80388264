# From tables to figures, the page and the paper.
FIGURES = RESULTS / "figures"
FIGURE_NAMES = (
    "learning_curves.svg",
    "tokens_per_round.svg",
    "wall_clock.svg",
    "seeds.svg",
    "acceptance_rule.svg",
    "time_parts.svg",
    "p_values.svg",
    "acceptance_by_position.svg",
    "gap.svg",
)
TEMPLATES = tuple(sorted(path for path in (WORKFLOW / "report").rglob("*") if path.is_file()))
TEMPLATES = tuple(sorted(path for path in (WORKFLOW / "report").rglob("*") if path.is_file()))
FIGURE_TEXTS = tuple(path for path in TEMPLATES if path.name in ("figures.toml", "names.toml"))


rule figures:
    input:
        rules.tables.output,
        expand(MODELS / "{model}" / "{seed}" / "history.csv", model=("plain", "mtp", "draft"), seed=SEEDS),
        record=rules.corpus.output.record,
    output:
        report(
            [FIGURES / name for name in FIGURE_NAMES],
            category="Figures",
            caption="../report/captions/figures.rst",
        ),
    log:
        LOGS / "figures.log",
    benchmark:
        BENCHMARKS / "figures.tsv"
    conda:
        ENVIRONMENT
    params:
        settings=settings("report"),
        code=code_hash("figures", FIGURE_TEXTS),
        results=results_folder,
    shell:
        "python -m specledger figures --settings {params.settings:q} --code {params.code} --log {log:q}"
        " --results {params.results:q} --output {output:q}"


rule page:
    input:
        rules.tables.output,
        rules.figures.output,
        record=rules.corpus.output.record,
    output:
        report(REPORT / "index.html", category="Report", caption="../report/captions/page.rst"),
    log:
        LOGS / "page.log",
    benchmark:
        BENCHMARKS / "page.tsv"
    conda:
        ENVIRONMENT
    params:
        settings=settings("report"),
        expected=expected(),
        code=code_hash("page", TEMPLATES),
        results=results_folder,
    shell:
        "python -m specledger page --settings {params.settings:q} --code {params.code} --log {log:q}"
        " --results {params.results:q} --expected {params.expected:q} --output {output:q}"


rule paper:
    input:
        rules.tables.output,
        rules.figures.output,
        record=rules.corpus.output.record,
    output:
        report(REPORT / "report.pdf", category="Report", caption="../report/captions/page.rst"),
    log:
        LOGS / "paper.log",
    benchmark:
        BENCHMARKS / "paper.tsv"
    conda:
        ENVIRONMENT
    params:
        settings=settings("report"),
        expected=expected(),
        code=code_hash("paper", TEMPLATES),
        results=results_folder,
    shell:
        "python -m specledger paper --settings {params.settings:q} --code {params.code} --log {log:q}"
        " --results {params.results:q} --expected {params.expected:q} --output {output:q}"
