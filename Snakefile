# The study of specledger: corpus, models, checks, acceptance, proof, sweep, tables, figures, report.
# `snakemake --resources gpu=1` runs config/config.yaml; --configfile FILE lays another over it.
from pathlib import Path

from snakemake.utils import min_version

min_version("9.0")


configfile: Path(workflow.basedir) / "config" / "config.yaml"


# A file that is laid over another than config.yaml names it: audit.yaml over quick.yaml.
if config.get("base"):

    configfile: Path(workflow.basedir) / "config" / f"{config['base']}.yaml"


include: "workflow/rules/common.smk"
include: "workflow/rules/corpus.smk"
include: "workflow/rules/models.smk"
include: "workflow/rules/trees.smk"
include: "workflow/rules/kernels.smk"
include: "workflow/rules/checks.smk"
include: "workflow/rules/acceptance.smk"
include: "workflow/rules/proof.smk"
include: "workflow/rules/sweep.smk"
include: "workflow/rules/analysis.smk"
include: "workflow/rules/report.smk"
include: "workflow/rules/audit_common.smk"
include: "workflow/rules/audit.smk"
include: "workflow/rules/targets.smk"
include: "workflow/rules/compare.smk"
include: "workflow/rules/pair_common.smk"
include: "workflow/rules/pair.smk"


rule all:
    default_target: True
    input:
        rules.pair_page.output if PAIR else rules.audit_table.output if AUDIT else [],
        # An audit adds its section to a report that is there, and makes none; a pair has a page of its own.
        [] if PAIR or (AUDIT and not (REPORT / "index.html").is_file()) else [rules.page.output, rules.paper.output],
        [] if AUDIT or PAIR else rules.tables.output,
        [] if AUDIT or PAIR else rules.figures.output,
        [] if AUDIT or PAIR else CERTIFICATES,


onstart:
    end_jobs_on_signals()
    say("pair of real models; minutes, told as soon as its forward passes are timed" if PAIR else word_about_time())
    show_the_run()


onsuccess:
    if made := written_since(STARTED, REPORT / "index.html", REPORT / "report.pdf"):
        say(f"the report is in {' and '.join(map(str, made))}")


onerror:
    say(how_it_ended())
