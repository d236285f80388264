"""Each explorable in a real browser: its numbers are Python's, keys alone drive it, and an address brings it back."""

import csv
import itertools
import json
from pathlib import Path
from urllib.parse import unquote_to_bytes

import numpy as np
import pytest
from browsing import Visits, driver
from scipy import stats
from specledger.reporting import formats, page
from specledger.reporting.figures import draw_all
from specledger.sampling.distributions import draw
from specledger.sampling.verify import acceptance_probability, verify
from specledger.statistics.power import smallest_difference
from specledger.theory import speculation
from synthetic import write_synthetic_study

driver()
pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("browser")]
NAMES = ("mask", "rule", "speedup", "module", "sample", "ledger", "waterfall", "battery", "seeds")


@pytest.fixture(scope="module")
def study(tmp_path_factory) -> Path:
    """A results folder with its page beside it."""
    folder = tmp_path_factory.mktemp("explorables") / "study"
    about = write_synthetic_study(folder, (1, 2, 3))
    draw_all(folder, folder / "figures")
    page.render(folder, folder / "figures", about, folder / "index.html")
    return folder


@pytest.fixture
def visit(browser, study):
    visits = Visits(browser)
    yield lambda hash_="", **options: visits.open(study / "index.html", hash_, **options)
    visits.close()


@pytest.fixture(scope="module")
def scripts(browser, study):
    """The scripts' own functions, called with arguments that travel as JSON."""
    visits = Visits(browser)
    tab = visits.open(study / "index.html")
    yield lambda name, *given: tab.evaluate(
        "([name, given]) => name.split('.').reduce((at, part) => at[part], globalThis.specledger)(...given)",
        [name, list(given)],
    )
    visits.close()


def carried(study: Path, name: str) -> dict:
    """Words and data that the page carries for an explorable."""
    text = (study / "index.html").read_text(encoding="utf-8")
    start = text.index(">", text.index(f'id="data-{name}"')) + 1
    return json.loads(text[start : text.index("</script>", start)])


def outcome(tab, explorable: str, name: str) -> str:
    return tab.locator(f'#explore-{explorable} [data-outcome="{name}"]').inner_text()


def press(tab, selector: str, *keys: str) -> None:
    tab.locator(selector).first.focus()
    for key in keys:
        tab.keyboard.press(key)


# -- numbers ---------------------------------------------------------------

GRID = list(itertools.product((0.0, 1e-9, 0.3, 0.71, 0.99, 1 - 1e-12, 1.0), (1, 2, 6, 12, 40), (0.0, 0.05, 0.27, 1.0)))


def test_formulas_are_those_of_theory(scripts):
    for alpha, gamma, c in GRID:
        eq1 = speculation.expected_tokens_per_round(alpha, gamma)
        assert scripts("theory.tokensARound", alpha, gamma) == pytest.approx(eq1, rel=1e-12)
        theorem38 = speculation.walltime_speedup(alpha, gamma, c)
        assert scripts("theory.speedup", alpha, gamma, c) == pytest.approx(theorem38, rel=1e-12)
        given = {"tokens": eq1, "plain": 1.1, "verify": 1.7, "draft": c, "gamma": gamma, "overhead": 0.2}
        cost = speculation.measured_cost_speedup(
            tokens_per_round=eq1, plain_s=1.1, verify_s=1.7, draft_s=c, gamma=gamma, overhead_s=0.2
        )
        assert scripts("theory.measuredCost", given) == pytest.approx(cost, rel=1e-12)
    for alpha, c in itertools.product((0.0, 0.5, 0.8, 0.95, 1.0), (0.0, 0.05, 0.3, 1.0)):
        gammas = list(range(1, 13))
        assert scripts("theory.bestGamma", alpha, c, gammas) == speculation.best_gamma(alpha, c, gammas)


NUMBERS = (0.0, -0.0001, 0.125, 1.625, 2.675, 0.5, 1.5, 2.5, -1.5, 1234.5, 12345.678, -1115394.0, 1e-7, -2.4e-6, None)


def test_numbers_are_written_as_python_writes_them(scripts):
    for value, decimals in itertools.product(NUMBERS, (0, 1, 2, 3, 4)):
        assert scripts("number", value, decimals) == formats.number(value, decimals), (value, decimals)
        assert scripts("small", value, decimals) == formats.small(value, decimals), (value, decimals)
        assert scripts("percent", value, decimals) == formats.percent(value, decimals), (value, decimals)
    for value in NUMBERS:
        assert scripts("whole", value) == formats.whole(value)
        assert scripts("times", value) == formats.times(value)


def distributions(rng: np.random.Generator, rows: int, symbols: int) -> np.ndarray:
    """Rows of a distribution, some of them with symbols that cannot be drawn."""
    found = rng.dirichlet(np.full(symbols, 0.5), rows)
    found[rng.random(found.shape) < 0.2] = 0.0
    found[:, 0] += 1e-3
    return found / found.sum(axis=1, keepdims=True)


def test_the_rule_is_that_of_the_program(scripts):
    rng = np.random.default_rng(3)
    for G, V in itertools.product((0, 1, 4), (2, 9, 65)):
        for _ in range(12):
            p, q = distributions(rng, G + 1, V), distributions(rng, G, V) if G else np.empty((0, V))
            proposals = np.array([[int(draw(row, rng.random())) for row in q]], dtype=np.int64)
            accept, extra = rng.random((1, G)), rng.random(1)
            verdict = verify(p[None], q[None], proposals, accept, extra)
            found = scripts(
                "sampling.verify", p.tolist(), q.tolist(), proposals[0].tolist(), accept[0].tolist(), extra[0]
            )
            assert found == {"acceptLength": verdict.accept_len_N[0], "token": verdict.token_N[0]}
            if G:
                beta = acceptance_probability(p[0], q[0])
                assert scripts("sampling.beta", p[0].tolist(), q[0].tolist()) == pytest.approx(beta, abs=1e-12)
    # A uniform at its very end never points past the last symbol that has weight.
    weights = [0.1, 0.7, 0.2, 0.0]
    assert scripts("sampling.draw", weights, 1 - 2**-53) == int(draw(np.array(weights), 1 - 2**-53)) == 2


def test_the_random_numbers_are_uniform_and_repeat(visit):
    tab = visit()
    script = "seed => { const next = specledger.sampling.uniforms(seed); return Array.from({ length: 20000 }, next); }"
    first, again, other = (np.array(tab.evaluate(script, seed)) for seed in (1, 1, 2))
    assert (first == again).all() and (first != other).all()
    assert first.min() >= 0 and first.max() < 1
    counts = np.bincount((first * 20).astype(int), minlength=20)
    assert ((counts - 1000) ** 2 / 1000).sum() < 50  # chi-square of 19 degrees: odds 1 in 8,000
    assert abs(np.corrcoef(first[1:], first[:-1])[0, 1]) < 0.03  # four standard errors


# -- states ----------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_the_state_before_any_touch_is_the_same_with_and_without_a_script(visit, name):
    """Controls apart, which only a script can serve."""
    script = """name => {
      const form = document.getElementById(`explore-${name}`).cloneNode(true);
      form.querySelectorAll(".needs-script, [role=status]").forEach((one) => one.remove());
      return form.textContent.replace(/\\s+/g, "");
    }"""
    tabs = [visit(java_script_enabled=on) for on in (True, False)]
    shown = [tab.evaluate(script, name) for tab in tabs]
    assert shown[0] == shown[1] and len(shown[0]) > 100
    assert tabs[1].locator(f"#explore-{name} :is(button, input, select):visible").count() == 0


def test_an_address_may_hold_several_states_and_a_plain_anchor_none(visit):
    tab = visit("#speedup=0.5,0.25,3,0&sample=7&rule=1,ngram,1000")
    assert outcome(tab, "speedup", "eq1") == formats.number(speculation.expected_tokens_per_round(0.5, 3), 2)
    assert outcome(tab, "sample", "forwards") == "7" and outcome(tab, "rule", "n") == "1000"
    tab.evaluate("location.hash = '#sample=9'")
    tab.wait_for_function("document.querySelector('#explore-sample [data-outcome=forwards]').textContent === '9'")
    press(tab, "#sample-forward", "ArrowLeft")
    assert tab.evaluate("location.hash") == "#sample=8"
    assert outcome(visit("#ledger"), "rule", "n") == "0"


# -- a: the mask -----------------------------------------------------------


def test_the_mask_shows_the_round_that_was_written(visit, study):
    record = json.loads((study / "acceptance" / "1" / "round.json").read_text(encoding="utf-8"))
    rounds, symbols = record["rounds"], [formats.symbol(one) for one in record["symbols"]]
    tab = visit()
    for at, found in enumerate(rounds):
        tab.locator("#mask-round").select_option(str(at))
        gamma = len(found["proposals"])
        heads = tab.locator("#explore-mask tbody th b").all_inner_texts()
        assert heads == [symbols[one] for one in [*found["context"][-6:], *found["proposals"]]]
        for number in range(gamma + 1):
            press(tab, f"#mask-row-{number + 5}", " ")
            p = found["p"][number]
            best = sorted(range(len(p)), key=lambda token: -p[token])[:6]
            bars = tab.locator("#explore-mask .bars li").all_inner_texts()
            assert [bar.split() for bar in bars] == [[symbols[one], formats.percent(p[one], 1)] for one in best]
            verdict = tab.locator(f'#explore-mask tr[data-row="{number + 5}"] .verdict').inner_text()
            passed, last = number < found["accept_len"], number == found["accept_len"]
            assert verdict.startswith("✓") == (passed and number < gamma)
            assert (": " in verdict) == last and (not last or verdict.endswith(f": {symbols[found['token']]}"))
        assert outcome(tab, "mask", "tokens") == str(found["accept_len"] + 1)


def test_the_mask_counts_what_the_window_still_holds(visit, study):
    record = json.loads((study / "acceptance" / "1" / "round.json").read_text(encoding="utf-8"))
    found, window = record["rounds"][0], 64
    assert len(found["context"]) == window, "a round whose text fills the window"
    tab = visit()
    tab.locator("#mask-round").select_option("0")
    for guesses in (0, 1, len(found["proposals"])):
        press(tab, f"#mask-row-{guesses + 5}", " ")
        said = tab.locator("#explore-mask .here").inner_text()
        assert f"characters {window - guesses}, draft tokens {guesses} of" in said
        assert (f"have left its window: {guesses}." in said) == (guesses > 0)


def test_the_mask_by_keys(visit):
    tab = visit()
    press(tab, "#mask-gamma", "Home")
    assert tab.locator("#explore-mask tbody tr").count() == 7
    assert outcome(tab, "mask", "rows") == "2"
    press(tab, "#explore-mask input[name=row]:checked", "ArrowUp")
    chosen = tab.locator("#explore-mask tr.chosen")
    row = int(chosen.get_attribute("data-row"))
    assert chosen.locator("td.seen").count() == row + 1 and chosen.locator("td.unseen").count() == 6 - row
    assert tab.evaluate("document.activeElement.value") == str(row), "the focus stays on the row"
    address = tab.evaluate("location.hash")
    assert address.startswith("#mask=") and address.endswith(f",1,{row}")
    again = visit(address)
    assert again.locator("#explore-mask .here").inner_text() == tab.locator("#explore-mask .here").inner_text()
    assert again.locator("#explore-mask tbody tr").count() == 7


# -- b: the rule -----------------------------------------------------------


def first_tokens(tab, study: Path, place: int, drafter: str, count: int) -> np.ndarray:
    """What sampling.verify makes of the script's own uniforms: counts of the first token."""
    script = "n => { const next = specledger.sampling.uniforms(1); return Array.from({ length: 3 * n }, next); }"
    guess_N, accept_N, extra_N = np.array(tab.evaluate(script, count)).reshape(count, 3).T
    data = carried(study, "rule")["data"]["positions"][place]
    p, q = np.array(data["p"]), np.array(data["drafters"][drafter]["q"])
    p, q = p / p.sum(), q / q.sum()
    guesses_N1 = draw(np.broadcast_to(q, (count, len(q))), guess_N)[:, None]
    rows = np.broadcast_to(p, (count, 2, len(p))).copy(), np.broadcast_to(q, (count, 1, len(q)))
    verdict = verify(*rows, guesses_N1, accept_N[:, None], extra_N)
    tokens = np.where(verdict.accept_len_N == 1, guesses_N1[:, 0], verdict.token_N)
    return np.bincount(tokens, minlength=len(p)), verdict.accept_len_N.mean()


def test_draws_by_keys_are_those_of_the_program(visit, study):
    tab = visit()
    press(tab, "#explore-rule button[value='1000']", "Enter", "Space")
    press(tab, "#explore-rule button[value='1']", "Enter")
    data = carried(study, "rule")["data"]
    counts, accepted = first_tokens(tab, study, data["position"], data["drafter"], 2001)
    p = np.array(data["positions"][data["position"]]["p"])
    assert outcome(tab, "rule", "n") == "2001"
    assert outcome(tab, "rule", "yours_accepted") == formats.number(accepted, 4)
    assert outcome(tab, "rule", "tv_yours") == formats.small(np.abs(counts / 2001 - p).sum() / 2, 4)
    shown = tab.locator("#explore-rule tbody tr td:last-child").all_inner_texts()
    names = tab.locator("#explore-rule tbody th").all_inner_texts()
    for name, text in list(zip(names, shown, strict=True))[:-1]:
        assert text == formats.number(counts[data["symbols"].index(name)] / 2001, 4)
    assert "Draw 2001" in tab.locator("#explore-rule .step").inner_text()
    press(tab, "#explore-rule button[value='0']", "Enter")
    assert outcome(tab, "rule", "n") == "0" and outcome(tab, "rule", "tv_yours") == "–"


def test_every_position_and_drafter_shows_what_was_written(visit, study):
    record = json.loads((study / "acceptance" / "1" / "position.json").read_text(encoding="utf-8"))
    tab = visit()
    for at, one in enumerate(record["positions"]):
        for drafter, found in one["drafters"].items():
            tab.locator("#rule-position").select_option(str(at))
            tab.locator("#rule-drafter").select_option(drafter)
            p, q, counts = (np.array(found[key]) for key in ("p", "q", "counts"))
            assert outcome(tab, "rule", "beta") == formats.number(np.minimum(p, q).sum(), 4)
            assert outcome(tab, "rule", "acceptance") == formats.number(found["accepted"] / found["draws"], 4)
            assert outcome(tab, "rule", "tv_run") == formats.small(np.abs(counts / found["draws"] - p).sum() / 2, 4)
            assert outcome(tab, "rule", "tv_draft") == formats.small(np.abs(q - p).sum() / 2, 4)
            cells = tab.locator("#explore-rule tbody tr").first.locator("th, td.number").all_inner_texts()
            token = int(np.argmax(np.maximum(p, q)))
            kept, residual = min(p[token], q[token]), max(p[token] - q[token], 0)
            values = (kept, residual, p[token], counts[token] / found["draws"])
            assert cells[:5] == [formats.symbol(record["symbols"][token]), *(formats.number(v, 4) for v in values)]


def test_an_address_draws_the_same_again(visit):
    tab = visit("#rule=2,mtp,1500")
    assert tab.locator("#rule-position").input_value() == "2" and tab.locator("#rule-drafter").input_value() == "mtp"
    assert outcome(tab, "rule", "n") == "1500"
    other = visit()
    other.locator("#rule-position").select_option("2")
    other.locator("#rule-drafter").select_option("mtp")
    for _ in range(2):
        press(other, "#explore-rule button[value='1000']", "Enter")
    assert outcome(other, "rule", "tv_yours") != outcome(tab, "rule", "tv_yours")
    assert (
        visit(other.evaluate("location.hash")).locator("#explore-rule tbody").inner_text()
        == other.locator("#explore-rule tbody").inner_text()
    )
    broken = visit("#rule=99,nobody,abc&speedup=x,,")
    assert outcome(broken, "rule", "n") == "0", "an address that means nothing changes nothing"


# -- c: the formulas -------------------------------------------------------


def test_sliders_compute_what_theory_does_and_keep_their_state(visit):
    tab = visit()
    before = tab.locator("#explore-speedup .outcomes").inner_text()
    drag = """([alpha, c, gamma]) => {
      const form = document.getElementById("explore-speedup");
      for (const [name, value] of Object.entries({ alpha, c, gamma })) form.elements[name].value = value;
      form.elements.c.dispatchEvent(new Event("input", { bubbles: true }));
      return ["eq1", "theorem38"].map((name) => Number(form.querySelector(`[data-outcome=${name}]`).dataset.value));
    }"""
    for alpha, c, gamma in itertools.product((0.0, 0.3, 0.71, 0.99, 1.0), (0.0, 0.27, 1.0), (1, 6, 12)):
        eq1, theorem38 = tab.evaluate(drag, [alpha, c, gamma])
        assert eq1 == pytest.approx(speculation.expected_tokens_per_round(alpha, gamma), rel=1e-12)
        assert theorem38 == pytest.approx(speculation.walltime_speedup(alpha, gamma, c), rel=1e-12)
    press(tab, "#explore-gamma", "Home")
    assert tab.evaluate("location.hash").startswith("#speedup=1,1,1,")
    again = visit("#speedup=0.5,0.25,3")
    assert again.locator("output[for=explore-alpha]").inner_text() == "0.50"
    assert outcome(again, "speedup", "eq1") == formats.number(speculation.expected_tokens_per_round(0.5, 3), 2)
    assert again.locator("#explore-speedup .outcomes").inner_text() != before


def test_measured_points_stand_where_the_ledger_has_them(visit, study):
    carriage = carried(study, "speedup")["data"]
    frame, tab = carriage["drawing"], visit()
    for at, method in enumerate(carriage["methods"]):
        tab.locator("#speedup-method").select_option(str(at))
        for name, column in (("tokens", "tokens_per_round"), ("clock", "speedup")):
            marks = tab.locator(f'#explore-speedup [data-drawing="{name}"] .measured rect')
            heights = [float(one.get_attribute("y")) + 4 for one in marks.all()]
            values = [point[column] for point in method["points"]]
            assert heights == pytest.approx(
                [frame["floor"] - frame[name]["unit"] * value for value in values], abs=0.02
            )
        alphas = {point["alpha"] for point in method["points"]}
        shown = float(tab.locator("output[for=explore-alpha]").inner_text())
        assert any(abs(shown - alpha) <= 0.0051 for alpha in alphas)


# -- d: the module and its text --------------------------------------------


def rows_of(study: Path, table: str) -> list[dict]:
    with (study / "tables" / f"{table}.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_the_parts_open_by_keys_one_at_a_time(visit, study):
    tab = visit()
    press(tab, "details[data-part=mlp] summary", "Enter")
    assert tab.locator("#explore-module details[open]").count() == 1
    assert tab.locator("details[data-part=mlp] p").is_visible()
    tab.wait_for_function("location.hash.startsWith('#module=mlp,')")
    again = visit(tab.evaluate("location.hash"))
    assert again.locator("#explore-module details[open]").get_attribute("data-part") == "mlp"
    shapes = carried(study, "module")["data"]["parts"]
    shown = tab.locator("#explore-module summary small").all_inner_texts()
    assert sorted(text.split()[0] for text in shown) == sorted(formats.whole(count) for count in shapes.values())
    models = {row["model"]: row for row in rows_of(study, "models")}
    assert outcome(tab, "module", "target") == formats.whole(float(models["mtp"]["parameters"]))


def test_one_guess_side_by_side_is_the_ledgers(visit, study):
    tab, ledger = visit(), rows_of(study, "ledger")
    for at, one in enumerate(carried(study, "module")["data"]["versus"]):
        tab.locator("#module-engine").select_option(str(at))
        for side in ("mtp", "draft"):
            wanted = {"engine": one["engine"], "drafter": side, "gamma": "1"}
            row = next(row for row in ledger if all(row[key] == value for key, value in wanted.items()))
            for metric, form in (("alpha", formats.number), ("c", formats.number), ("speedup", formats.times)):
                cell = tab.locator(f'#explore-module [data-metric="{metric}"] [data-side="{side}"] b')
                assert cell.inner_text() == form(float(row[metric]))


def test_the_text_forward_by_forward(visit, study):
    record = json.loads((study / "sweep" / "1" / "sample.json").read_text(encoding="utf-8"))
    tokens = record["tokens"][:240]
    tab = visit()
    assert tab.locator("#explore-sample .text").inner_text() == record["prompt"] + "".join(
        one["text"] for one in tokens
    )
    press(tab, "#sample-forward", "Home")
    seen = {}
    for forward in range(1, 9):
        written = [one for one in tokens if one["round"] <= tokens[0]["round"] + forward - 1]
        accepted, redrawn = (sum(one["kind"] == kind for one in written) for kind in ("accepted", "resampled"))
        assert outcome(tab, "sample", "forwards") == str(forward)
        assert outcome(tab, "sample", "characters") == str(len(written))
        assert outcome(tab, "sample", "yielded") == formats.number(len(written) / forward, 2)
        assert outcome(tab, "sample", "accepted") == formats.percent(accepted / (accepted + redrawn), 1)
        assert tab.locator("#explore-sample .text span:not(.later):not(.prompt)").count() == len(written)
        seen[forward] = tab.locator("#explore-sample .step").inner_text()
        press(tab, "#sample-forward", "ArrowRight")
    assert len(set(seen.values())) == 8 and all(f"Forward pass {one}" in text for one, text in seen.items())
    press(tab, "#explore-sample button[value='-1']", "Enter")
    assert outcome(visit(tab.evaluate("location.hash")), "sample", "forwards") == "8"


# -- e: the ledger ---------------------------------------------------------


def test_a_row_opens_its_theory_by_keys(visit, study):
    tab, ledger, time = visit(), rows_of(study, "ledger"), rows_of(study, "time")
    told = [at for at, row in enumerate(ledger) if row["theorem38"] and row["cost_model"]]
    for at in (told[0], told[len(told) // 3], told[-1]):
        press(tab, f"#ledger-ledger tbody tr:nth-child({at + 1}) button.open", "Enter")
        row = ledger[at]
        alpha, gamma, c = float(row["alpha"]), int(row["gamma"]), float(row["c"])
        shown = {
            one.get_attribute("data-value"): one.inner_text() for one in tab.locator("#explore-ledger output").all()
        }
        assert shown["eq1"] == formats.number(speculation.expected_tokens_per_round(alpha, gamma), 2)
        assert shown["theorem38"] == formats.times(speculation.walltime_speedup(alpha, gamma, c))
        cost = speculation.measured_cost_speedup(
            tokens_per_round=float(row["tokens_per_round"]), plain_s=1, verify_s=float(row["v"]), draft_s=c, gamma=gamma
        )
        assert shown["cost_model"] == formats.times(cost)
        assert shown["speedup"].startswith(formats.times(float(row["speedup"])))
        for part in ("draft", "verify", "accept"):
            seconds = float(time[at][part])
            assert (formats.milliseconds(seconds) in tab.locator("#explore-ledger .key").inner_text()) or seconds == 0
        assert tab.locator("#ledger-ledger tr.opened").count() == 1
    plain = next(at for at, row in enumerate(ledger) if row["drafter"] == "none")
    press(tab, f"#ledger-ledger tbody tr:nth-child({plain + 1}) button.open", "Enter")
    assert tab.locator("#explore-ledger .chain li").count() == 1
    tab.wait_for_function(  # what was opened comes into sight
        "() => { const at = document.querySelector('#explore-ledger h4').getBoundingClientRect().top;"
        " return at > 0 && at < innerHeight; }"
    )
    assert tab.evaluate("document.activeElement.id") == "ledger-opened"
    press(tab, "#explore-ledger button.back", "Enter")
    assert tab.evaluate("document.activeElement.closest('tr').classList.contains('opened')")
    tab.locator("#ledger-drafter").select_option("ngram")
    assert "n-gram" in tab.locator("#explore-ledger h4").first.inner_text(), "a row that is filtered away is not open"


def test_the_ledgers_order_and_choice_come_back_from_an_address(visit, study):
    tab = visit()
    tab.locator("#ledger-drafter").select_option("ngram")
    tab.locator("#ledger-engine").select_option("cached")
    press(tab, "#ledger-ledger th:nth-child(9) button", "Enter", "Enter")
    press(tab, "#ledger-ledger tbody tr:not([hidden]) button.open", "Enter")
    shown = tab.locator("#ledger-ledger tbody tr:visible").all_inner_texts()
    assert len(shown) == 6 and all("n-gram" in text and "cached" in text for text in shown)
    best = max(
        float(row["speedup"])
        for row in rows_of(study, "ledger")
        if (row["engine"], row["drafter"]) == ("cached", "ngram")
    )
    assert formats.times(best) in shown[0], "descending by speed-up"
    again = visit(tab.evaluate("location.hash"))
    assert again.locator("#ledger-ledger tbody tr:visible").all_inner_texts() == shown
    assert again.locator("#explore-ledger .opened").inner_text() == tab.locator("#explore-ledger .opened").inner_text()
    assert again.locator("#ledger-ledger th[aria-sort]").get_attribute("aria-sort") == "descending"
    box = again.locator("#ledger-ledger .filter")
    box.get_by_label("Filter rows").fill("γ that is nowhere")
    assert again.locator("#ledger-ledger tbody tr:visible").count() == 0
    assert box.locator("output").inner_text() == f"0 of {len(rows_of(study, 'ledger'))} rows"


# -- f: the waterfall ------------------------------------------------------


def test_the_waterfalls_steps_are_the_tables(visit, study):
    tab, table = visit(), rows_of(study, "waterfall")
    cases = list(dict.fromkeys((row["engine"], row["drafter"], row["gamma"], row["case"]) for row in table))
    for at, case in enumerate(cases):
        tab.locator("#waterfall-case").select_option(str(at))
        rows = [row for row in table if (row["engine"], row["drafter"], row["gamma"], row["case"]) == case]
        shown = tab.locator("#explore-waterfall tbody tr").all()[1:]
        assert len(shown) == len(rows)
        for one, row in zip(shown, rows, strict=True):
            cells = one.locator("td.number").all_inner_texts()
            assert cells[0] == formats.times(float(row["ratio_after"]))
            assert cells[1].split()[1] == formats.number(float(row["factor"]), 3)
        assert outcome(tab, "waterfall", "clock") == formats.times(float(rows[-1]["ratio_after"]))
    address = tab.evaluate("location.hash")
    assert outcome(visit(address), "waterfall", "clock") == outcome(tab, "waterfall", "clock")


# -- g: the battery --------------------------------------------------------


def test_tests_switched_off_let_faults_through(visit, study):
    tab, table = visit(), rows_of(study, "controls")
    faults = [row for row in table if row["rule"] != "correct" and row["expected_caught"] == "true"]
    caught_by = [set(row["caught_by"].split(", ")) for row in faults]
    tests = [box.get_attribute("value") for box in tab.locator("#explore-battery input[type=checkbox]").all()]
    off: set[str] = set()
    for test in tests:
        press(tab, f'#explore-battery input[value="{test}"]', "Space")
        off.add(test)
        caught = sum(bool(tests_ - off) for tests_ in caught_by)
        assert outcome(tab, "battery", "caught") == f"{caught} of {len(faults)}"
        assert outcome(tab, "battery", "slipped") == str(len(faults) - caught)
        assert tab.locator("#explore-battery tr.missed").count() == len(faults) - caught
    assert outcome(tab, "battery", "caught").startswith("0 of"), "without tests nothing is caught"
    assert outcome(visit(tab.evaluate("location.hash")), "battery", "caught").startswith("0 of")


def test_the_histogram_is_the_tables(visit, study):
    tab, table = visit(), rows_of(study, "p_values")
    for drafter in dict.fromkeys(row["drafter"] for row in table):
        tab.locator("#battery-drafter").select_option(drafter)
        counts = [int(row["count"]) for row in table if row["drafter"] == drafter]
        bars = tab.locator("#explore-battery .histogram i").all()
        tall = [one.bounding_box()["height"] for one in bars]
        assert [round(one * max(counts) / max(tall)) for one in tall] == counts


# -- h: seeds --------------------------------------------------------------


def test_more_seeds_see_smaller_differences(visit, study):
    tab, found = visit(), rows_of(study, "differences")[0]
    sd = float(found["sd"])
    press(tab, "#seeds-n", "Home")
    for n in range(2, 9):
        assert tab.locator("output[for=seeds-n]").inner_text() == str(n)
        half = sd * stats.t.isf(0.025, n - 1) / n**0.5
        assert outcome(tab, "seeds", "halved") == f"±{formats.number(half, 4)}"
        assert outcome(tab, "seeds", "seen") == formats.number(sd * smallest_difference(n), 4)
        press(tab, "#seeds-n", "ArrowRight")
    assert outcome(visit(tab.evaluate("location.hash")), "seeds", "seen") == outcome(tab, "seeds", "seen")


def test_every_seed_is_a_point_where_its_file_has_it(visit, study):
    data = carried(study, "seeds")["data"]
    tab = visit()
    for at, method in enumerate(data["methods"]):
        tab.locator("#seeds-method").select_option(str(at))
        span, width = data["alphas"], data["right"] - data["left"]
        for seed in data["seeds"]:
            with (study / "sweep" / str(seed) / "runs.csv").open(encoding="utf-8", newline="") as file:
                rows = [
                    row
                    for row in csv.DictReader(file)
                    if all(row[key] == str(method[key]) for key in ("engine", "drafter", "gamma"))
                ]
            alpha = sum(int(row["accepted"]) for row in rows) / sum(int(row["examined"]) for row in rows)
            x = float(tab.locator(f'[data-strip=acceptance] circle[data-seed="{seed}"]').get_attribute("cx"))
            unit = width / (span["high"] - span["low"])
            assert x == pytest.approx(data["left"] + unit * (alpha - span["low"]), abs=0.0006 * unit)  # three digits
    tab.locator("#seeds-seed").select_option("2")
    assert tab.locator("#explore-seeds circle.chosen").count() == 6, "in each strip once"
    assert tab.locator("#explore-seeds circle.faint").count() == 12


# -- all of them ----------------------------------------------------------------------------------------------


def test_fingers_do_what_keys_do(visit):
    tab = visit(has_touch=True, viewport={"width": 390, "height": 800}, is_mobile=True)
    tab.locator('#explore-mask tr[data-row="4"] td').first.tap()
    assert tab.locator("#explore-mask tr.chosen").get_attribute("data-row") == "4"
    tab.locator("#explore-rule button[value='1']").tap()
    assert outcome(tab, "rule", "n") == "1"
    tab.locator("details[data-part=attention] summary").tap()
    assert tab.locator("details[data-part=attention]").get_attribute("open") is not None
    tab.locator("#explore-battery input[type=checkbox]").first.tap()
    assert outcome(tab, "battery", "slipped") != "0"
    tab.locator("#explore-seeds circle[data-seed='2']").first.tap()
    assert tab.locator("#seeds-seed").input_value() == "2"
    assert tab.locator("#explore-seeds .picked").inner_text().startswith("Seed 2:")
    tab.locator("#ledger-ledger tbody tr:nth-child(3) td").nth(3).tap()
    assert tab.locator("#ledger-ledger tbody tr:nth-child(3)").get_attribute("class") == "opened"
    assert tab.evaluate("document.documentElement.scrollWidth") <= 390


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_in_what_was_touched(visit, scheme):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe-playwright-python is not installed")
    states = "#mask=1,3,7&rule=1,ngram,1000&speedup=0.4,0.6,5,0&sample=9&ledger=4,cached,,8,descending&seeds=2,0,40"
    tab = visit(states + "&battery=rule,mtp,1-gram&module=head,1&waterfall=1", color_scheme=scheme)
    tab.add_style_tag(content=".scroll { background: none !important }")
    found = axe.Axe().run(tab, context="main")
    assert found.violations_count == 0, found.generate_report()


def test_every_table_downloads_as_it_lies_on_disk(visit, study):
    """What each link holds, and through the browser the first and the last of them."""
    tab = visit()
    links = tab.locator("#downloads a[download$='.csv']").all()
    links = [link for link in links if (study / "tables" / link.get_attribute("download")).exists()]
    assert len(links) >= 15
    for link in links:
        content = unquote_to_bytes(link.get_attribute("href").removeprefix("data:text/csv;charset=utf-8,"))
        assert content == (study / "tables" / link.get_attribute("download")).read_bytes()
    for link in (links[0], links[-1]):
        with tab.expect_download() as waiting:
            link.click()
        assert waiting.value.suggested_filename == link.get_attribute("download")
        content = (study / "tables" / link.get_attribute("download")).read_bytes()
        assert Path(waiting.value.path()).read_bytes() == content


def test_paper_shows_states_without_controls(visit):
    tab = visit()
    tab.emulate_media(media="print")
    tab.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert tab.locator(".explorable :is(select, button.act, input[type=range]):visible").count() == 0
    assert tab.locator("#explore-module details:not([open])").count() == 0
    assert tab.locator("#explore-rule tbody tr").first.is_visible()
