"""Where the results of a study come from, and which of them don't belong to it."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from specledger.foundation.drafters import HEADS, SPECS
from specledger.foundation.records import hash_text, head_weights_of, read_json, sum_of, weights_of

MODELS = ("plain", "mtp", "draft")
MEASURED = ("checks", "acceptance", "sequences", "sweep")
TREES, BRANCHING = "trees", ("checks", "acceptance", "sweep")  # the stage that shapes trees, and those that read them


@dataclass(frozen=True, kw_only=True)
class Made:
    """A result that says how it was made: its kind (a model, a head or a stage), its place, its certificate."""

    kind: str
    name: str
    folder: Path
    certificate: Path
    inputs: dict[str, tuple[Path, ...]]  # what it is made from, by the names of the certificate


def results_of(results: Path, seeds: list[int], heads: Iterable[str] = ()) -> Iterator[Made]:
    """Every result of the study, those before others that they are made from; `heads` may hold other names too."""
    text = {"text": (results / "corpus" / "text.txt",)}
    ngram = results / "ngram"
    yield _made("corpus", results / "corpus", results / "corpus" / "corpus.json", {})
    yield _made("ngram", ngram, ngram / "ngram.json", text)
    for seed in map(str, seeds):
        models = {model: results / "models" / model / seed for model in MODELS}
        for model, folder in models.items():
            yield _made(model, folder, folder / "certificate.json", text)
        bundle = {**text, "ngram": (ngram / "ngram.safetensors",)}
        bundle |= {model: weights_of(folder) for model, folder in models.items()}
        for made in _heads_of(results, seed, {**text, "mtp": bundle["mtp"]}, heads):
            yield made
            bundle[made.kind] = head_weights_of(made.folder)
        shapes = {}
        if TREES in heads:
            folder = results / TREES / seed
            yield _made(TREES, folder, folder / "certificate.json", bundle)
            shapes["shapes"] = (folder / "shapes.csv",)
        for stage in (*MEASURED, *(["controls"] if seed == str(seeds[0]) else [])):
            inputs = bundle | (shapes if stage in BRANCHING else {})
            yield _made(stage, results / stage / seed, results / stage / seed / "certificate.json", inputs)


def _heads_of(results: Path, seed: str, inputs: dict, heads: Iterable[str]) -> Iterator[Made]:
    """Those of `heads` that are heads; some begin with what another has learned."""
    folders = {head: results / "heads" / head / seed for head in HEADS if head in heads}
    for head, folder in folders.items():
        begun = SPECS[head].begins_with
        first = {begun: head_weights_of(folders[begun])} if begun is not None else {}
        yield _made(head, folder, folder / "certificate.json", inputs | first)


def _made(kind: str, folder: Path, certificate: Path, inputs: dict) -> Made:
    named = kind in (*MODELS, *HEADS)
    parts = folder.parts[-3:] if named else folder.parts[-2:] if folder.name.isdigit() else folder.parts[-1:]
    return Made(kind=kind, name="/".join(parts), folder=folder, certificate=certificate, inputs=inputs)


@cache
def _sum(paths: tuple[Path, ...], _times: tuple[int, ...]) -> str:
    return sum_of(*paths)


def current_sum(paths: tuple[Path, ...]) -> str | None:
    """The sum of files as they are now; None where one is gone (weights may be deleted to save room)."""
    try:
        return _sum(paths, tuple(path.stat().st_mtime_ns for path in paths))
    except FileNotFoundError:
        return None


def differences(made: Made, record: dict, expected: dict[str, dict]) -> list[str]:
    """In what `made` differs from what today's settings, code and files would give: empty where it is valid."""
    found = [what for what in ("settings", "code") if record.get(f"{what}_hash") != expected[made.kind][f"{what}_hash"]]
    return found + changed_inputs(made, record)


def changed_inputs(made: Made, record: dict) -> list[str]:
    """Which of the files that `made` was made from are others today."""
    found = []
    for name, then in record.get("inputs", {}).items():
        now = current_sum(made.inputs[name]) if name in made.inputs else None
        if now is not None and now != then:
            found.append({"text": "text", "ngram": "n-gram", "shapes": "shapes of trees"}.get(name, f"model {name}"))
    return found


def changed_files(made: Made, record: dict) -> list[str]:
    """Files of a result that are not what the run has written; one that is gone is no such file."""
    now = {name: current_sum((made.folder / name,)) for name in record.get("files", {})}
    return [name for name, then in record.get("files", {}).items() if now[name] not in (then, None)]


def stale_lines(results: Path, seeds: list[int], expected: dict[str, dict]) -> list[str]:
    """One line for each result that other settings, code, text or models than the study's have made."""
    lines = []
    for made in results_of(results, seeds, expected):
        record = read_json(made.certificate)
        wrong, changed = differences(made, record, expected), changed_files(made, record)
        if changed:
            lines.append(f"{made.name}: {', '.join(changed)} changed after the run that wrote it")
        if wrong:
            lines.append(f"{made.name}: made with other {' and '.join(wrong)} than the study's")
    return lines


def _beside(results: Path) -> Iterator[tuple[str, Path, Path, dict[str, tuple[Path, ...]]]]:
    """What was measured beside the study, where it was: name, table, certificate, and what it has to rest on."""
    folder = results / "peers"
    record, text = folder / "certificate.json", {"text": (results / "corpus" / "text.txt",)}
    seed = str(_said(record)["settings"].get("seed"))
    bundle = {model: weights_of(results / "models" / model / seed) for model in ("mtp", "draft")}
    bundle["ngram"] = (results / "ngram" / "ngram.safetensors",)
    yield "peers/peers.csv", folder / "peers.csv", record, bundle
    yield "peers/training_speed.csv", folder / "training_speed.csv", folder / "training_certificate.json", text


def _said(certificate: Path) -> dict:
    return {"settings": {}, "inputs": {}} | (read_json(certificate) if certificate.is_file() else {})


def stale_beside(results: Path, expected: dict[str, dict]) -> list[str]:
    """One line for each comparison of benchmarks/ that other weights, text or training than the study's went into."""
    lines = []
    for name, table, certificate, inputs in _beside(results):
        if not table.is_file():
            continue
        record = _said(certificate)
        if unsaid := inputs.keys() - record["inputs"].keys():
            lines.append(f"{name}: its certificate doesn't say which {', '.join(sorted(unsaid))} it was made with")
            continue
        made = Made(kind=name, name=name, folder=table.parent, certificate=certificate, inputs=inputs)
        wrong = changed_inputs(made, record)
        for model, then in record["settings"].get("trained", {}).items():
            if expected[model]["settings_hash"] != then:
                wrong.append(f"training settings of {model}")
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
    records = [
        read_json(made.certificate)
        for made in results_of(results, seeds, expected)
        if made.certificate.name == "certificate.json"
    ]
    trainings = [
        read_json(made.folder / "training.json")
        for made in results_of(results, seeds, expected)
        if made.kind in (*MODELS, *HEADS)
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
        "stale": stale_lines(results, seeds, expected) + stale_beside(results, expected),
        "missing": [],
        "mixed": mixed_lines(records),
    }


def sweep_seconds(results: Path, seeds: list[int]) -> float:
    """Seconds of all texts that the sweeps generated."""
    import pandas as pd

    return float(sum(pd.read_csv(results / "sweep" / str(seed) / "runs.csv")["wall_s"].sum() for seed in seeds))
