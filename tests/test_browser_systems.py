"""The page of a study with heads and trees in a real browser, in Chinese: as clean and as narrow as any other."""

import json
from pathlib import Path

import pytest
import test_browser
from browsing import driver
from specledger.reporting import page
from specledger.reporting.figures import draw_all
from synthetic import write_synthetic_study

driver()
pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("browser")]
visit = test_browser.visit
test_axe_finds_nothing = test_browser.test_axe_finds_nothing
test_nothing_sticks_out = test_browser.test_nothing_sticks_out
test_everything_in_one_file = test_browser.test_everything_in_one_file_is_what_python_makes_of_the_tables


@pytest.fixture(scope="module")
def report(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("a report") / "study"
    about = write_synthetic_study(folder, (1, 2, 3), heads=True)
    about["config"]["report"]["language"] = "zh"
    (folder / "about.json").write_text(json.dumps(about), encoding="utf-8")
    draw_all(folder, folder / "figures", "zh")
    page.render(folder, folder / "figures", about, folder / "index.html")
    return folder / "index.html"


def opened(tab, drafter: str, size: str) -> str:
    """What the ledger's explorable says of a row."""
    row = tab.locator("#ledger-ledger tbody tr").filter(has_text=drafter).filter(has_text=size).first
    row.locator("button").click()
    return tab.locator("#ledger-opened").inner_text()


def test_a_tree_opens_without_formulas_of_chains_and_a_lossy_row_says_its_price(visit):
    tab = visit()
    said = opened(tab, "EAGLE 树", "个节点")
    assert "EAGLE 树，4 个节点，cached 引擎" in said and "说的是链" in said and "NaN" not in said
    assert "定理 3.8\n" not in said
    assert "有损：典型接受不保持 p，每个词元付出的 TV 是 0." in opened(tab, "典型接受", "16")
    assert "有损" not in opened(tab, "EAGLE", "cached")


def test_bands_of_the_systems_stay_heads_on_a_phone(visit):
    tab = visit(viewport={"width": 390, "height": 844})
    band = tab.locator("#systems-systems th[scope=rowgroup]").first
    assert band.is_visible() and "论文：" in band.inner_text()
    assert band.bounding_box()["width"] <= 390
    row = tab.locator("#systems-systems tbody").first.locator("tr").nth(1)
    labels = row.evaluate("row => [...row.cells].map(cell => getComputedStyle(cell, '::before').content)")
    assert all(label.endswith('："') for label in labels[1:]), labels
