# `snakemake compare`: the study's tables beside those of a reference. No part of `all`, whose results it reads.
REFERENCE = Path(config["compare"]["reference"])


localrules:
    compare,


rule compare:
    input:
        rules.tables.output,
        CERTIFICATES,
        # Only what is there: where nothing is, the stage says so in a line.
        [REFERENCE / path.name for path in sorted(REFERENCE.glob("*.csv"))],
        sorted(REFERENCE.parent.glob("*/**/certificate.json")) if REFERENCE.parent != RESULTS else [],
    output:
        table=report(RESULTS / "compare" / "compare.csv", category="Tables", caption="../report/captions/tables.rst"),
        certificate=RESULTS / "compare" / "certificate.json",
        page=report(REPORT / "compare.html", category="Report", caption="../report/captions/page.rst"),
    log:
        LOGS / "compare.log",
    conda:
        ENVIRONMENT
    params:
        settings=settings("compare"),
        code=code_hash("compare", templates("compare.html.j2", "page.css")),
        tables=lambda wildcards, input: str(TABLES),  # takes `input`, so that its place is not compared
    shell:
        "python -m specledger compare --settings {params.settings:q} --code {params.code} --log {log:q}"
        " --tables {params.tables:q} --page {output.page:q} --output {output.table:q}"
