# From tables to figures, the page and the paper.
FIGURES = RESULTS / "figures"
FIGURE_NAMES = (
    "learning_curves.svg",
    "tokens_per_round.svg",
    "wall_clock.svg",
    "seeds.svg",
    "acceptance_rule.svg",
    "time_parts.svg",
)
TEMPLATES = tuple(sorted(path for path in (WORKFLOW / "report").iterdir() if path.is_file()))


rule figures:
    input:
        rules.tables.output,
        expand(MODELS / "{model}" / "{seed}" / "history.csv", model=("plain", "mtp", "draft"), seed=SEEDS),
    output:
        report(
            [FIGURES / name for name in FIGURE_NAMES],
            category="Figures",
            caption="../report/captions/figures.rst",
        ),
    params:
        settings=settings("report"),
        code=code_hash("figures"),
    log:
        LOGS / "figures.log",
    benchmark:
        BENCHMARKS / "figures.tsv"
    conda:
        ENVIRONMENT
    shell:
        "{PYTHON:q} -m specledger figures --settings {params.settings:q} --code {params.code} --log {log:q}"
        " --results {RESULTS:q} --output {FIGURES:q}"


rule page:
    input:
        rules.tables.output,
        rules.figures.output,
    output:
        report(REPORT / "index.html", category="Report", caption="../report/captions/page.rst"),
    params:
        settings=settings("report"),
        expected=expected(),
        code=code_hash("page", TEMPLATES),
    log:
        LOGS / "page.log",
    benchmark:
        BENCHMARKS / "page.tsv"
    conda:
        ENVIRONMENT
    shell:
        "{PYTHON:q} -m specledger page --settings {params.settings:q} --code {params.code} --log {log:q}"
        " --results {RESULTS:q} --figures {FIGURES:q} --expected {params.expected:q} --output {output:q}"


rule paper:
    input:
        rules.tables.output,
        rules.figures.output,
    output:
        report(REPORT / "report.pdf", category="Report", caption="../report/captions/page.rst"),
    params:
        settings=settings("report"),
        expected=expected(),
        code=code_hash("paper", TEMPLATES),
    log:
        LOGS / "paper.log",
    benchmark:
        BENCHMARKS / "paper.tsv"
    conda:
        ENVIRONMENT
    shell:
        "{PYTHON:q} -m specledger paper --settings {params.settings:q} --code {params.code} --log {log:q}"
        " --results {RESULTS:q} --figures {FIGURES:q} --expected {params.expected:q} --output {output:q}"
