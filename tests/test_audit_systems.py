"""The audit's systems: workers in processes of their own, their life cycle, the rows of a configuration, GGUF names."""

import csv
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import torch
from clone import ROOT, planned, snakemake
from small import sizes, tiny_llama, tiny_mtp
from specledger.audit import environments, matrix
from specledger.audit.evidence import White
from specledger.audit.exact import exact_cells
from specledger.audit.greedy_row import greedy_row
from specledger.audit.measure import Plan, measure
from specledger.audit.process import Worker
from specledger.audit.settings import SamplingSettings
from specledger.audit.verdicts import judge_white
from specledger.audit.workers import gguf_export, huggingface, llamacpp, ours, registry, worker
from specledger.commands.run import main
from specledger.corpus.text import Corpus, Vocabulary
from specledger.foundation.errors import UserError
from specledger.models.llama import rope_tables, rotate
from specledger.models.next_logits import next_logits
from specledger.models.storage import save_model

FAKE = Path(__file__).with_name("fake_worker.py")
ARGUMENTS = {"target": "", "draft": "", "options": {}, "threads": 1, "context": 64}


def fake(folder: Path, seconds: float = 20.0, **options) -> Worker:
    arguments = {**ARGUMENTS, "options": options}
    return Worker("fake", [sys.executable, FAKE], arguments, log=folder / "worker.log", seconds=seconds)


def alive(pid: int) -> bool:
    try:
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False


def gone(pid: int, seconds: float = 10.0) -> bool:
    until = time.monotonic() + seconds
    while alive(pid) and time.monotonic() < until:
        time.sleep(0.05)
    return not alive(pid)


# --- the protocol ---


def test_texts_come_back_with_what_the_system_tells(tmp_path):
    with fake(tmp_path, print=True) as system:
        batch = system.sample([1, 2], 25, SamplingSettings(tokens=4, seed=5))
        again = system.sample([1, 2], 25, SamplingSettings(tokens=4, seed=5))
        other = system.sample([1, 2], 25, SamplingSettings(tokens=4, seed=6))
        assert system.version == "fake 1" and system.logits([[1, 2]]).tolist() == [[1.0, 0.5, 0.5]]
    assert batch.ids.shape == (25, 4) and batch.tokens_per_forward() == 1.0 and batch.seconds > 0
    assert batch.drafted is None and batch.accepted is None
    assert (batch.ids == again.ids).all() and (batch.ids != other.ids).any()
    assert (tmp_path / "worker.log").read_text() == "a library's chatter\n"
    assert gone(system.process.pid)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"fail": True}, r"^fake: RuntimeError: top-k over an empty tensor and more \(its log is .*worker\.log\)$"),
        ({"end": True}, r"^fake: its process ended with exit code 3; its log is .*worker\.log$"),
        ({"hang": True}, r"^fake: silent for 1 s; its log is .*worker\.log$"),
        ({"lose": 2}, r"^fake: gave 19 texts where 25 were asked for; its log is .*worker\.log$"),
    ],
)
def test_what_goes_wrong_is_one_line(tmp_path, options, said):
    with (
        fake(tmp_path, seconds=1.0 if "hang" in options else 20.0, **options) as system,
        pytest.raises(UserError, match=said),
    ):
        system.sample([1], 25, SamplingSettings())
    assert gone(system.process.pid)


def test_a_worker_that_does_not_start_says_so(tmp_path):
    with pytest.raises(UserError, match=r"^fake: its process ended with exit code 2"):
        Worker("fake", [sys.executable, tmp_path / "none.py"], ARGUMENTS, log=tmp_path / "worker.log")
    assert "none.py" in (tmp_path / "worker.log").read_text()


PARENT = """
import sys, time
from pathlib import Path
from specledger.audit.process import Worker
arguments = {"target": "", "draft": "", "options": {"serve": True}, "threads": 1, "context": 64}
system = Worker("fake", [sys.executable, sys.argv[1]], arguments, log=Path(sys.argv[2]))
print(system.process.pid, system.version, flush=True)
time.sleep(600)
"""


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_no_process_outlives_the_rule(tmp_path, how):
    """The worker and the server that it started end with the process that asked for them, however that ends."""
    command = [sys.executable, "-c", PARENT, FAKE, tmp_path / "worker.log"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as parent:
        pids = list(map(int, parent.stdout.readline().split()))
        assert len(pids) == 2 and all(map(alive, pids))
        parent.send_signal(how)
    assert all(map(gone, pids))


def test_a_server_that_never_answers_is_stopped():
    address = f"http://127.0.0.1:{worker.free_port()}"
    asleep = [sys.executable, "-c", "import time; time.sleep(600)"]
    with (
        pytest.raises(TimeoutError, match="no answer within 0 s"),
        worker.server(asleep, address, 0.2),
    ):
        pass
    assert not worker.STARTED
    with (
        pytest.raises(RuntimeError, match="exit code 7 before it answered"),
        worker.server([sys.executable, "-c", "raise SystemExit(7)"], address, 20),
    ):
        pass


# --- rows of a configuration ---


def asked(**wanted) -> dict:
    return {"texts": 500, "tokens": 6, "level": 0.01, "seed": 1, "time_limit_s": 60, "systems": wanted}


def test_every_system_has_its_controls():
    for name in registry.MODULES:
        rows = matrix.rows_of(asked(**{name: "all"}))
        wanted = {"null"} if name == "vllm" else {"null", "lossy"}  # vLLM has no lossy mode on a CPU
        assert rows[0].mode == "plain" and wanted <= {row.control for row in rows}
        for row in rows:
            row.sampling(asked())


def test_rows_share_trees_where_they_sample_alike():
    rows = matrix.rows_of(asked(**{"llama.cpp": "all", "transformers": "all"}))
    trees = {(row.system, row.mode): row.tree(asked()) for row in rows}
    assert trees["llama.cpp", "plain"] == trees["transformers", "assistant"]
    # The order of the warpers differs only where there are some.
    assert trees["llama.cpp", "probabilistic_together"] != trees["transformers", "assistant_together"]
    assert matrix.family_of(rows) == 256 and matrix.family_of(rows[:1]) == 8


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        (
            {"llama.cpp": ["plain", "eagle9"]},
            r"^config audit\.systems\.llama\.cpp: eagle9 — allowed: all, or a list of p",
        ),
        ({"vllm": []}, r"config audit\.systems: names no mode of any system"),
    ],
)
def test_modes_that_are_not_there_are_refused(wanted, said):
    with pytest.raises(UserError, match=said):
        matrix.rows_of(asked(**wanted))


# --- environments ---


def test_an_environment_is_made_and_told(tmp_path, monkeypatch):
    """With uv where it is there: a stand-in of it, which makes the folder's interpreter and notes what it was asked."""
    uv = tmp_path / "bin" / "uv"
    uv.parent.mkdir()
    uv.write_text(
        f'#!/bin/sh\necho "$@" >> "{tmp_path}/asked"\n'
        f'if [ "$1" = venv ]; then mkdir -p "$4/bin"; ln -s "{sys.executable}" "$4/bin/python"; fi\n'
    )
    uv.chmod(0o755)
    monkeypatch.setenv("PATH", f"{uv.parent}{os.pathsep}{os.environ['PATH']}")
    folder, lines = tmp_path / "an env", []
    environments.make(folder, tmp_path / "pins.txt", ["torchvision"], lines.append)
    record = json.loads((folder / "installed.json").read_text())
    assert record["made_by"] == "uv" and "pip" in record["versions"]
    steps = (tmp_path / "asked").read_text()
    assert f"pip install --python {folder}/bin/python -r {tmp_path}/pins.txt" in steps
    assert "pip uninstall" in steps and "torchvision" in steps and lines[0].startswith("$ ")


def test_an_environment_that_can_not_be_made_says_why(tmp_path, monkeypatch):
    monkeypatch.setattr(environments.shutil, "which", lambda name: str(tmp_path / "uv"))
    (tmp_path / "uv").write_text('#!/bin/sh\necho "no such package: xllamacpp" >&2\nexit 1\n')
    (tmp_path / "uv").chmod(0o755)
    with pytest.raises(UserError, match=r"pins\.txt could not be installed \(no such package: xllamacpp\)"):
        environments.make(tmp_path / "env", Path("pins.txt"), [], lambda line: None)
    assert not (tmp_path / "env" / "installed.json").exists()


def test_every_system_has_its_pins():
    envs = Path(registry.__file__).parents[3] / "envs"
    for name in registry.MODULES:
        pins = registry.adapter(name).REQUIREMENTS
        lines = [] if pins is None else (envs / pins).read_text().splitlines()
        assert all(line.startswith("#") or "==" in line for line in lines) and (lines or name == "specledger")


# --- models and settings as the systems want them ---


def test_turned_rows_give_llamacpps_rope_the_same_products():
    """RoPE of neighbours on the turned rows equals RoPE of halves on ours, up to the order within a head."""
    heads, width, positions = 2, 16, 5
    generator = torch.Generator().manual_seed(3)
    q, k = (torch.randn(width, width, generator=generator) for _ in range(2))
    x = torch.randn(positions, width, generator=generator)
    cos, sin = rope_tables(width // heads, positions, 10_000.0)
    halves = [rotate((x @ w.T).view(positions, heads, -1).transpose(0, 1), cos, sin) for w in (q, k)]
    found = []
    for w in (q, k):
        y = (x @ torch.from_numpy(gguf_export.turned(w.numpy(), heads)).T).view(positions, heads, -1, 2).transpose(0, 1)
        c, s = cos[:, : width // heads // 2], sin[:, : width // heads // 2]
        found.append(torch.stack((y[..., 0] * c - y[..., 1] * s, y[..., 0] * s + y[..., 1] * c), dim=-1).flatten(2))
    scores = [a @ b.transpose(1, 2) for a, b in (halves, found)]
    assert torch.allclose(*scores, atol=1e-5)


def test_every_tensor_gets_llamacpps_name():
    names = {gguf_export.renamed(name) for name in tiny_llama(sizes(), 1).state_dict()}
    assert {"token_embd.weight", "output_norm.weight", "output.weight", "blk.1.attn_q.weight"} <= names
    assert not any(word in name for name in names for word in ("model", "proj", "layernorm"))
    texts = gguf_export.token_texts(500)
    assert len(set(texts)) == 500


def test_a_warper_that_is_left_out_is_switched_off():
    bare = {"tokens": 6, "temperature": 1.0}
    sent = llamacpp.request([1, 2], bare)
    assert (sent["top_k"], sent["top_p"], sent["min_p"], sent["repeat_penalty"]) == (0, 1.0, 0.0, 1.0)
    assert sent["ignore_eos"] and sent["n_predict"] == 6 and sent["repeat_last_n"] == 8
    assert huggingface.generation(bare)["top_k"] == 0 and "top_p" not in huggingface.generation(bare)
    greedy = huggingface.generation({**bare, "temperature": 0, "repetition_penalty": 1.3})
    assert greedy["do_sample"] is False and greedy["repetition_penalty"] == 1.3


# --- ours and transformers, with tiny models of random weights ---


@pytest.fixture(scope="module")
def models(tmp_path_factory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("models")
    target, draft = sizes(7, context=64), sizes(7, context=64, layers=1, width=8)
    save_model(folder / "target", tiny_llama(target, 1), tiny_mtp(target, 2))
    save_model(folder / "draft", tiny_llama(draft, 3))
    return folder / "target", folder / "draft"


class Inside:
    """A system of this process behind the same interface as a worker: what its parts add up to."""

    _ask, sample = None, Worker.sample

    def __init__(self, module, mode: str, models):
        arguments = {**ARGUMENTS, "target": str(models[0]), "draft": str(models[1]), "context": 32}
        self.name, self.log = module.NAME, None
        self.system = module.System(**{**arguments, "options": module.MODES[mode].get("options", {})})
        self.version = self.system.version

    def _ask(self, op: str, **request) -> list[dict]:
        return json.loads(json.dumps(list(worker.answer(self.system, {"op": op, **request}))))


def judged(module, modes: list[str], models, texts: int) -> dict[str, str]:
    rows = []
    for mode in modes:
        said = module.MODES[mode]
        settings = SamplingSettings(**said.get("settings", {}), seed=2)
        logits = [next_logits(folder, 1) for folder in models]
        tree = exact_cells(logits[0], [1, 2, 3], settings, draft_logits=logits[1], order=module.ORDER)
        plan = Plan(texts=texts, family=4 * len(modes))
        rows.append(measure([Inside(module, mode, models)], White(tree), [1, 2, 3], settings, plan, mode=mode))
    return {one.row.mode: one for one in judge_white(rows)}


def test_greedy_texts_are_compared_prompt_by_prompt(models):
    tokens = np.random.default_rng(1).integers(7, size=400)
    corpus = Corpus(vocabulary=Vocabulary(symbols=tuple("abcdefg")), train=tokens, validation=tokens, prompt=tokens[:3])
    logits, settings = next_logits(models[0], 1), SamplingSettings(temperature=0)
    rows = [
        greedy_row(Inside(ours, mode, models), logits, corpus, settings, {"mode": mode, "control": ""})
        for mode in ("draft_greedy", "draft_kept")
    ]
    right, wrong = judge_white(rows)
    assert right.verdict == "kept" and not right.row.greedy.faults and right.row.tokens_per_forward > 1
    assert wrong.verdict == "departs" and wrong.row.greedy.faults > 30
    assert wrong.row.greedy.partings[0].margin > 1e-3 and wrong.row.greedy.partings[0].kind == "fault"


def test_our_own_decoder_is_kept(models):
    found = judged(ours, ["plain", "draft"], models, 150)
    assert {one.verdict for one in found.values()} == {"kept"}
    assert found["plain"].row.tokens_per_forward == 1 < found["draft"].row.tokens_per_forward
    assert 0 < found["draft"].row.acceptance < 1 and found["plain"].row.acceptance is None


def test_the_stages_end_in_a_table_and_a_page(models, tmp_path, capsys):
    """Exact distribution, a row in a worker of its own, the table: as the rules call them, with our lossy control."""
    text = "abc de\n" * 40
    (tmp_path / "text.txt").write_text(text)
    symbols = sorted(set(text))
    record = {"vocabulary": symbols, "train_characters": 200, "prompt": None}
    (tmp_path / "corpus.json").write_text(json.dumps(record))
    audit = asked(specledger=["draft_kept"]) | {"texts": 120}
    (row,) = matrix.rows_of(audit)
    shared = {"start": "abc", "threads": 1, "prompt": row.prompt, "order": row.order}
    sampling = row.sampling(audit).named()
    about = {key: value for key, value in vars(row).items() if key != "settings"}
    of_row = {"row": about, "sampling": sampling, "context": 32, "family": 4, "texts": 120, "level": 0.01}

    def stage(name: str, settings: dict, *arguments) -> None:
        command = [f"audit-{name}", "--settings", json.dumps(settings), "--log", str(tmp_path / f"{name}.log")]
        assert main([*command, *map(str, arguments)]) == 0, capsys.readouterr().err

    corpus = ("--text", tmp_path / "text.txt", "--record", tmp_path / "corpus.json")
    files = [[folder / "config.json", folder / "model.safetensors"] for folder in models]
    served = ("--target", *files[0], "--draft", *files[1])
    stage("exact", {**shared, "sampling": sampling}, *corpus, *served, "--output", tmp_path / "tree")
    output = ("--tree", tmp_path / "tree", "--output", tmp_path / "row.json")
    stage("row", {**shared, **of_row, "time_limit_s": 60}, *corpus, *served, *output)
    settings = {**shared, "study": "tiny", "target": "mtp-1", "level": 0.01, "config": "my audit.yaml"}
    output = ("--page", tmp_path / "audit.html", "--output", tmp_path / "audit.csv")
    stage("table", settings, "--rows", tmp_path / "row.json", *corpus[2:], *output)
    with (tmp_path / "audit.csv").open(newline="") as lines:
        rows = list(csv.DictReader(lines))
    assert {line["verdict"] for line in rows} == {"departs"} == {line["expected"] for line in rows}
    assert len(rows) == matrix.TESTS and rows[0]["system"] == "specledger" and rows[0]["control"] == "lossy"
    page = (tmp_path / "audit.html").read_text(encoding="utf-8")
    assert (
        "draft_kept" in page and "<td>too often</td>" in page and "0 audited rows" in page and "1 of 1 controls" in page
    )
    assert f"snakemake --cores 1 --configfile &#39;my audit.yaml&#39; --force {tmp_path / 'row.json'}" in page


def test_the_workflow_plans_what_the_configuration_names(tmp_path):
    config = tmp_path / "audit.yaml"
    config.write_text(json.dumps({"base": "quick", "audit": asked(**{"llama.cpp": ["plain", "draft"]})}))
    done = snakemake(ROOT, "-n", "--directory", tmp_path, "--configfile", config, corpus=None)
    jobs = planned(done)
    assert (jobs["audit_environment"], jobs["audit_gguf"], jobs["audit_exact"], jobs["audit_row"]) == (1, 2, 1, 2)
    assert jobs["train"] == 2 and "sweep_of_seed" not in jobs


def test_transformers_is_asked_as_its_modes_say(models):
    pytest.importorskip("transformers")
    found = judged(huggingface, ["plain", "assistant", "ensemble"], models, 150)
    assert found["plain"].verdict == found["assistant"].verdict == "kept"
    assert found["ensemble"].verdict == "departs"
    assert found["plain"].row.tokens_per_forward == 1 < found["assistant"].row.tokens_per_forward
