"""Where the results of a study come from, and which of them don't belong to it."""

from pathlib import Path

from specledger.foundation.records import hash_text, read_json

MODELS = ("plain", "mtp", "draft")
MEASURED = ("checks", "acceptance", "sequences", "sweep")


def certificates(results: Path, seeds: list[int]) -> dict[str, list[tuple[str, dict]]]:
    """The certificates by kind of result (a model's name or a stage), each with the name of its folder."""
    found = {}
    for model in MODELS:
        found[model] = [(f"models/{model}/{seed}", results / "models" / model / str(seed)) for seed in seeds]
    for stage in MEASURED:
        found[stage] = [(f"{stage}/{seed}", results / stage / str(seed)) for seed in seeds]
    found["controls"] = [(f"controls/{seeds[0]}", results / "controls" / str(seeds[0]))]  # of one seed
    return {
        kind: [(name, read_json(folder / "certificate.json")) for name, folder in folders]
        for kind, folders in found.items()
    }


def stale_lines(found: dict[str, list[tuple[str, dict]]], expected: dict[str, dict]) -> list[str]:
    """One line for each result that other settings or other code than today's have made."""
    lines = []
    for kind, named in found.items():
        for name, record in named:
            wrong = [what for what in ("settings", "code") if record[f"{what}_hash"] != expected[kind][f"{what}_hash"]]
            if wrong:
                lines.append(f"{name}: made with other {' and '.join(wrong)} than the study's")
    return lines


def mixed_lines(records: list[dict]) -> list[str]:
    """One line for each respect in which the results of one study were made differently."""
    lines = []
    for what in ("device", "threads", "commit", "platform", "python"):
        values = sorted({str(record[what]) for record in records})
        if len(values) > 1:
            lines.append(f"{what}: {', '.join(values)}")
    libraries = sorted({name for record in records for name in record["versions"]})
    for name in libraries:
        values = sorted({str(record["versions"].get(name)) for record in records})
        if len(values) > 1:
            lines.append(f"{name}: {', '.join(values)}")
    return lines


def provenance(results: Path, config: dict, settings: str, expected: dict[str, dict]) -> dict:
    """What the report says of the study's making; raises UserError for a certificate that is missing."""
    seeds = config["seeds"]
    found = certificates(results, seeds)
    records = [record for named in found.values() for _, record in named]
    corpus = read_json(results / "corpus" / "corpus.json")
    stale = stale_lines(found, expected) + stale_lines({"corpus": [("corpus", corpus)]}, expected)
    trainings = [
        read_json(results / "models" / model / str(seed) / "training.json") for model in MODELS for seed in seeds
    ]
    first = records[0]
    return {
        "study": config["study"],
        "quick": config["quick"],
        "config": config,
        "settings_hash": hash_text(settings),
        "commit": first["commit"],
        "dirty": any(bool(record["dirty"]) for record in records) if first["commit"] else None,
        "seeds": seeds,
        "devices": sorted({record["device"] for record in records}),
        "threads": sorted({record["threads"] for record in records}),
        "versions": {**first["versions"], "python": first["python"]},
        "platform": first["platform"],
        "train_s": sum(training["train_s"] for training in trainings),
        "sweep_s": sweep_seconds(results, seeds),
        "stale": stale,
        "missing": [],
        "mixed": mixed_lines(records),
    }


def sweep_seconds(results: Path, seeds: list[int]) -> float:
    """Seconds of all texts that the sweeps generated."""
    import pandas as pd

    return float(sum(pd.read_csv(results / "sweep" / str(seed) / "runs.csv")["wall_s"].sum() for seed in seeds))
