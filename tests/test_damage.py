"""Damaged tables, records, models and places: file, row, column and value are named, and nothing is half written."""

import json

import numpy as np
import pytest
import test_ledger
import yaml
from clone import ROOT
from planning import Planned
from small import CPU, drafters_of, play, sizes, tiny_llama, tiny_mtp
from specledger.analysis import claims, columns, raw, rules
from specledger.analysis.measures import SAMPLED, Measured, resting_on
from specledger.corpus.source import TINY_CHARACTERS, TINY_SYMBOLS
from specledger.corpus.text import AHEAD, check_fits, check_usable, max_order
from specledger.drafters.ngram import NGram
from specledger.experiments.bundle import ModelBundle, load_bundle
from specledger.foundation import config as configuration
from specledger.foundation.errors import UserError
from specledger.foundation.records import write_rows
from specledger.models.storage import save_model
from specledger.reporting.tables import read_table
from specledger.tables.raw import RAW
from test_ledger import run

results = test_ledger.results
STUDY = yaml.safe_load((ROOT / "config" / "config.yaml").read_text(encoding="utf-8"))


def edited(path, row: int, column: str, value: str) -> None:
    """The file with one cell of its table set, as a hand with an editor does."""
    lines = path.read_text(encoding="utf-8").splitlines()
    cells = lines[row].split(",")
    cells[lines[0].split(",").index(column)] = value
    lines[row] = ",".join(cells)
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


CELLS = [
    ("sweep/1/runs.csv", "wall_s", "abc", "must be a number above 0"),
    ("sweep/1/runs.csv", "wall_s", "", "must be a number above 0"),
    ("sweep/1/runs.csv", "wall_s", "0", "must be a number above 0"),
    ("sweep/1/runs.csv", "wall_s", "-0.5", "must be a number above 0"),
    ("sweep/1/runs.csv", "wall_s", "inf", "must be a number above 0"),
    ("sweep/1/runs.csv", "wall_s", "nan", "must be a number above 0"),
    ("sweep/1/runs.csv", "draft_s", "-1", "must be a number of at least 0 or empty"),
    ("sweep/1/runs.csv", "tokens", "0", "must be a whole number of at least 1"),
    ("sweep/1/runs.csv", "tokens", "12.5", "must be a whole number of at least 1"),
    ("sweep/1/runs.csv", "tokens", "99999999999999999999", "must be a whole number of at least 1"),
    ("sweep/1/runs.csv", "accepted", "99", "must be at most examined, 80"),
    ("sweep/1/runs.csv", "clocked", "perhaps", "must be true or false"),
    ("sweep/1/runs.csv", "engine", "", "must not be empty"),
    ("sweep/1/runs.csv", "engine", "cashed", "must be one of recompute, cached"),
    ("sweep/1/runs.csv", "drafter", "drafft", "must be one of none, draft"),
    ("acceptance/1/contexts.csv", "chi2", "-1", "must be a number of at least 0 or empty"),
    ("sweep/1/runs.csv", "seed", "one", "must be a whole number from 0 to"),
    ("sweep/1/forwards.csv", "seconds", "1,5", "row 3 has|cells|number"),
    ("sweep/1/forwards.csv", "positions", "-3", "must be a whole number of at least 1"),
    ("acceptance/1/draws.csv", "accepted", "2000", "must be at most draws, 1000"),
    ("acceptance/1/draws.csv", "beta", "1.5", "must be a number from 0 to 1"),
    ("acceptance/1/contexts.csv", "p_value", "7", "must be a number from 0 to 1 or empty"),
    ("checks/1/greedy.csv", "identical", "yes", "must be true or false"),
    ("checks/1/oracle.csv", "max_abs_deviation", "tiny", "must be a number of at least 0"),
    ("controls/1/false_alarms.csv", "rejected", "x", "must be a whole number of at least 0"),
    ("sequences/1/sequences.csv", "p_value", "#REF!", "must be a number from 0 to 1 or empty"),
]


@pytest.mark.parametrize(("name", "column", "value", "allowed"), CELLS, ids=[f"{c[1]}={c[2]}" for c in CELLS])
def test_a_cell_that_a_hand_has_changed_is_named(results, name, column, value, allowed):
    row = 3 if name.endswith(("runs.csv", "forwards.csv")) else 1
    edited(results / name, row, column, value)
    with pytest.raises(UserError) as refused:
        run(results)
    message = str(refused.value)
    assert name in message and "\n" not in message
    if "," not in value:
        assert f"row {row}, column {column}: {value!r} — {allowed}" in message, message
        assert message.endswith("delete it and run snakemake again")
    assert not (results / "tables").exists()


def test_a_table_may_hold_columns_that_nobody_declared_and_numbers_as_others_write_them(results):
    path = results / "sweep" / "1" / "engines.csv"
    path.write_text(path.read_text().replace("available", "available,mine").replace("false", "FALSE,x"))
    edited(results / "sweep" / "1" / "runs.csv", 1, "wall_s", "8.00e0")
    run(results)


def test_digits_of_a_context_stay_text(tmp_path):
    path = tmp_path / "draws.csv"
    write_rows(path, [{"seed": 1, "context": "007"}, {"seed": 1, "context": "12"}])
    assert raw.read_csv(path, ["context"], 1)["context"].tolist() == ["007", "12"]


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (lambda text: text.replace("seed,", "seed,seed,", 1), "column seed stands there twice"),
        (lambda text: text.replace("\n", ",\n").replace(",\n", "\n", 1), r"row 1 has \d+ cells, the header \d+"),
        (lambda text: text + "1,2\n", r"row \d+, column \w+: ''"),
        (lambda text: text + '1,"2\n', "not a CSV table"),
        (lambda text: "", "column seed is missing"),
        (lambda text: text.replace(",", ";"), "column seed is missing"),
        (lambda text: text.replace(",", "\t"), "column seed is missing"),
        (lambda text: "<html>404</html>\n", "column seed is missing"),
        (lambda text: text + "\n\n", r"row \d+, column \w+: ''"),
        (lambda text: text.splitlines()[0] + "\n", "holds no rows"),
    ],
)
def test_a_table_that_was_damaged_is_named(damage, words, results):
    path = results / "sweep" / "2" / "runs.csv"
    path.write_text(damage(path.read_text()))
    with pytest.raises(UserError, match=rf"sweep/2/runs\.csv: {words}"):
        run(results)


@pytest.mark.parametrize("content", [b"\xff\xfe\x00", b"\x00" * 100, b"\x1f\x8b\x08"])
def test_bytes_that_are_no_text_are_named(content, results):
    for name in ("sweep/1/runs.csv", "models/mtp/1/training.json", "ngram/ngram.json"):
        before = (results / name).read_bytes()
        (results / name).write_bytes(content)
        with pytest.raises(UserError, match=name):
            run(results)
        (results / name).write_bytes(before)


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("validation_loss", None, "must be a number of at least 0"),
        ("validation_loss", "1.5", "must be a number of at least 0"),
        ("train_s", -1, "must be a number of at least 0"),
        ("steps", 0, "must be a whole number of at least 1"),
        ("steps", True, "must be a whole number of at least 1"),
        ("learning_rate", 0, "must be a number above 0"),
    ],
)
def test_a_record_that_a_hand_has_changed_is_named(key, value, words, results):
    path = results / "models" / "mtp" / "1" / "training.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {key: value}))
    with pytest.raises(UserError, match=rf"mtp/1/training\.json: {key}: .* — {words}; delete it and run"):
        run(results)
    path.write_text(json.dumps({name: one for name, one in json.loads(path.read_text()).items() if name != key}))
    with pytest.raises(UserError, match=rf"mtp/1/training\.json: key {key} is missing"):
        run(results)


@pytest.mark.parametrize("value", ["abc", "1,2", "--"])
def test_a_table_of_the_report_names_text_in_place_of_a_number(value, tmp_path):
    path = tmp_path / "ledger.csv"
    path.write_text(f'engine,alpha\ncached,0.5\ncached,"{value}"\n')
    with pytest.raises(UserError, match=rf"ledger\.csv: row 2, column alpha: '{value}' — must be a number, true"):
        read_table(path, "engine alpha")


def test_every_column_of_the_raw_tables_is_declared():
    unknown = {(name, column) for name, table in RAW.items() for column in table.names if column not in columns.KINDS}
    assert not unknown


# --- the sample behind a verdict ---


NEEDY = {"kind": "at_most", "limit": 0.02, "needs": {"draws": 200_000}}


def measured(value: float, draws: int) -> Measured:
    return Measured(value=value, interval="made up", exact=True, sample={"draws": draws})


@pytest.mark.parametrize("value", [0.001, 0.5])
def test_a_smaller_sample_than_the_rule_needs_is_inconclusive_either_way(value):
    found = rules.judge(NEEDY, "back at p", measured(value, 2000))
    assert (found.verdict, found.key) == (rules.INCONCLUSIVE, "sample")
    assert found.reason == "it rests on 2,000 draws a position, and the rule needs 200,000"
    whole = rules.judge(NEEDY, "back at p", measured(value, 200_000))
    assert whole.verdict == (rules.REPRODUCED if value < 0.02 else rules.NOT_REPRODUCED)


def test_the_least_sample_counts():
    found = resting_on(measured(1.0, 1), draws=np.array([5000, 2000, 9000]))
    assert found.sample == {"draws": 2000}
    assert resting_on(None, draws=np.array([1])) is None


def test_what_the_readings_need_is_what_their_quantities_tell(tmp_path):
    needing = [one for one in claims.read_claims(ROOT / "config" / "claims.yaml") if "needs" in one.rule]
    assert {one.measure["quantity"] for one in needing} >= {"tv_bound", "output_distance", "one_text"}
    for one in needing:
        assert one.rule["needs"].keys() <= SAMPLED[one.measure["quantity"]] and one.comparable is None
    assert {name for told in SAMPLED.values() for name in told} == set(rules.SAMPLES)


@pytest.mark.parametrize(
    ("needs", "words"), [({"texts": 5}, "unknown key texts"), ({"draws": 0}, "at least 1"), (5, "expected a mapping")]
)
def test_a_wrong_need_is_refused(needs, words):
    content = yaml.safe_load((ROOT / "config" / "claims.yaml").read_text(encoding="utf-8"))
    entry = next(one for one in content["claims"] if one["id"] == "output-distance-bound")
    with pytest.raises(UserError, match=words):
        claims.parse_claim(entry | {"rule": {**entry["rule"], "needs": needs}}, "here")


# --- the text and the configuration ---


def many_symbols(count: int) -> str:
    return "".join(chr(0x4E00 + place) for place in range(count)) * (40_000 // count + 1) + "ROMEO:\n" * 2000


@pytest.mark.parametrize(("symbols", "order", "most"), [(292, 8, 7), (6993, 5, 4), (58, 8, None)])
def test_more_symbols_than_an_n_gram_can_count_are_refused_with_the_key(symbols, order, most):
    study = {"name": "mine.txt", "context": 64, "validation_fraction": 0.1, "prompt": "ROMEO:\n", "order": order}
    if most is None:
        check_usable(many_symbols(symbols), **study)
        return
    with pytest.raises(UserError, match=rf"^config ngram\.order: {order} — must be at most {most} for the .*mine\.txt"):
        check_usable(many_symbols(symbols), **study)
    check_usable(many_symbols(symbols), **{**study, "order": most})
    tokens = np.arange(symbols + 7)
    NGram.count(tokens, vocabulary=symbols + 7, order=max_order(symbols + 7), discount=0.5)


def test_what_heads_look_at_behind_a_context_must_fit():
    asked = {"name": "x", "context": 64, "validation_fraction": 0.5, "prompt": "ab"}
    check_fits(2 * (64 + AHEAD), "ab", **asked)
    with pytest.raises(UserError, match="at least 70 are needed"):
        check_fits(2 * (64 + AHEAD) - 1, "ab", **asked)


@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        ("model.context", 16_384, None),
        ("acceptance.positions", 1000, None),
        ("corpus.validation_fraction", 0.001, None),
        ("model.context", 16_000, r"leave 1116 for validation"),
        ("corpus.prompt", "Zäh", r"lacks 'ä' of the prompt"),
    ],
)
def test_a_configuration_is_held_against_the_text_that_is_to_be_downloaded(path, value, words):
    config = json.loads(json.dumps(STUDY))
    part, key = path.split(".")
    config[part][key] = value
    if words and "validation" in words:
        config["corpus"]["validation_fraction"] = 0.001
    asked = configuration.asked_of_text(config)
    if words is None:
        check_fits(TINY_CHARACTERS, TINY_SYMBOLS, name="tiny shakespeare", **asked)
        return
    with pytest.raises(UserError, match=words):
        check_fits(TINY_CHARACTERS, TINY_SYMBOLS, name="tiny shakespeare", **asked)


# --- places ---


def test_places_that_are_something_else_are_named(tmp_path):
    configuration.check_place(tmp_path / "results" / "study")
    (tmp_path / "results").write_text("")
    with pytest.raises(UserError, match=r"results: is a file, and results go into a folder of that name"):
        configuration.check_place(tmp_path / "results" / "study")
    (tmp_path / "report").symlink_to(tmp_path / "nowhere")
    with pytest.raises(UserError, match=r"report: is a link to nothing"):
        configuration.check_place(tmp_path / "report")
    (tmp_path / "there").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "there")
    configuration.check_place(tmp_path / "link" / "study")


def test_a_clone_below_braces_is_refused(tmp_path):
    """Snakemake would end in a NameError, from the paths of its conda environments."""
    study = Planned.in_folder(tmp_path / "{x}")
    with pytest.raises(SystemExit, match=r"\{x\}/a clone: Snakemake reads braces as names to fill in; move the clone"):
        study.jobs()


# --- models of another text ---


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """Target, draft and n-gram of 7 symbols, and each of them of 9."""
    folder = tmp_path_factory.mktemp("models")
    for symbols in (7, 9):
        target, draft = sizes(symbols), sizes(symbols, layers=1, width=8)
        save_model(folder / f"mtp{symbols}", tiny_llama(target, seed=1), tiny_mtp(target, seed=2))
        save_model(folder / f"draft{symbols}", tiny_llama(draft, seed=3))
        tokens = np.random.default_rng(1).integers(symbols, size=300)
        NGram.count(tokens, vocabulary=symbols, order=2, discount=0.5).save(folder / f"ngram{symbols}")
    return folder


@pytest.mark.parametrize(
    ("mtp", "draft", "ngram", "wrong"), [(9, 7, 7, "mtp9"), (7, 9, 7, "draft9"), (7, 7, 9, "ngram9"), (7, 7, 7, None)]
)
def test_a_model_of_another_vocabulary_is_named(mtp, draft, ngram, wrong, models):
    files = {"mtp": models / f"mtp{mtp}", "draft": models / f"draft{draft}", "ngram": models / f"ngram{ngram}"}
    if wrong is None:
        load_bundle(**files, device=CPU, symbols=7)
        return
    with pytest.raises(UserError, match=rf"{wrong}: is of a vocabulary of 9 symbols, and this study's is of 7; delete"):
        load_bundle(**files, device=CPU, symbols=7)


def test_a_cast_is_of_one_vocabulary():
    drafters = drafters_of(tiny_llama(sizes(9), seed=1))
    with pytest.raises(ValueError, match="target and drafter draft must be of one vocabulary, got 7 and 9 symbols"):
        ModelBundle(target=tiny_llama(sizes(7), seed=1), drafters=drafters)


@pytest.mark.parametrize("row", [{"parents": "-1 5"}, {"parents": "a"}, {"drafter": "nobody"}, {"nodes": ""}])
def test_a_damaged_shape_is_named(row, models, tmp_path):
    good = {"seed": 1, "drafter": "ngram_tree", "nodes": 2, "used": 2, "depth": 2, "parents": "-1 0"}
    files = {"mtp": models / "mtp7", "draft": models / "draft7", "ngram": models / "ngram7"}
    write_rows(tmp_path / "shapes.csv", [good])
    load_bundle(**files, device=CPU, shapes=tmp_path / "shapes.csv")
    write_rows(tmp_path / "shapes.csv", [good, good | row])
    with pytest.raises(UserError, match=r"shapes\.csv: row 2: no tree of a drafter"):
        load_bundle(**files, device=CPU, shapes=tmp_path / "shapes.csv")


def test_a_play_of_carriage_returns_alone_is_a_text_like_any_other():
    text = play(3000).replace("\n", "\r")
    check_usable(text, name="mac.txt", context=64, validation_fraction=0.1, prompt="ROMEO:\r", order=5)
