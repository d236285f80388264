# The text may come from the network, which a cluster's nodes often lack; the n-gram takes a second.
localrules:
    corpus,
    ngram,


# The outputs of everything that is learned or measured, for each seed.
OBSERVED = [
    *expand(rules.train.output, model=("plain", "mtp", "draft"), seed=SEEDS),
    *expand(rules.head.output, head=HEADS, seed=SEEDS),
    *expand(rules.trees_of_seed.output, seed=SEEDS if TREES else []),
    *expand(rules.checks_of_seed.output, seed=SEEDS),
    *expand(rules.acceptance_of_seed.output, seed=SEEDS),
    *expand(rules.sequences_of_seed.output, seed=SEEDS),
    *expand(rules.sweep_of_seed.output, seed=SEEDS),
    *expand(rules.controls_of_seed.output, seed=SEEDS[0]),
    rules.corpus.output.record,
    rules.ngram.output.record,
]


# What says how each result came to be. A reader is promised it, as tables, figures and pages.
CERTIFICATES = [path for path in OBSERVED if Path(path).name in ("certificate.json", "corpus.json", "ngram.json")]


# What can be asked for by name. `--forcerun` takes the rules that do the work: README.md lists both.
rule models:
    input:
        expand(rules.train.output, model=("plain", "mtp", "draft"), seed=SEEDS),
        expand(rules.head.output, head=HEADS, seed=SEEDS),
        rules.ngram.output,


rule trees:
    input:
        expand(rules.trees_of_seed.output, seed=SEEDS if TREES else []),


rule checks:
    input:
        expand(rules.checks_of_seed.output, seed=SEEDS),


rule acceptance:
    input:
        expand(rules.acceptance_of_seed.output, seed=SEEDS),


rule sequences:
    input:
        expand(rules.sequences_of_seed.output, seed=SEEDS),


rule controls:
    input:
        expand(rules.controls_of_seed.output, seed=SEEDS[0]),


rule sweep:
    input:
        expand(rules.sweep_of_seed.output, seed=SEEDS),


rule ledger:
    input:
        rules.tables.output,


rule report:
    input:
        rules.page.output,
        rules.paper.output,
