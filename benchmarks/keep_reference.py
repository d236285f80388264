"""Keep a finished study as the reference: its tables, certificates, small raw files and reports, and what README says.

`make keep-reference STUDY=study` copies into results/reference/ and report/reference/ what a reader needs, makes page
and paper in English and in Chinese, and fills the parts of README.md between markers from the kept files.
"""

import argparse
import json
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import yaml
from specledger.foundation.errors import UserError
from specledger.foundation.records import read_rows, sum_of, write_json, write_text

ROOT = Path(__file__).resolve().parents[1]
LARGEST, MOST = 400_000, 20_000_000  # bytes of a raw file, and of all that is kept
ASIDE = {"logs", "benchmarks", "checkpoints", "figures", "compare", "peers", "audit"}
LANGUAGES = {"en": "", "zh": ".zh"}
# The rows of README's table: engine, drafter, gamma.
SHOWN = (
    ("cached", "draft", 3), ("cached", "mtp", 1), ("cached", "ngram", 8), ("cached", "eagle_tree", 8),
    ("cached", "medusa1_typical", 16), ("compiled", "draft", 3), ("compiled", "ngram", 8),
)  # fmt: skip
HEADS = "engine|drafter|γ|lossless|α|tokens per round|eq. (1)|c|v|Theorem 3.8|measured cost|speed-up|seconds".split("|")
PICTURE = "first-screen.png"


def chosen(results: Path) -> tuple[list[Path], list[Path]]:
    """The files of a study that are kept, and the raw ones that are too large; weights and the text are neither."""
    kept, large = [], []
    for path in sorted(results.rglob("*")):
        inside = path.relative_to(results)
        if not path.is_file() or inside.parts[0] in ASIDE or path.suffix not in (".csv", ".json"):
            continue
        needed = inside.parts[0] == "tables" or path.name == "certificate.json"
        (kept if needed or path.stat().st_size <= LARGEST else large).append(path)
    return kept, large


def check(results: Path) -> None:
    """UserError unless the study is there with its tables and certificates."""
    if not (results / "tables" / "summary.json").is_file():
        raise UserError(f"{results}: no finished study; run snakemake to its end, then keep it")
    if not list(results.glob("*/*/*/certificate.json")):
        raise UserError(f"{results}: holds no certificates; what can't say how it was made is no reference")


def keep(results: Path, reports: list[Path], results_to: Path, report_to: Path) -> list[Path]:
    """Copy what is kept in place of what was kept before; returns the raw files that were too large.

    Args:
        reports: files for `report_to`, under the names that they have there.
    """
    check(results)
    kept, large = chosen(results)
    total = sum(path.stat().st_size for path in [*kept, *reports])
    if total > MOST:
        largest = sorted(kept, key=lambda path: -path.stat().st_size)[:3]
        named = ", ".join(f"{path.relative_to(results)} {path.stat().st_size / 1e6:.1f} MB" for path in largest)
        raise UserError(f"{results}: {total / 1e6:.1f} MB to keep, allowed are {MOST / 1e6:g} (largest: {named})")
    for folder in (results_to, report_to):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
    for path in kept:
        to = results_to / path.relative_to(results)
        to.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, to)
    for path in reports:
        shutil.copyfile(path, report_to / path.name)
    write_json(results_to / "left_out.json", [str(path.relative_to(results)) for path in large])
    return large


# --- README ---


def _cell(text: str, form: str) -> str:
    return format(float(text), form) if text else "–"


def _speedup(row: dict[str, str]) -> str:
    ends = " [" + ", ".join(_cell(row[f"speedup_{end}"], ".2f") for end in ("lo", "hi")) + "]"
    return _cell(row["speedup"], ".2f") + (ends if row["speedup_lo"] else "")


def shown(ledger: list[dict[str, str]]) -> list[dict[str, str]]:
    """README's rows of the ledger; of a study that measured none of them, its first seven with a drafter."""
    by = {(row["engine"], row["drafter"], int(row["gamma"])): row for row in ledger}
    return [by[key] for key in SHOWN if key in by] or [row for row in ledger if row["drafter"] != "none"][:7]


def table(ledger: list[dict[str, str]]) -> str:
    lines = [HEADS, ["---"] * len(HEADS)]
    for row in shown(ledger):
        numbers = {"alpha": ".3f", "tokens_per_round": ".2f", "eq1": ".2f", "c": ".3f", "v": ".2f", "theorem38": ".2f"}
        cells = [row["engine"], row["drafter"], row["gamma"], "yes" if row["lossless"] == "true" else "no"]
        cells += [_cell(row[name], form) for name, form in (numbers | {"cost_model": ".2f"}).items()]
        lines.append([*cells, _speedup(row), _cell(row["wall_s"], ".3f")])
    return "\n".join(f"  | {' | '.join(cells)} |" for cells in lines)


def sentence(reference: Path) -> str:
    """What README says above the table: seeds, machine, and the seconds of training and of decoding."""
    ledger, seeds = read_rows(reference / "tables" / "ledger.csv"), read_rows(reference / "tables" / "seeds.csv")
    count = len({row["seed"] for row in seeds})
    certificates = [json.loads(path.read_text()) for path in sorted(reference.glob("sweep/*/certificate.json"))]
    devices = ", ".join(sorted({one["device"] for one in certificates}))
    commits = ", ".join(sorted({(one["commit"] or "unknown")[:10] for one in certificates}))
    minutes = sum(float(row["train_s"]) for row in seeds) / 60
    time = f"{minutes / 60:.1f} hours" if minutes >= 90 else f"{minutes:.0f} minutes"
    return (
        f"  {len(shown(ledger))} rows of the kept study of {count} seeds (commit {commits}), measured on {devices},\n"
        f"  some columns left out; its models took {time} of training. Read the intervals first."
    )


def blocks(reference: Path, report: Path, root: Path) -> dict[str, str]:
    """The text of each marked part of README, from the kept files alone."""
    found = {
        "sentence": sentence(reference),
        "table": table(read_rows(reference / "tables" / "ledger.csv")),
    }
    if (report / PICTURE).is_file():
        place = (report / PICTURE).relative_to(root).as_posix()
        seeds = len({row["seed"] for row in read_rows(reference / "tables" / "seeds.csv")})
        found["picture"] = f"![The first screen of the kept report of {seeds} seeds]({place})"
    return found


def fill(text: str, parts: dict[str, str]) -> str:
    """README's text with each part between its markers; UserError where a marker is missing."""
    for name, part in parts.items():
        pattern = re.compile(rf"( *<!-- reference:{name} -->\n).*?(\n *<!-- /reference:{name} -->)", re.DOTALL)
        text, count = pattern.subn(lambda found, part=part: f"{found[1]}{part}{found[2]}", text)
        if count != 1:
            raise UserError(f"README.md: the markers reference:{name} must stand there once, they do {count} times")
    return text


# --- what needs Snakemake and a browser ---


def check_current(study: str, config: list[Path]) -> None:
    """UserError where Snakemake would compute anything of the study: it is unfinished, or of other settings or code."""
    with tempfile.TemporaryDirectory() as folder:
        laid = Path(folder) / "study.yaml"
        laid.write_text(yaml.safe_dump({"study": study}), encoding="utf-8")
        command = [sys.executable, "-m", "snakemake", "-n", "--cores", "1", "--configfile", *map(str, [*config, laid])]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if "Nothing to be done" not in done.stdout + done.stderr:
        again = "run snakemake to its end first; snakemake -n says what it would compute, and why"
        raise UserError(f"{study}: unfinished, or made by other settings or code than today's; {again}")


def reports_of(study: str, config: list[Path], to: Path) -> list[Path]:
    """Page and paper in each language, made by the workflow from the results as they are; then again as it was."""
    report = ROOT / "report" if study == "study" else ROOT / "report" / study
    own = yaml.safe_load((ROOT / "config" / "config.yaml").read_text(encoding="utf-8"))["report"]["language"]
    made = []
    for language in (*LANGUAGES, own):
        laid = to / f"{language}.yaml"
        laid.write_text(yaml.safe_dump({"study": study, "report": {"language": language}}), encoding="utf-8")
        command = ["snakemake", "--cores", "1", "--allowed-rules", "figures", "page", "paper", "--configfile"]
        done = subprocess.run([sys.executable, "-m", *command, *map(str, [*config, laid])], cwd=ROOT)
        if done.returncode:
            raise UserError(f"the report could not be made in {language}; its line is above")
        for name in ("index.html", "report.pdf"):
            kept = to / name.replace(".", f"{LANGUAGES[language]}.", 1)
            if kept not in made:
                shutil.copyfile(report / name, kept)
                made.append(kept)
    return made


def picture(page: Path, to: Path) -> Path | None:
    """The first screen of a page; None, with a word, where there is no browser."""
    chromium = Path("/usr/bin/chromium")
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        print("specledger: no picture: playwright is not installed", file=sys.stderr)
        return None
    with sync_playwright() as started:
        options = {"executable_path": str(chromium), "args": ["--no-sandbox"]} if chromium.exists() else {}
        browser = started.chromium.launch(**options)
        tab = browser.new_page(viewport={"width": 1280, "height": 900})
        tab.goto(page.resolve().as_uri())
        tab.screenshot(path=str(to))
        browser.close()
    return to


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("study", nargs="?", default="study")
    parser.add_argument("--configfile", type=Path, nargs="*", default=[], help="the study's, where it has one")
    options = parser.parse_args()
    results, reference = ROOT / "results" / options.study, ROOT / "results" / "reference"
    report, readme = ROOT / "report" / "reference", ROOT / "README.md"
    try:
        if options.study == "reference":
            raise UserError("reference: is what is kept; name the study that is to be kept")
        check(results)
        check_current(options.study, options.configfile)
        with tempfile.TemporaryDirectory() as folder:
            made = reports_of(options.study, options.configfile, Path(folder))
            shot = picture(Path(folder) / "index.html", Path(folder) / PICTURE)
            large = keep(results, [*made, *([shot] if shot else [])], reference, report)
        write_json(report / "sums.json", {path.name: sum_of(path) for path in sorted(report.iterdir())})
        write_text(readme, fill(readme.read_text(encoding="utf-8"), blocks(reference, report, ROOT)))
    except UserError as error:
        sys.exit(f"specledger: {error}")
    total = sum(path.stat().st_size for folder in (reference, report) for path in folder.rglob("*") if path.is_file())
    print(
        f"specledger: kept {options.study} in {reference} and {report}, {total / 1e6:.1f} MB; {len(large)} raw file(s)"
    )
    print("specledger: of more than 0.4 MB were left out (left_out.json); README.md is filled from what was kept")


if __name__ == "__main__":
    main()
