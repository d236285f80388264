"""`specledger audit --system FILE`, the command's start-up and installation, and its page in a browser."""

import json
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from specledger.audit.page import number, p_text, visible
from specledger.commands.run import main
from specledger.foundation.pages import template_file

ROOT = Path(__file__).parents[1]

DECODER = """
import numpy as np
from specledger.audit.standin import TinyDecoder, TinyModel

NAME, VERSION, WARPERS = "mine", "3", "transformers"
MODEL = TinyModel.made(0)
{logits}

def encode(text):
    return MODEL.ids(text)


def decode(ids):
    return MODEL.text(ids)


def sample(prompt_ids, count, settings):
    return TinyDecoder(MODEL, fault={fault!r}).sample(prompt_ids, count, settings).ids
"""
EXACT = "next_logits, draft_logits = MODEL.next_logits, MODEL.draft_logits"
BASELINE = "baseline = TinyDecoder(MODEL, gamma=0).sample"


def written(tmp_path, text):
    path = tmp_path / "mine.py"
    path.write_text(text, encoding="utf-8")
    return path


def audit(path, tmp_path, *more):
    out = ["--out", str(tmp_path / "out")]
    return main(["audit", "--system", str(path), "--texts", "1500", *out, *(more or ["--prompt-ids", "0,0"])])


def said(capsys):
    (line,) = [line for line in capsys.readouterr().err.splitlines() if line.startswith("specledger audit:")]
    return line


@pytest.mark.parametrize("logits", [EXACT, BASELINE])
@pytest.mark.parametrize("fault", [None, "always"])
def test_a_decoder_of_one_s_own(tmp_path, logits, fault):
    path = written(tmp_path, DECODER.format(logits=logits, fault=fault))
    assert audit(path, tmp_path, "--prompt", "the", "--top-p", "0.9") == (1 if fault else 0)
    (row,) = json.loads((tmp_path / "out" / "audit.json").read_text(encoding="utf-8"))["rows"]
    assert (row["system"], row["version"], row["box"]) == ("mine", "3", "white" if logits == EXACT else "black")
    assert {"token 1", "tokens 1-2", "tokens 3-4", "tokens 1-4"} <= {one["test"] for one in row["first"]}
    page = (tmp_path / "out" / "index.html").read_text(encoding="utf-8")
    assert ("<td>too often</td>" in page) == ("<td>too seldom</td>" in page) == bool(
        fault
    ) and f"--system {path}" in page


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("def sample(p, n, s): return 1 / 0\nnext_logits = print", "sample() fails: ZeroDivisionError"),
        ("x = 1", "it has no sample(prompt_ids, count, settings)"),
        ("def sample(p, n, s): pass", "next_logits(ids[N, T]) -> [N, V] or baseline"),
        ("import nothing_like_this", "ModuleNotFoundError: No module named 'nothing_like_this'"),
        ("def (", "SyntaxError"),
        ("def sample(p, n, s): return [[1] * 6, [1]]\nbaseline = sample", "rows of unequal length; fill with -1"),
        (
            "def sample(p, n, s): return [[1] * 2] * n\nbaseline = sample",
            "must give ids of shape (188, 6), got (188, 2)",
        ),
        ("def sample(p, n, s): return [[1.5] * 6] * n\nbaseline = sample", "must give whole numbers"),
    ],
)
def test_a_file_that_is_wrong_is_one_line(tmp_path, capsys, text, message):
    if "next_logits = print" in text:
        text = text.replace(
            "next_logits = print", "import numpy as np\nnext_logits = lambda ids: np.zeros((len(ids), 9))"
        )
    assert audit(written(tmp_path, text), tmp_path) == 3
    assert message in said(capsys)


def test_a_file_that_is_not_there(tmp_path, capsys):
    assert audit(tmp_path / "nowhere.py", tmp_path) == 3
    assert "nowhere.py: no such file" in said(capsys)
    path = written(tmp_path, DECODER.format(logits=BASELINE, fault=None))
    assert main(["audit", "--system", str(path), "--out", str(tmp_path)]) == 3
    assert "name prompts" in said(capsys)


def test_a_wanted_distance_that_is_not_reached_is_undecided(tmp_path, capsys):
    path = written(tmp_path, DECODER.format(logits=EXACT, fault=None))
    assert audit(path, tmp_path, "--prompt-ids", "0,0", "--tv", "0.02") == 2
    out = capsys.readouterr().out
    assert "0.02 was wanted: about " in out
    assert audit(path, tmp_path, "--prompt-ids", "0,0", "--tv", "0.3") == 0


# ---- the command


def python(*arguments):
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, check=True)


def test_help_starts_without_anything_heavy():
    """What takes time at the start is imports: `--help` has none but the standard library's and tqdm's."""
    done = python("-X", "importtime", "-m", "specledger", "audit", "--help")
    assert "exit code: 0 kept, 1 departs, 2 undecided" in done.stdout
    lines = [line for line in done.stderr.splitlines() if line.startswith("import time:")]
    loaded = {line.rpartition("|")[2].strip().partition(".")[0] for line in lines}
    assert not loaded & {"torch", "snakemake", "numpy", "scipy", "pandas", "matplotlib", "jinja2", "yaml"}
    spent = sum(
        int(line.split(":")[1].split("|")[0]) for line in lines if line.split(":")[1].split("|")[0].strip().isdigit()
    )
    assert spent < 1_000_000  # microseconds, on a machine that may be busy


def test_the_audit_needs_the_base_install_alone():
    """Importing all of it loads no package but those of the base install and what these bring with them."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    names = {part.partition(">")[0].partition("=")[0] for part in project["dependencies"]}
    assert names == {"jinja2", "numpy", "pyyaml", "scipy", "tqdm"}
    assert {"torch==2.13.0", "snakemake>=9.20,<10"} <= set(project["optional-dependencies"]["study"])
    assert project["scripts"]["specledger"] == "specledger.__main__:console"
    modules = sorted((ROOT / "workflow" / "specledger" / "audit").rglob("*.py"))
    dotted = [".".join(path.relative_to(ROOT / "workflow").with_suffix("").parts) for path in modules]
    dotted = [name.removesuffix(".__init__") for name in dotted]
    done = python("-c", f"import sys, jinja2, yaml, {', '.join(dotted)}\nprint(*sys.modules)")
    loaded = {name.partition(".")[0] for name in done.stdout.split()}
    study = {part.partition(">")[0].partition("=")[0] for part in project["optional-dependencies"]["study"]}
    assert "specledger" in loaded and not loaded & study


def test_a_stage_without_its_extra_says_what_to_install(monkeypatch, capsys):
    from specledger.commands import run

    def missing(name):
        raise ModuleNotFoundError("No module named 'torch'", name="torch")

    monkeypatch.setattr(run.importlib, "import_module", missing)
    assert main(["train"]) == 1
    assert "pip install 'specledger[study]'" in capsys.readouterr().err


# ---- the page


def test_numbers_of_the_page():
    assert [number(value) for value in (None, float("nan"), 0, 0.1234, 12345.6)] == ["–", "–", "0", "0.12", "12,346"]
    assert number(4.2e-7) == "4.2·10<sup>−7</sup>" and p_text(1e-30) == "&lt; 10<sup>−12</sup>"
    assert visible(" a\n") == "␣a↵" and visible("") == "∅"
    assert template_file("audit.html.j2").is_file()


def test_a_prompt_is_no_markup(tmp_path):
    path = written(tmp_path, DECODER.format(logits=EXACT, fault="always"))
    assert audit(path, tmp_path, "--prompt", "<script>alert(1)</script>") == 1
    page = (tmp_path / "out" / "index.html").read_text(encoding="utf-8")
    assert "<script" not in page


@pytest.mark.browser
def test_the_page_in_a_browser(tmp_path, browser):
    """Offline, without a request or a word on the console, no wider than a phone, and free of axe's complaints."""
    from axe_playwright_python.sync_playwright import Axe
    from browsing import Visits

    path = written(tmp_path, DECODER.format(logits=EXACT, fault="always"))
    assert audit(path, tmp_path) == 1
    visits = Visits(browser)
    for options in ({"viewport": {"width": 390, "height": 800}, "color_scheme": "dark"}, {"color_scheme": "light"}):
        tab = visits.open(tmp_path / "out" / "index.html", **options)
        assert "departs" in tab.locator("h1").inner_text()
        assert tab.evaluate("document.documentElement.scrollWidth") <= tab.viewport_size["width"]
        found = Axe().run(tab).response["violations"]
        assert not found, [(one["id"], [node["target"] for node in one["nodes"]]) for one in found]
    assert visits.faults == []


@pytest.mark.slow
def test_installed_alone_it_audits_and_brings_nothing_heavy(tmp_path):
    """`pip install .` in an environment of its own; its command audits a server that it serves itself."""
    source, home = tmp_path / "source", tmp_path / "home"
    ignored = shutil.ignore_patterns(".venv", ".git", "results", "report", ".snakemake", "*.egg-info", "build")
    (source / "workflow").mkdir(parents=True)
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source / name)
    shutil.copytree(ROOT / "workflow" / "specledger", source / "workflow" / "specledger", ignore=ignored)
    shutil.copytree(ROOT / "workflow" / "report", source / "workflow" / "report")
    python("-m", "venv", str(home))
    pip = [str(home / "bin" / "python"), "-m", "pip", "--disable-pip-version-check"]
    done = subprocess.run([*pip, "install", "--quiet", str(source)], capture_output=True, text=True)
    if done.returncode and "No matching distribution" in done.stderr:
        pytest.skip("no package index within reach")
    assert done.returncode == 0, done.stderr
    listed = subprocess.run([*pip, "list", "--format=json"], capture_output=True, text=True, check=True)
    assert not {one["name"].lower() for one in json.loads(listed.stdout)} & {
        "torch",
        "snakemake",
        "pandas",
        "matplotlib",
    }
    command = [str(home / "bin" / "specledger"), "audit", "--system", "mine.py", "--prompt-ids", "0,0"]
    written(tmp_path, DECODER.format(logits=EXACT, fault="always"))
    done = subprocess.run([*command, "--texts", "800"], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 1, done.stderr
    assert "<style>" in (tmp_path / "specledger-audit" / "index.html").read_text(encoding="utf-8")
