# The text: the user's file, the mirrors, or with no network Python's own documentation.
rule corpus:
    output:
        text=RESULTS / "corpus" / "text.txt",
        record=report(RESULTS / "corpus" / "corpus.json", category="Corpus", caption="../report/captions/corpus.rst"),
    params:
        settings=settings("corpus"),
        code=code_hash("corpus"),
    log:
        LOGS / "corpus.log",
    benchmark:
        BENCHMARKS / "corpus.tsv"
    conda:
        ENVIRONMENT
    shell:
        "{PYTHON:q} -m specledger corpus --settings {params.settings:q} --code {params.code} --log {log:q}"
        " --source {SOURCE:q} --text {output.text:q} --record {output.record:q}"
