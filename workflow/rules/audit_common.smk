# What the audit's rules share: its rows, and what each of them reads.
from specledger.audit import matrix
from specledger.audit.workers import registry

AUDIT = config.get("audit")
AUDITED = RESULTS / "audit"
ENVIRONMENTS = Path(os.environ.get("SPECLEDGER_ENVIRONMENTS") or ".environments")
try:
    ROWS = {(row.system, row.mode): row for row in matrix.rows_of(AUDIT, config["model"]["context"])} if AUDIT else {}
except UserError as error:
    sys.exit(f"specledger: {error}")
TREES_OF_ROWS = {row.tree(AUDIT): row for row in ROWS.values() if row.counted}


def environment_of(system):
    """The record of a system's environment; none for ours."""
    return [] if registry.adapter(system).REQUIREMENTS is None else [ENVIRONMENTS / system / "installed.json"]


def pins(system):
    """The requirements file of a system's environment."""
    return WORKFLOW / "envs" / registry.adapter(system).REQUIREMENTS


def adapters(system):
    """The files that a system's worker runs, of which no import tells."""
    folder = Path(registry.__file__).parent
    beside = [folder / "gguf_export.py"] if system == "llama.cpp" else []
    return (folder / "worker.py", Path(registry.adapter(system).__file__), *beside)


def tree_of_row(wildcards):
    row = ROWS[wildcards.system, wildcards.mode]
    return AUDITED / "exact" / f"{row.tree(AUDIT)}.pickle" if row.counted else []


def plain_of_row(wildcards):
    """Our target's files, whose own greedy texts a greedy row is compared with."""
    files = [str(path).format(seed=SEEDS[0]) for path in model_files("mtp")]
    return files if ROWS[wildcards.system, wildcards.mode].greedy else []


def served(model, wildcards):
    """The model as the system of a row opens it: a file for llama.cpp, the folder's files for everybody else."""
    if registry.adapter(wildcards.system).MODEL == "gguf":
        return AUDITED / "gguf" / f"{model}-{SEEDS[0]}.gguf"
    return [str(path).format(seed=SEEDS[0]) for path in model_files(model)]


def audit_settings(**slice_):
    """What a stage of the audit depends on besides its files, as one string."""
    shared = {"start": config["corpus"]["prompt"], "threads": config["threads"]}
    return json.dumps({**shared, **slice_}, sort_keys=True, ensure_ascii=False)


def laid_over():
    """The configuration file of this run as a reader names it in a command."""
    return os.path.relpath(workflow.configfiles[0] if workflow.configfiles else Path("config") / "audit.yaml")


def row_settings(wildcards):
    row = ROWS[wildcards.system, wildcards.mode]
    return audit_settings(
        row={key: value for key, value in vars(row).items() if key != "settings"},
        sampling=row.sampling(AUDIT).named(),
        context=config["model"]["context"],
        family=matrix.family_of(ROWS),
        **{key: AUDIT[key] for key in ("texts", "level", "time_limit_s")},
    )


def tree_settings(wildcards):
    row = TREES_OF_ROWS[wildcards.tree]
    return audit_settings(prompt=row.prompt, sampling={**row.sampling(AUDIT).named(), "seed": 0}, order=row.order)
