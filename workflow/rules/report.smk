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
    "theory.svg",
    "waterfall.svg",
    "trees.svg",
    "trees_speed.svg",
    "ranks.svg",
)

# What somebody measured beside the study with benchmarks/, where there is any. Its figure is made only then.
EXTRA_FIGURES = ["peers.svg"] if (RESULTS / "peers" / "peers.csv").is_file() else []


rule figures:
    input:
        rules.tables.input,
        rules.tables.output,
        record=rules.corpus.output.record,
    output:
        report(
            [FIGURES / name for name in (*FIGURE_NAMES, *EXTRA_FIGURES)],
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
        settings=settings("figures"),
        code=code_hash("figures", templates("figures.toml", "figures_time.toml", "figures_trees.toml", "names.toml")),
        results=results_folder,
    shell:
        "python -m specledger figures --settings {params.settings:q} --code {params.code} --log {log:q}"
        " --results {params.results:q} --output {output:q}"


rule page:
    input:
        rules.tables.input,
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
        code=code_hash("page", templates("*.j2", "*.css", "*.js", "*.toml")),
        results=results_folder,
    shell:
        "python -m specledger page --settings {params.settings:q} --code {params.code} --log {log:q}"
        " --results {params.results:q} --expected {params.expected:q} --output {output:q}"


rule paper:
    input:
        rules.tables.input,
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
        code=code_hash("paper", templates("*.typ", "*.toml")),
        results=results_folder,
    shell:
        "python -m specledger paper --settings {params.settings:q} --code {params.code} --log {log:q}"
        " --results {params.results:q} --expected {params.expected:q} --output {output:q}"
