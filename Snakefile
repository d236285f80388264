# The study of specledger: corpus, models, checks, acceptance, proof, sweep, tables, figures, report.
# `snakemake --resources gpu=1` runs config/config.yaml; --configfile FILE lays another over it.
from pathlib import Path

from snakemake.utils import min_version

min_version("9.0")


configfile: Path(workflow.basedir) / "config" / "config.yaml"


include: "workflow/rules/common.smk"
include: "workflow/rules/corpus.smk"
include: "workflow/rules/models.smk"
include: "workflow/rules/trees.smk"
include: "workflow/rules/checks.smk"
include: "workflow/rules/acceptance.smk"
include: "workflow/rules/proof.smk"
include: "workflow/rules/sweep.smk"
include: "workflow/rules/analysis.smk"
include: "workflow/rules/report.smk"
include: "workflow/rules/targets.smk"


rule all:
    default_target: True
    input:
        REPORT / "index.html",
        REPORT / "report.pdf",


onstart:
    end_jobs_on_signals()
    say(word_about_time())
    show_the_run()


onsuccess:
    if (REPORT / "index.html").exists():
        say(f"the report lies in {REPORT / 'index.html'} and {REPORT / 'report.pdf'}")


onerror:
    say(how_it_ended())
