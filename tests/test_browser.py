"""The page in a real browser, offline: no error, no request, keyboard, downloads, accessibility in both themes."""

from pathlib import Path
from xml.etree import ElementTree

import pytest
from browsing import Visits, driver
from specledger.reporting import page, takeaway
from specledger.reporting.figures import draw_all
from synthetic import write_synthetic_study

WIDTHS = (390, 900, 1500)

driver()
pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("browser")]


@pytest.fixture(scope="module")
def report(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("a report") / "study"
    about = write_synthetic_study(folder, (1, 2, 3))
    about |= {"quick": True, "stale": ["sweep of seed 2: other code"], "devices": ["AMD EPYC"]}
    draw_all(folder, folder / "figures")
    page.render(folder, folder / "figures", about, folder / "index.html")
    return folder / "index.html"


@pytest.fixture
def visit(browser, report):
    """Open the page in a fresh offline context; anything but silence afterwards fails the test."""
    visits = Visits(browser)
    yield lambda hash_="", **options: visits.open(report, hash_, **options)
    visits.close()


def column(tab, view: str, index: int) -> list[str | None]:
    """What the cells of a column sort by, in the order on screen."""
    script = f"rows => rows.map(row => row.cells[{index}].dataset.v ?? null)"
    return tab.eval_on_selector_all(f"#{view} tbody tr", script)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing(visit, scheme):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe-playwright-python is not installed")
    tab = visit(color_scheme=scheme)
    tab.eval_on_selector_all("details", "all => all.forEach(one => { one.open = true; })")
    # The shadow at a scrolling table's edge is a gradient, on which axe measures no contrast.
    tab.add_style_tag(content=".scroll { background: none !important }")
    found = axe.Axe().run(tab)
    assert found.violations_count == 0, found.generate_report()
    # What axe cannot decide it leaves incomplete: contrast must not hide there.
    unsure = [item for item in found.response["incomplete"] if item["id"] == "color-contrast"]
    reasons = [(node["html"], node["any"][0]["message"]) for item in unsure for node in item["nodes"]]
    # Nor can it where a letter lies in an <svg>, depending on the scroll: these wear the caption's colour beside them.
    drawn = [reason for reason in reasons if reason[0].startswith("<text") and "image node" in reason[1]]
    looks = "all => all.map(one => getComputedStyle(one)[one.tagName === 'P' ? 'color' : 'fill'])"
    assert len(set(tab.eval_on_selector_all(".explorable .caption, .explorable svg text", looks))) == 1
    rest = [reason for reason in reasons if reason not in drawn]
    assert [reason for reason in rest if "only non-text characters" not in reason[1]] == []


@pytest.mark.parametrize("folded", [True, False])
@pytest.mark.parametrize("width", WIDTHS)
def test_nothing_sticks_out(visit, width, folded):
    tab = visit(viewport={"width": width, "height": 900}, folded=folded)
    assert tab.evaluate("document.documentElement.scrollWidth") <= width


def test_tables_sort_by_keyboard_and_missing_values_stay_last(visit):
    tab = visit()
    heading = tab.locator("#ledger-ledger th").nth(3)
    heading.locator("button").focus()
    for direction, reverse in (("ascending", False), ("descending", True)):
        tab.keyboard.press("Enter")
        assert heading.get_attribute("aria-sort") == direction
        values = column(tab, "ledger-ledger", 3)
        known = [float(value) for value in values if value is not None]
        assert known == sorted(known, reverse=reverse)
        assert values[len(known) :] == [None] * 3, "plain decoding of three engines has no alpha"
    assert tab.locator("#ledger-ledger th[aria-sort]").count() == 1


def test_the_filter_counts_what_it_shows(visit):
    tab = visit()
    box = tab.locator("#ledger-ledger .filter")
    box.get_by_label("Filter rows").fill("cached mtp")
    assert tab.locator("#ledger-ledger tbody tr:visible").count() == 1
    assert box.locator("output").inner_text() == "1 of 60 rows"


def test_downloads_are_the_files(visit, report):
    tab = visit()
    for link, name in (("#csv-seeds a", "seeds"), ("#ledger-ledger a.csv", "ledger")):
        with tab.expect_download() as waiting:
            tab.locator(link).click()
        assert waiting.value.suggested_filename == f"{name}.csv"
        assert Path(waiting.value.path()).read_bytes() == (report.parent / "tables" / f"{name}.csv").read_bytes()


def test_it_is_complete_without_javascript(visit):
    tab = visit(java_script_enabled=False)
    assert tab.locator("#ledger-ledger tbody tr").count() == 60
    assert tab.locator("th button, .filter").count() == 0, "no control that would do nothing"
    tab.locator("#verify .questions summary").nth(1).click()
    assert tab.get_by_text("Its length is set back").is_visible()


def test_the_page_is_read_in_eight_screens(visit):
    tab = visit(viewport={"width": 1300, "height": 1000}, folded=True)
    assert tab.evaluate("document.documentElement.scrollHeight") <= 8000
    assert tab.locator("#answer li").last.is_visible()
    assert tab.locator("#answer li").last.bounding_box()["y"] < 1000, "the answer is the first screen"
    assert tab.locator("details.fold[open]").count() == 0
    for topic in tab.locator("section.topic").all():
        assert topic.locator("> .picture").count() <= 1
        assert topic.locator("table:visible").count() == 0


@pytest.mark.parametrize("place", ["ledger-ledger", "figure-gap", "word-holm", "csv-seeds", "explore-mask"])
def test_a_link_opens_what_it_leads_to(visit, place):
    tab = visit(folded=True)
    assert not tab.locator(f"#{place}").is_visible()
    tab.evaluate("place => { location.hash = place; }", place)
    tab.locator(f"#{place}").wait_for()
    assert tab.locator("details.fold[open]").count() == 1
    assert visit(f"#{place}", folded=True).locator(f"#{place}").is_visible()


def test_an_address_of_a_state_opens_its_explorable(visit):
    assert visit("#speedup=0.5,0.25,3,0", folded=True).locator("#explore-speedup").is_visible()


def test_paper_shows_what_is_folded(visit):
    tab = visit(folded=True)
    tab.emulate_media(media="print")
    tab.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert tab.locator("details:not([open])").count() == 0
    assert not tab.locator(".contents").is_visible()


def test_everything_in_one_file_is_what_python_makes_of_the_tables(visit, report):
    tab = visit()
    with tab.expect_download() as waiting:
        tab.locator("button[data-whole]").click()
    tables = [(name, (report.parent / "tables" / f"{name}.csv").read_bytes()) for name in takeaway.DOWNLOADS]
    assert Path(waiting.value.path()).read_bytes() == takeaway.tidy(tables)


def test_a_figure_taken_along_stands_alone(visit):
    tab = visit()
    with tab.expect_download() as waiting:
        tab.locator("button[data-figure=wall_clock]").click()
    text = Path(waiting.value.path()).read_text(encoding="utf-8")
    found = ElementTree.fromstring(text)
    ids = {element.get("id") for element in found.iter()}
    led = {element.get("href")[1:] for element in found.iter() if (element.get("href") or "").startswith("#")}
    assert led and led <= ids, "a letter is missing"
    assert "var(" not in text and "currentColor" not in text


def test_text_sorts_by_itself_and_a_dash_stays_last(visit):
    tab = visit()
    heading = tab.locator("#ledger-ledger th").nth(1)
    for reverse in (False, True):
        heading.locator("button").press("Enter")
        shown = tab.eval_on_selector_all(
            "#ledger-ledger tbody tr", "rows => rows.map(row => row.cells[1].textContent.trim())"
        )
        assert shown == sorted(shown, key=str.lower, reverse=reverse) and len(set(shown)) > 3
    heading = tab.locator("#ledger-ledger th").nth(9)
    heading.locator("button").press("Enter")
    shown = tab.eval_on_selector_all(
        "#ledger-ledger tbody tr", "rows => rows.map(row => row.cells[9].textContent.trim())"
    )
    missing = shown.count("–")
    assert missing and shown[-missing:] == ["–"] * missing
