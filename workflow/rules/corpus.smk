# The text: the user's file, the mirrors, or with no network Python's own documentation.
rule corpus:
    output:
        text=RESULTS / "corpus" / "text.txt",
        record=report(RESULTS / "corpus" / "corpus.json", category="Corpus", caption="../report/captions/corpus.rst"),
    log:
        LOGS / "corpus.log",
    benchmark:
        BENCHMARKS / "corpus.tsv"
    conda:
        ENVIRONMENT
    params:
        settings=settings("corpus"),
        code=code_hash("corpus"),
        # Where the text lies and what it must be long enough for are no settings of the text, what it says is.
        # A param that takes `input` is passed on and not compared: only another sum makes the job run again.
        source=lambda wildcards, input: json.dumps(
            {**config["corpus"], **configuration.asked_of_text(config), "path": CORPUS_PATH}
        ),
    shell:
        "python -m specledger corpus --settings {params.settings:q} --code {params.code} --log {log:q}"
        " --source {params.source:q} --text {output.text:q} --record {output.record:q}"
