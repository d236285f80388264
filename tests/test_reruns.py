"""What an edit runs again: the tables of config/README.md, read and held against Snakemake's own plan."""

import fnmatch
import hashlib
import os
import re
import shutil
from collections import defaultdict

import pytest
import yaml
from clone import HEAD_DRAFTERS, PLANNED, TREE_DRAFTERS, merged
from planning import Planned
from reruns import (
    EDITS,
    FOLLOWS,
    HEADS,
    KEYS,
    MEASURED,
    MODELS,
    ONE_VALUE,
    OTHER,
    REPORT,
    STUDY,
    jobs_of,
    kinds,
    leaves,
    row_of,
    with_what_follows,
)
from small import play
from specledger.foundation import fingerprint, stages
from test_fingerprint import STAGES, rewritten

PACKAGE = "workflow/specledger"
OF_ALL = [stage for stage in STAGES if stage != "compare"]  # of a study


@pytest.fixture(scope="module")
def study(planned_study, tmp_path_factory):
    made = planned_study.copy(tmp_path_factory.mktemp("a study"))
    assert made.jobs() == {}
    return made


@pytest.fixture
def edit(study):
    """Change files of the checkout; they are put back afterwards, times included."""
    kept = []

    def replace(name, change) -> None:
        path = study.checkout / name
        kept.append((path, path.read_bytes(), path.stat()))
        path.write_text(change(path.read_text(encoding="utf-8")), encoding="utf-8")

    yield replace
    for path, content, stat in kept:
        path.write_bytes(content)
        os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))


def changed(study, changes: dict):
    """A configuration with `changes` laid over that of the study."""
    return study.written("edited.yaml", changes)


def more(text: str) -> str:
    return text + "\n\nADDED = 1\n"


# --- each key ---


def test_each_key_has_a_row_and_an_edit():
    keys = leaves(STUDY)
    assert set(EDITS) | ONE_VALUE == set(keys)
    for key in keys:
        row_of(key)
    for pattern in KEYS:
        assert any(fnmatch.fnmatch(key, pattern) for key in keys), f"config/README.md explains {pattern}, no key"
    for cell in (*map(row_of, keys), *OTHER.values()):
        assert kinds(cell) <= {"corpus", *FOLLOWS, *REPORT}, cell


def edit_of(key: str, corpus=None) -> dict:
    value = EDITS[key]
    if key == "corpus.sha256":
        value = hashlib.sha256(corpus.read_bytes()).hexdigest() if corpus else "0" * 64
    for part in reversed(key.split(".")):
        value = {part: value}
    return value


def slices(config: dict) -> dict[str, str]:
    """The settings of everything that a rule makes, as the rules ask for them."""
    named = {"tables": "analysis", "page": "report", "paper": "report"}
    found = {name: stages.stage_settings(config, "train", model=name, corpus_identity="sum") for name in MODELS}
    found |= {name: stages.stage_settings(config, "head", model=name, corpus_identity="sum") for name in HEADS}
    others = {"corpus", "ngram", *MEASURED, "tables", "figures", *REPORT}
    return found | {
        name: stages.stage_settings(config, named.get(name, name), corpus_identity="sum") for name in others
    }


@pytest.mark.parametrize("key", [key for key in EDITS if key not in ("seeds", "study")])  # those name other files
def test_an_edit_of_a_key_changes_the_settings_that_its_row_names(key):
    before, config = slices(merged(STUDY, PLANNED)), merged(merged(STUDY, PLANNED), edit_of(key))
    differ = {name for name, settings in slices(config).items() if settings != before[name]}
    assert with_what_follows(differ) == with_what_follows(kinds(row_of(key)) | set(REPORT))


PLANNED_ANYWAY = ("study", "model.context", "training.draft.steps", "sampling.temperature", "sweep.gammas.eagle")


@pytest.mark.parametrize(
    "key",
    [pytest.param(key, marks=() if key in PLANNED_ANYWAY else pytest.mark.slow) for key in EDITS if key != "seeds"],
)
def test_an_edit_of_a_key_runs_exactly_what_its_row_says(key, study):
    config = changed(study, edit_of(key, study.corpus))
    assert set(study.jobs(config=config)) == jobs_of(row_of(key), follows=REPORT)


# --- other edits: one function for each row of the second table, which returns what Snakemake would run ---


def of_words_in_a_configuration(study, edit):
    turned = {key: PLANNED[key] for key in reversed(PLANNED)}
    text = yaml.safe_dump({**turned, "sampling": {"temperature": 1}}, sort_keys=False)
    config = study.checkout / "edited.yaml"
    config.write_text("# a comment\n" + text.replace("study: tiny", "study: 'tiny'"))
    edit("config/config.yaml", lambda text: "# a comment\n" + text)
    return study.jobs(config=config)


def of_words_in_the_code(study, edit):
    for path in (study.checkout / PACKAGE).rglob("*.py"):
        edit(path, rewritten)
    for path in (study.checkout / "workflow" / "rules").glob("*.smk"):
        edit(path, lambda text: "# a comment\n" + text)
    return study.jobs()


def of_words_in_the_claims(study, edit):
    edit("config/claims.yaml", lambda text: "# a comment\n" + yaml.safe_dump(yaml.safe_load(text), width=60))
    return study.jobs()


def of_cores(study, _edit):
    return {**study.jobs(cores=1), **study.jobs(cores=7)}


def of_touch(study, _edit):
    for path in study.checkout.rglob("*"):
        if path.is_file() and ".snakemake" not in path.parts:
            os.utime(path)
    return study.jobs()


def moved_text(study, text: str):
    path = study.corpus.with_name("moved.txt")
    path.write_text(text, encoding="utf-8")
    return study.jobs(corpus=path)


def of_the_place_of_the_text(study, _edit):
    return moved_text(study, study.corpus.read_text(encoding="utf-8"))


def of_another_text(study, _edit):
    return moved_text(study, play(20_001))


def of_a_clone(study, _edit):
    """Files copied without their times, in any order."""
    folder = study.checkout.parent / "another clone"
    shutil.copytree(study.checkout, folder, copy_function=shutil.copyfile)
    return Planned(folder, study.corpus).jobs()


def copied_alone(study, name: str) -> Planned:
    """Another clone with the results, and nothing of Snakemake's."""
    folder = study.checkout.parent / name
    ignored = shutil.ignore_patterns(".snakemake")
    shutil.copytree(study.checkout, folder, copy_function=shutil.copyfile, ignore=ignored)
    return Planned(folder, study.corpus)


def of_copied_results(study, _edit):
    return copied_alone(study, "copied").jobs()


def of_copied_results_and_an_edit(study, _edit):
    copied = copied_alone(study, "copied and edited")
    return copied.jobs(config=changed(copied, {"training": {"draft": {"steps": 13}}}))


def of_copied_results_and_another_text(study, _edit):
    return moved_text(copied_alone(study, "copied beside another text"), play(20_002))


def of_a_swap(study, _edit):
    target = PLANNED["training"]["target"]
    swapped = {"batch": target["warmup_steps"], "warmup_steps": target["batch"]}
    return study.jobs(config=changed(study, {"training": {"target": swapped}}))


def of_compiled(study, _edit):
    """The small study has no such engine: it is put in, which runs what leaving it out does, and makes the kernels."""
    found = study.jobs(config=changed(study, {"sweep": {"engines": STUDY["sweep"]["engines"]}}))
    return set(found) - {("kernels", None, None)}


def of_a_sweep(**changes):
    return lambda study, _edit: study.jobs(config=changed(study, {"sweep": changes}))


def of_a_first_head(study, _edit):
    """A finished study that has neither heads nor trees, and then a drafter that needs two heads."""
    none = {"gammas": {name: [] for name in HEAD_DRAFTERS}, "trees": {name: [] for name in TREE_DRAFTERS}}
    without = Planned.in_folder(study.checkout.parent / "without heads")
    without.config = without.written("without.yaml", {"sweep": none})
    without.finish()
    assert without.jobs() == {} and not {"head", "trees"} & {rule for rule, _ in without.params}
    none["trees"]["medusa2"] = [4]
    return without.jobs(config=without.written("with.yaml", {"sweep": none}))


def of_seeds(*seeds):
    return lambda study, _edit: study.jobs(config=changed(study, {"seeds": list(seeds)}))


def of_a_rule_of_a_claim(study, edit):
    edit("config/claims.yaml", lambda text: text.replace("0.05", "0.06").replace("rule:", "rule:  "))
    return study.jobs()


def of_files(*names, change=more):
    def run(study, edit):
        for name in names:
            edit(name, change)
        return study.jobs()

    return run


def of_templates(*endings):
    def run(study, edit):
        for path in sorted((study.checkout / "workflow" / "report").rglob("*")):
            if path.suffix in endings:
                edit(path, lambda text: text + "\n")
        return study.jobs()

    return run


def of_another_draft_model(study, edit):
    edit(study.results / "models" / "draft" / "2" / "model.safetensors", lambda text: text + "other weights")
    return study.jobs()


def of_a_deleted_result(study, edit):
    edit(study.results / "sweep" / "2" / "runs.csv", str)
    (study.results / "sweep" / "2" / "runs.csv").unlink()
    assert set(study.jobs(forced={"page"})) == jobs_of("sweep", only=2)
    return study.jobs()


def of_promised_results(study, edit):
    """One of each kind that a reader is promised: each comes back with the job that makes it, and no training runs."""
    for promised in ("tables/ledger.csv", "figures/gap.svg", "sweep/2/certificate.json"):
        edit(study.results / promised, str)
        (study.results / promised).unlink()
    page = study.checkout / "report" / "tiny" / "report.pdf"
    edit(page, str)
    page.unlink()
    return study.jobs()


ROWS = {
    "a comment, another order of keys": (of_words_in_a_configuration, {}),
    "a comment, a docstring": (of_words_in_the_code, {}),
    "a comment or another format in claims.yaml": (of_words_in_the_claims, {}),
    "another number of cores": (of_cores, {}),
    "`touch`": (of_touch, {}),
    "the same text": (of_the_place_of_the_text, {}),
    "a clone with results and `.snakemake`": (of_a_clone, {}),
    "results copied into a clone": (of_copied_results, {}),
    "the same, and then an edit": (of_copied_results_and_an_edit, {"follows": REPORT}),
    "the same, and another text": (of_copied_results_and_another_text, {}),
    "two values that change places": (of_a_swap, {"follows": REPORT}),
    "the engine compiled": (of_compiled, {"follows": REPORT}),
    "the trees of one drafter": (of_a_sweep(trees={"draft": []}), {"follows": REPORT}),
    "all trees left out": (of_a_sweep(trees={name: [] for name in TREE_DRAFTERS}), {"follows": REPORT}),
    "chains of a head": (of_a_sweep(gammas={"medusa1": []}), {"follows": REPORT}),
    "a head left out": (of_a_sweep(gammas={"eagle": []}, trees={"eagle": []}), {"follows": REPORT}),
    "a head used": (of_a_first_head, {"follows": REPORT}),
    "a seed added": (of_seeds(1, 2, 3), {"seeds": (1, 2, 3), "only": 3}),
    "the last seed removed": (of_seeds(1), {}),
    "another first seed": (of_seeds(2, 1), {"seeds": (2, 1)}),
    "another text": (of_another_text, {}),
    "the rule of a claim": (of_a_rule_of_a_claim, {}),
    "page.css": (of_templates(".css", ".js", ".j2"), {}),
    "report.typ": (of_templates(".typ"), {}),
    "text/en/page.toml": (of_files("workflow/report/text/en/page.toml", change="{}\n".format), {}),
    "text/en/figures.toml": (of_files("workflow/report/text/en/figures.toml", change="{}\n".format), {}),
    "a caption": (of_templates(".rst"), {}),
    "logic of errors.py": (
        of_files(
            *(f"{PACKAGE}/foundation/{name}" for name in ("errors.py", "progress.py")), f"{PACKAGE}/commands/run.py"
        ),
        {},
    ),
    "logic of training/loop.py": (of_files(f"{PACKAGE}/training/loop.py"), {}),
    "logic of experiments/shapes.py": (of_files(f"{PACKAGE}/experiments/shapes.py"), {}),
    "logic of sampling": (of_files(f"{PACKAGE}/sampling/verify.py"), {}),
    "logic of experiments/forward_costs.py": (of_files(f"{PACKAGE}/experiments/forward_costs.py"), {}),
    "logic of analysis": (of_files(f"{PACKAGE}/analysis/ledger.py"), {}),
    "logic of reporting": (of_files(f"{PACKAGE}/reporting/ledger/figure.py"), {}),
    "the weights of one draft model": (of_another_draft_model, {"only": 2}),
    "one result deleted": (of_a_deleted_result, {}),
    "what a reader is promised deleted": (of_promised_results, {"only": 2}),
}


def test_each_other_edit_has_a_function():
    for name in OTHER:
        assert [row for row in ROWS if name.startswith(row)] != [], f"config/README.md: nothing tries {name!r}"
    assert len(OTHER) == len(ROWS) and len(KEYS) + len(OTHER) >= 25


ROWS_ANYWAY = (
    "a comment, a docstring",
    "`touch`",
    "results copied into a clone",
    "a seed added",
    "one result deleted",
    "what a reader",
)


@pytest.mark.parametrize(
    "row", [pytest.param(row, marks=() if row in ROWS_ANYWAY else pytest.mark.slow) for row in ROWS]
)
def test_an_edit_runs_exactly_what_its_row_says(row, study, edit):
    (cell,) = [cell for name, cell in OTHER.items() if name.startswith(row)]
    find, named = ROWS[row]
    assert set(find(study, edit)) == jobs_of(cell, **named)


# --- every module of the package ---


def loads() -> dict[str, set[str]]:
    """The stages of `all` that reach each module; test_fingerprint.py compares with what Python itself loads."""
    found = defaultdict(set)
    for stage in OF_ALL:
        for name in fingerprint.modules_of(fingerprint.entry_of(stage)):
            found[name].add(stage)
    return found


@pytest.mark.parametrize("row", [row for row in OTHER if row.startswith("logic of")])
def test_logic_changes_the_fingerprints_that_its_row_names(row, study, edit, monkeypatch):
    """What the plans of these rows rest on; every one is planned in `make test-all`."""
    monkeypatch.setattr(fingerprint, "PACKAGE", study.checkout / PACKAGE)
    named = {"train": "models", "train-head": "heads"}

    def hashes() -> dict[str, str]:
        return {stage: fingerprint.code_hash(stage) for stage in OF_ALL}

    before = hashes()
    for name in re.findall(r"[\w/]+\.py", row):
        found = [path for path in (study.checkout / PACKAGE).rglob("*.py") if str(path).endswith(f"/{name}")]
        assert len(found) == 1, name
        edit(found[0], more)
    differ = [stage for stage, value in hashes().items() if value != before[stage]]
    cell = ", ".join(named.get(stage, stage) for stage in differ) or "nothing"
    assert jobs_of(cell) == jobs_of(OTHER[row])


@pytest.mark.slow
def test_a_change_in_each_module_runs_the_stages_that_load_it(study):
    """Modules that the same stages load are changed together: a plan for each such set, not for each module."""
    together, reached = defaultdict(list), loads()
    for path in sorted((study.checkout / PACKAGE).rglob("*.py")):
        name = ".".join(path.relative_to(study.checkout / "workflow").with_suffix("").parts)
        if path.parent.name == "drafters":  # of which a stage loads only what it needs: test_fingerprint.py
            continue
        if path.name != "__init__.py" and name.removeprefix("specledger.") not in fingerprint.SPEAKING:
            together[frozenset(reached.get(name, ()))].append(path)
    assert sum(map(len, together.values())) > 90
    for loading, paths in together.items():
        kept = {path: path.read_bytes() for path in paths}
        for path in paths:
            path.write_text(more(path.read_text(encoding="utf-8")), encoding="utf-8")
        named = {"train": "models", "train-head": "heads"}
        planned = loading - {"kernels"}  # of the engine compiled, which the small study lacks
        cell = ", ".join(named.get(stage, stage) for stage in sorted(planned)) or "nothing"
        found = set(study.jobs())
        for path, content in kept.items():
            path.write_bytes(content)
        assert found == jobs_of(cell), [path.name for path in paths]
