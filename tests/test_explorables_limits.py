"""Explorables of hostile, empty and large results, and of models as they are saved."""

import csv
import json
import re
from pathlib import Path

import pytest
from browsing import Visits
from specledger.drafters.mtp import MTPModule
from specledger.foundation.errors import UserError
from specledger.models.llama import Llama, LlamaConfig
from specledger.models.storage import save_model
from specledger.reporting import page
from specledger.reporting.figures import draw_all
from specledger.reporting.mtp.explorable import MODULE, SHARED, parts_of
from specledger.reporting.played import acceptance_of, read_rounds, tensor_shapes
from specledger.reporting.rule.explorable import _checkpointer, _gathered, table_rows
from specledger.tables.registry import TABLES
from specledger.theory.speculation import measured_cost_speedup
from synthetic import write_synthetic_study
from synthetic_files import write_csv

NAMES = ("mask", "rule", "speedup", "module", "sample", "ledger", "waterfall", "battery", "seeds")
HOSTILE = ["</script><script>alert(1)</script>", '"', "'", "汉", "\u2028", "<b>", "&amp;", "{x}", "\\"]
SYMBOLS = "<>&\"'\\{}`$%\u2028\u200f汉字é\t"


def rendered(folder: Path, about: dict) -> Path:
    if not (folder / "figures").exists():
        draw_all(folder, folder / "figures")
    page.render(folder, folder / "figures", about, folder / "index.html")
    return folder / "index.html"


def test_parts_are_those_of_the_models_as_they_are_saved(tmp_path):
    config = LlamaConfig(vocabulary=11, layers=2, width=32, heads=4, kv_heads=2, context=8)
    target, module = Llama(config), MTPModule(config)
    save_model(tmp_path, target, module)
    shapes = tensor_shapes(tmp_path / "model.safetensors") | tensor_shapes(tmp_path / "heads.safetensors")
    counts = parts_of(shapes)
    assert sum(counts[part] for part in MODULE) == sum(one.numel() for one in module.parameters())
    assert sum(counts[part] for part in SHARED) == sum(one.numel() for one in target.parameters())
    assert counts["projection"] == module.projection.weight.numel()
    assert counts["attention"] == sum(one.numel() for one in module.block.self_attn.parameters())
    with pytest.raises(UserError, match=r"mtp\.second\.weight"):
        parts_of(shapes | {"mtp.second.weight": (3,)})


@pytest.mark.parametrize("content", [b"", b"\x08\0\0\0\0\0\0\0{broken}", b"\xff" * 20])
def test_a_damaged_model_is_named(tmp_path, content):
    (tmp_path / "model.safetensors").write_bytes(content)
    with pytest.raises(UserError, match=r"model\.safetensors: damaged"):
        tensor_shapes(tmp_path / "model.safetensors")


def test_a_round_that_lacks_a_key_is_named(tmp_path):
    write = (tmp_path / "round.json").write_text
    write(json.dumps({"symbols": ["a"], "rounds": [{"position": 1}]}), encoding="utf-8")
    with pytest.raises(UserError, match=r"round\.json: key context is missing"):
        read_rounds(tmp_path / "round.json")


def test_acceptance_counts_only_timed_texts(tmp_path):
    lines = [
        "engine,drafter,gamma,copy,clocked,examined,accepted",
        "cached,draft,2,0,true,10,5",
        "cached,draft,2,0,True,30,25",
        "cached,draft,2,0,false,99,99",
        "cached,draft,2,1,true,99,99",
        "cached,none,0,1,true,0,0",
        "cached,draft,4,0,true,0,0",
    ]
    (tmp_path / "runs.csv").write_text("\n".join(lines), encoding="utf-8")
    assert acceptance_of(tmp_path / "runs.csv", 3) == [
        {"seed": 3, "engine": "cached", "drafter": "draft", "gamma": 2, "alpha": 0.75}
    ]


def test_a_large_alphabet_is_gathered_and_loses_nothing():
    size = 5000
    p = [1 / (k + 1) for k in range(size)]
    p = [value / sum(p) for value in p]
    q = p[::-1]
    kept, lumped = _checkpointer([{"drafters": {"draft": {"p": p, "q": q}}}], 256)
    assert len(kept) == 255 and len(lumped) == size - 255
    gathered = _gathered(p, kept, lumped)
    assert len(gathered) == 256 and sum(gathered) == pytest.approx(1)
    assert p[0] in gathered and p[size - 1] in gathered, "likely by p or by q"
    rows = table_rows(p, {"q": q, "counts": [1] * size, "draws": size}, [str(k) for k in range(size)])
    for column in ("p", "q", "run"):
        assert sum(row[column] for row in rows) == pytest.approx(1)
    assert all(row["kept"] + row["residual"] == pytest.approx(row["p"]) for row in rows)


def test_without_optional_results_their_explorables_are_absent(tmp_path):
    about = write_synthetic_study(tmp_path, (1, 2))
    path = tmp_path / "tables" / "waterfall.csv"
    path.write_text(path.read_text(encoding="utf-8").splitlines()[0] + "\n", encoding="utf-8")
    path = tmp_path / "acceptance" / "1" / "round.json"
    record = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps(record | {"rounds": []}), encoding="utf-8")
    text = rendered(tmp_path, about).read_text(encoding="utf-8")
    there = re.findall(r'<form class="explorable" id="explore-([a-z]+)"', text)
    assert there == ["rule", "battery", "speedup", "module", "seeds", "sample", "ledger"]


# -- in the browser ---------------------------------------------------------------------------------------------


def empty(path: Path, columns: str, which=lambda row: True) -> None:
    """Cells of a CSV that become missing; one in three becomes the word nan."""
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    for at, row in enumerate(rows):
        if which(row):
            row.update(dict.fromkeys(columns.split(), "nan" if at % 3 == 0 else ""))
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


@pytest.mark.browser
def test_missing_values_are_dashes_and_break_nothing(browser, tmp_path):
    about = write_synthetic_study(tmp_path, (1, 2))
    some = lambda row: row["drafter"] == "draft" and row["gamma"] in ("2", "4")  # noqa: E731
    columns = "alpha alpha_lo alpha_hi speedup speedup_lo speedup_hi theorem38 cost_model c v eq1 wall_s"
    empty(tmp_path / "tables" / "ledger.csv", columns, some)
    empty(tmp_path / "tables" / "time.csv", "draft verify accept other wall_s", some)
    empty(tmp_path / "tables" / "seeds.csv", "validation_loss", lambda row: row["seed"] + row["model"] == "2draft")
    opened = rendered(tmp_path, about)
    carried = re.findall(r'<script type="application/json".*?</script>', opened.read_text(encoding="utf-8"), re.DOTALL)
    assert sum('id="data-' in one for one in carried) == len(NAMES)
    assert not any("NaN" in one for one in carried)
    visits = Visits(browser)
    tab, dashes = visits.open(opened), 0
    for button in tab.locator("#ledger-ledger button.open").all():
        button.press("Enter")
        said = tab.locator("#explore-ledger").inner_text()
        dashes += "–" in said
        assert not re.search(r"NaN|null|undefined|Infinity", said)
    assert dashes >= 4, "two rows of two engines"
    for name in NAMES:
        for select in tab.locator(f"#explore-{name} select").all():
            for value in select.locator("option").evaluate_all("all => all.map(one => one.value)"):
                select.select_option(value)
        assert not re.search(r"NaN|null|undefined|Infinity", tab.locator(f"#explore-{name}").inner_text()), name
    visits.close()


@pytest.mark.browser
def test_hostile_symbols_stay_text(browser, tmp_path):
    about = write_synthetic_study(tmp_path, (1, 2), corpus_tail='</script><img src=x onerror=alert(1)>"汉 ')
    for name in ("round", "position"):
        path = tmp_path / "acceptance" / "1" / f"{name}.json"
        record = json.loads(path.read_text(encoding="utf-8"))
        record["symbols"] = [*SYMBOLS, *record["symbols"][len(SYMBOLS) :]]
        path.write_text(json.dumps(record), encoding="utf-8")
    path = tmp_path / "sweep" / "1" / "sample.json"
    record = json.loads(path.read_text(encoding="utf-8"))
    for at, token in enumerate(record["tokens"]):
        token["text"] = HOSTILE[at % len(HOSTILE)]
    path.write_text(json.dumps(record), encoding="utf-8")
    visits = Visits(browser)
    tab = visits.open(rendered(tmp_path, about))
    assert tab.locator("#explore-sample .text").inner_text().count("</script><script>alert(1)</script>") > 10
    for at in range(6):
        tab.locator("#mask-round").select_option(str(at))
        tab.locator("#mask-gamma").press("Home")
    tab.locator("#explore-rule button[value='1000']").press("Enter")
    assert tab.locator("#explore-rule .step").inner_text().startswith("Draw 1000")
    assert tab.locator("script:not([type]), main img").count() == 0
    visits.close()


@pytest.mark.browser
@pytest.mark.parametrize(
    "seeds",
    [
        pytest.param((4,), id="one seed"),
        pytest.param(tuple(range(1, 81)), id="eighty seeds", marks=pytest.mark.slow),
    ],
)
def test_few_and_many_seeds(browser, tmp_path, seeds):
    about = write_synthetic_study(tmp_path, seeds)
    opened = rendered(tmp_path, about)
    assert opened.stat().st_size < 3_000_000
    visits = Visits(browser)
    tab = visits.open(opened)
    assert tab.locator("#explore-seeds .model-draft circle").count() == len(seeds)
    shown = tab.locator('#explore-seeds [data-outcome="seen"]')
    assert (shown.inner_text() == "–") == (len(seeds) == 1), "one seed has no spread"
    tab.locator("#seeds-n").press("End")
    assert (shown.inner_text() == "–") == (len(seeds) == 1)
    visits.close()


def test_a_prediction_measured_apart_stands_before_the_measurement(tmp_path):
    about = write_synthetic_study(tmp_path, (1, 2))
    row = dict.fromkeys(TABLES["cost_model"].names)
    row |= {"engine": "cached", "drafter": "draft", "gamma": 2, "tokens_per_round": 2.5, "t_ar": 0.001}
    row |= {"t_propose": 0.0004, "t_verify": 0.0012, "overhead": 0.0002, "plain_overhead": 0.0001}
    row |= {"theorem38": 1.9, "measured": 1.58, "measured_lo": 1.5, "measured_hi": 1.6, "theorem38_miss": 0.2}
    write_csv(tmp_path / "tables" / "cost_model.csv", [row | {"cost_model": 2.5 * 1.1 / 1.8, "miss": -0.031}])
    text = rendered(tmp_path, about).read_text(encoding="utf-8")
    start = text.index(">", text.index('id="data-ledger"')) + 1
    rows = json.loads(text[start : text.index("</script>", start)])["data"]["rows"]
    found = [row["apart"] for row in rows if row["apart"]]
    assert len(found) == 1
    shown = {"tokens": 2.5, "plain": 1.1, "verify": 1.2, "propose": 0.4, "overhead": 0.2, "miss": -0.031}
    assert found[0] == pytest.approx(shown | {"value": 2.5 * 1.1 / 1.8}, rel=1e-4)
    assert found[0]["value"] == pytest.approx(
        measured_cost_speedup(tokens_per_round=2.5, plain_s=1.1, verify_s=1.2, draft_s=0.2, gamma=2, overhead_s=0.2),
        rel=1e-4,
    )
