# What is learned or counted: the target without and with MTP, the draft model, heads of the target, the n-gram.
MODEL_FILES = ("config.json", "model.safetensors", "heads.safetensors", "training.json", "certificate.json")

HEAD_FILES = ("heads.safetensors", "training.json", "certificate.json")


rule train:
    input:
        text=rules.corpus.output.text,
        record=rules.corpus.output.record,
    output:
        [MODELS / "{model}" / "{seed}" / name for name in MODEL_FILES],
        history=MODELS / "{model}" / "{seed}" / "history.csv",
    log:
        LOGS / "train" / "{model}-{seed}.log",
    benchmark:
        BENCHMARKS / "train" / "{model}-{seed}.tsv"
    conda:
        ENVIRONMENT
    threads: config["threads"]
    resources:
        gpu=GPU,
        mem_mb=1500,
    params:
        settings=lambda wildcards: settings("train", wildcards.model),
        code=code_hash("train"),
        # No output: Snakemake removes what a failed or interrupted job declared, and this must outlive it.
        checkpoint=lambda wildcards: RESULTS / "checkpoints" / f"{wildcards.model}-{wildcards.seed}.safetensors",
    shell:
        "python -m specledger train --settings {params.settings:q} --code {params.code} --log {log:q}"
        " --model {wildcards.model} --seed {wildcards.seed} --text {input.text:q} --record {input.record:q}"
        " --history {output.history:q} --checkpoint {params.checkpoint:q}"


rule head:
    input:
        text=rules.corpus.output.text,
        record=rules.corpus.output.record,
        mtp=model_files("mtp"),
        # What the head begins with. Most heads have no such files.
        first=lambda wildcards: files_of_first(wildcards.head, wildcards.seed),
    output:
        [RESULTS / "heads" / "{head}" / "{seed}" / name for name in HEAD_FILES],
        history=RESULTS / "heads" / "{head}" / "{seed}" / "history.csv",
    log:
        LOGS / "head" / "{head}-{seed}.log",
    benchmark:
        BENCHMARKS / "head" / "{head}-{seed}.tsv"
    conda:
        ENVIRONMENT
    threads: config["threads"]
    resources:
        gpu=GPU,
        mem_mb=1500,
    params:
        settings=lambda wildcards: settings("head", wildcards.head),
        code=code_hash("train-head"),
        checkpoint=lambda wildcards: RESULTS / "checkpoints" / f"{wildcards.head}-{wildcards.seed}.safetensors",
    shell:
        "python -m specledger train-head --settings {params.settings:q} --code {params.code} --log {log:q}"
        " --head {wildcards.head} --seed {wildcards.seed} --text {input.text:q} --record {input.record:q}"
        " --mtp {input.mtp:q} --first {input.first:q} --history {output.history:q}"
        " --checkpoint {params.checkpoint:q}"


rule ngram:
    input:
        text=rules.corpus.output.text,
        record=rules.corpus.output.record,
    output:
        table=RESULTS / "ngram" / "ngram.safetensors",
        record=RESULTS / "ngram" / "ngram.json",
    log:
        LOGS / "ngram.log",
    benchmark:
        BENCHMARKS / "ngram.tsv"
    conda:
        ENVIRONMENT
    params:
        settings=settings("ngram"),
        code=code_hash("ngram"),
    shell:
        "python -m specledger ngram --settings {params.settings:q} --code {params.code} --log {log:q}"
        " --text {input.text:q} --record {input.record:q} --output {output.table:q}"


# What every measuring rule reads and passes on.
BUNDLE = {
    "text": rules.corpus.output.text,
    "record": rules.corpus.output.record,
    "mtp": model_files("mtp"),
    "draft": model_files("draft"),
    "ngram": rules.ngram.output.table,
    "heads": [path for head in HEADS for path in head_files(head)],
}
BUNDLE_ARGUMENTS = (
    "--settings {params.settings:q} --code {params.code} --log {log:q} --seed {wildcards.seed}"
    " --text {input.text:q} --record {input.record:q} --ngram {input.ngram:q}"
    " --mtp {input.mtp:q} --draft {input.draft:q} --heads {input.heads:q}"
)
