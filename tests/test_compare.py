"""A study beside a reference: what agrees, what differs, what is open, and what is said and not compared."""

import csv
import json
import shutil
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import synthetic
import synthetic_evidence
import yaml
from scipy import stats
from specledger.commands.run import main
from specledger.compare.figures import Figure, figures, made_of
from specledger.compare.judging import AGREES, APART, DIFFERS, UNDECIDED, Pair, Rules, judge
from specledger.compare.side import Side, changed, in_words
from specledger.compare.studies import COLUMNS, compared, whole
from specledger.statistics.intervals import t_interval
from specledger.statistics.rates import clopper_pearson
from synthetic_files import write_csv, write_json

ROOT = Path(__file__).resolve().parents[1]
SETTINGS = yaml.safe_load((ROOT / "config" / "config.yaml").read_text(encoding="utf-8"))["compare"]
RULES = Rules(**{name: SETTINGS[name] for name in ("difference_level", "equivalence_level", "margins")})


def rewrite(folder: Path, name: str, change) -> None:
    """Each row of a table, changed; rows for which `change` gives None go."""
    path = folder / "tables" / f"{name}.csv"
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    write_csv(path, [new for row in rows if (new := change(dict(row))) is not None], list(rows[0]))


def longer_texts(row: dict) -> dict:
    """A row of the ledger as texts sixty-four times as long would give it: values near the truth, intervals narrow."""
    truth = {
        "alpha": synthetic_evidence.ALPHAS.get(row["drafter"], 0.8),
        "tokens_per_round": 1 + 0.7 * len(row["gamma"]),
    }
    for column, value in truth.items():
        if row[f"{column}_lo"]:
            found, ends = float(row[column]), [float(row[f"{column}_{end}"]) for end in ("lo", "hi")]
            near = value + (found - value) / 16
            row |= {
                column: near,
                **{f"{column}_{e}": near + (at - found) / 16 for e, at in zip(("lo", "hi"), ends, strict=True)},
            }
    return row


def study(folder: Path, seeds) -> Path:
    synthetic.write_synthetic_study(folder, tuple(seeds))
    rewrite(folder, "ledger", longer_texts)
    return folder


@pytest.fixture(scope="module")
def reference(tmp_path_factory):
    return study(tmp_path_factory.mktemp("reference"), range(1, 9))


@pytest.fixture(scope="module")
def three(tmp_path_factory):
    return study(tmp_path_factory.mktemp("three"), (1, 2, 3))


@pytest.fixture
def yours(three, tmp_path):
    return Path(shutil.copytree(three, tmp_path / "yours"))


def sides(yours: Path, reference: Path) -> tuple[Side, Side]:
    return Side.of(yours / "tables"), Side.of(reference / "tables")


def verdicts(yours: Path, reference: Path, **options) -> dict[tuple, str]:
    return {pair.figure.key: pair.verdict for pair in compared(*sides(yours, reference), RULES, **options)}


def of(found: dict[tuple, str], topic: str, **cells: str) -> set[str]:
    at = {"quantity": 1, "engine": 2, "name": 3, "gamma": 4}
    chosen = {v for k, v in found.items() if k[0] == topic and all(k[at[n]] == c for n, c in cells.items())}
    assert chosen, f"no figure of {topic} {cells}"
    return chosen


def test_three_seeds_agree_with_eight_in_every_row_that_should(three, reference):
    found = verdicts(three, reference)
    for topic in ("losses", "acceptance", "tokens per round", "distribution kept"):
        assert of(found, topic) == {AGREES}, topic
    assert of(found, "controls caught") == {AGREES, APART}  # of some, so many draws can't tell
    assert of(found, "ratios of times") == {APART}  # the machine is not known
    assert whole(compared(*sides(three, reference), RULES)) == AGREES


def test_a_study_agrees_with_its_copy_however_wide_its_intervals_are(yours, three):
    assert {v for k, v in verdicts(yours, three).items() if k[0] != "ratios of times"} == {AGREES, APART}


def test_a_rule_that_accepts_five_percent_too_much_differs(tmp_path, monkeypatch, reference):
    lenient = partial(synthetic_evidence.write_positions, lenience=1.05)
    monkeypatch.setattr(synthetic_evidence, "write_positions", lenient)
    found = verdicts(study(tmp_path, (1, 2, 3)), reference)
    kept = {"topic": "distribution kept", "name": "draft"}
    assert of(found, quantity="drawn at few positions", **kept) == {DIFFERS}
    assert of(found, quantity="accepted as Σ min(p, q)", **kept) == {DIFFERS}
    assert of(found, "losses") == {AGREES}


HALF = {"plain": 1.585, "mtp": 1.58, "draft": synthetic.LOSSES["draft"]}


def test_a_target_that_was_trained_half_as_long_differs(tmp_path, monkeypatch, reference):
    monkeypatch.setattr(synthetic, "LOSSES", HALF)
    found = verdicts(study(tmp_path, (1, 2, 3)), reference)
    assert of(found, "losses", name="mtp") == of(found, "losses", name="plain") == {DIFFERS}
    assert of(found, "losses", name="draft") == of(found, "distribution kept") == {AGREES}


def certified(folder: Path, stage: str, seed: int = 1, files: dict | None = None, **changes) -> None:
    """A certificate of a training, or of a stage."""
    settings = {"training": {"steps": 5000, "batch": 32}, "device": "cpu", "threads": 1} | changes.pop("settings", {})
    record = {"settings": settings, "settings_hash": str(settings), "code_hash": "1", "device": "a CPU", "threads": 1}
    record |= {"versions": {"torch": "2"}, "inputs": {"text": "t"}, "files": files or {}} | changes
    where = folder / "models" / stage if stage in ("plain", "mtp", "draft") else folder / stage
    write_json(where / str(seed) / "certificate.json", record)


def test_other_settings_are_said_and_not_compared_unless_it_is_asked_for(tmp_path, monkeypatch, reference):
    monkeypatch.setattr(synthetic, "LOSSES", HALF)
    yours, theirs = study(tmp_path / "yours", (1, 2, 3)), tmp_path / "reference"
    shutil.copytree(reference, theirs)
    certified(theirs, "mtp")
    certified(yours, "mtp", settings={"training": {"steps": 2500, "batch": 32}})
    (line,) = [line for line in in_words(*sides(yours, theirs)) if "steps" in line]
    assert line == "mtp: training.steps is 2500, in the reference 5000"
    found = verdicts(yours, theirs)
    assert of(found, "losses", name="mtp") == of(found, "acceptance") == {APART}
    assert of(found, "losses", name="draft") == {AGREES} and of(found, "losses", name="plain") == {DIFFERS}
    assert of(verdicts(yours, theirs, despite_settings=True), "losses", name="mtp") == {DIFFERS}


def test_fewer_texts_are_said_and_compared(yours, tmp_path, reference):
    theirs = Path(shutil.copytree(reference, tmp_path / "reference"))
    certified(yours, "sweep", settings={"repeats": 5, "stop": {"blocks": 3}, "device": "cuda"})
    certified(theirs, "sweep", settings={"repeats": 10, "stop": {"blocks": 5}})
    blocked, said = changed(*sides(yours, theirs))
    assert not blocked and len(said) == 1 and said[0].count("in the reference") == 3
    assert of(verdicts(yours, theirs), "acceptance") == {AGREES}


def test_few_seeds_decide_nothing(tmp_path, reference):
    one = verdicts(study(tmp_path / "one", (1,)), reference)
    assert of(one, "losses", quantity="validation_mtp_loss") == of(one, "acceptance") == {UNDECIDED}
    assert of(one, "losses", name="ngram") == {AGREES}
    assert of(one, "distribution kept", quantity="drawn at few positions") == {UNDECIDED}  # an eighth of the draws
    two = study(tmp_path / "two", (1, 2))
    rewrite(
        two,
        "models",
        lambda row: row | {"validation_loss_lo": 1.4, "validation_loss_hi": 1.65} if row["n"] == "2" else row,
    )
    assert of(verdicts(two, reference), "losses", name="mtp", quantity="validation_loss") == {UNDECIDED}


def test_rows_of_one_side_alone_are_said(yours, reference):
    rewrite(yours, "ledger", lambda row: None if row["drafter"] == "lookup" else row)
    rewrite(yours, "models", lambda row: row | {"model": "large"} if row["model"] == "plain" else row)
    pairs = {pair.figure.key: pair for pair in compared(*sides(yours, reference), RULES)}
    gone = [pair for key, pair in pairs.items() if key[3] == "lookup" and key[0] == "acceptance"]
    assert gone and {(pair.verdict, pair.why) for pair in gone} == {(APART, "only in the reference")}
    assert {pair.why for key, pair in pairs.items() if key[3] == "large"} == {"only in yours"}


def test_of_another_text_nothing_is_compared(yours, reference):
    record = json.loads((yours / "corpus" / "corpus.json").read_text())
    write_json(yours / "corpus" / "corpus.json", record | {"sha256": "0" * 64})
    pairs = compared(*sides(yours, reference), RULES)
    assert {pair.verdict for pair in pairs} == {APART} and whole(pairs) == APART
    assert in_words(*sides(yours, reference))[0].startswith("another text: sha256 is 0000")


def test_a_departure_in_the_reference_alone_is_a_difference_too(three, reference):
    assert set(verdicts(reference, three).values()) <= {AGREES, APART, UNDECIDED}
    key = next(key for key, one in figures(Side.of(three / "tables")).items() if one.kind == "test")
    pairs = [Pair(yours=one, reference=replace(one, value=1e-9)) for one in (figures(Side.of(three / "tables"))[key],)]
    judge(pairs, RULES)
    assert (pairs[0].verdict, pairs[0].why) == (DIFFERS, "the distribution departs in the reference alone")


def test_a_control_that_got_away_differs(yours, reference):
    missed = "accept always"
    rewrite(yours, "controls", lambda row: row | {"caught": "false"} if row["rule"] == missed else row)
    found = verdicts(yours, reference)
    assert of(found, "controls caught", quantity=missed) == {DIFFERS}
    assert of(found, "controls caught", quantity="resample from p") == {AGREES}


def test_weights_are_held_to_the_bit_only_where_they_were_made_alike(yours, tmp_path, reference):
    theirs = Path(shutil.copytree(reference, tmp_path / "reference"))
    for seed in (1, 2):
        certified(theirs, "mtp", seed, {"model.safetensors": f"{seed}"})
        certified(yours, "mtp", seed, {"model.safetensors": f"{seed}"})
    certified(theirs, "draft", 1, {"model.safetensors": "1"})
    certified(yours, "draft", 1, {"model.safetensors": "2"}, device="another CPU")
    found = verdicts(yours, theirs)
    assert of(found, "weights", name="mtp") == {AGREES} and of(found, "weights", name="draft") == {APART}
    certified(yours, "mtp", 2, {"model.safetensors": "other"})
    (pair,) = [
        p for p in compared(*sides(yours, theirs), RULES) if p.figure.topic == "weights" and p.figure.name == "mtp"
    ]
    assert (pair.verdict, pair.why) == (DIFFERS, "equal for 1 of 2 seed(s) made alike")


def test_ratios_of_times_are_compared_on_one_machine_alone(yours, tmp_path, reference):
    theirs = Path(shutil.copytree(reference, tmp_path / "reference"))
    certified(theirs, "sweep")
    certified(yours, "sweep")
    assert DIFFERS not in of(verdicts(yours, theirs), "ratios of times") - {APART}
    certified(yours, "sweep", device="a GPU")
    assert of(verdicts(yours, theirs), "ratios of times") == {APART}


# --- the rules by simulation ---


def simulated(
    rng: np.random.Generator, seeds: tuple[int, int], count: int, shift: float = 0.0, sd: float = 0.01
) -> list[Pair]:
    """Means over seeds of two studies of the same law, the first moved by `shift`, with the intervals of the tables."""

    def figure(n: int, by: float) -> Figure:
        one = t_interval(rng.normal(1.5 + by, sd, n))
        return Figure(topic="losses", quantity="", margin="loss", value=one.mean, lo=one.lo, hi=one.hi, n=n)

    return [Pair(yours=figure(seeds[0], shift), reference=figure(seeds[1], 0.0)) for _ in range(count)]


@pytest.mark.parametrize("seeds", [(3, 8), (8, 8), (2, 3)])
def test_false_alarms_come_as_seldom_as_the_level_says(seeds):
    """Two studies of the same law differ in any of 20 figures as often as the level allows, and not more."""
    rng, trials, level = np.random.default_rng(19), 600, 0.05
    rules, alarms = replace(RULES, difference_level=level), 0
    for _ in range(trials):
        pairs = simulated(rng, seeds, 20)
        judge(pairs, rules)
        alarms += any(pair.verdict == DIFFERS for pair in pairs)
    # Holm over independent figures is all but exact: the whole 99.9% interval of the rate holds the level.
    rate = clopper_pearson(alarms, trials, 0.999)
    assert rate.lo <= level <= rate.hi, f"{alarms} alarms in {trials}"


def test_agreement_is_claimed_at_the_margins_edge_as_seldom_as_its_level_says():
    rng, pairs = np.random.default_rng(20), []
    pairs = simulated(rng, (3, 8), 3000, shift=RULES.margins["loss"], sd=0.006)
    judge(pairs, replace(RULES, difference_level=1e-12))
    claimed = sum(pair.verdict == AGREES for pair in pairs)
    assert clopper_pearson(claimed, len(pairs), 0.999).lo <= RULES.equivalence_level, claimed
    near = simulated(rng, (3, 8), 500, sd=0.006)
    judge(near, RULES)
    assert sum(pair.verdict == AGREES for pair in near) > 0.8 * len(near)


def test_a_difference_has_the_p_value_of_the_pooled_t_test():
    rng = np.random.default_rng(3)
    one, two = rng.normal(1.5, 0.01, 3), rng.normal(1.51, 0.01, 8)
    found = [t_interval(values) for values in (one, two)]
    cells = [Figure(topic="", quantity="", margin="loss", value=i.mean, lo=i.lo, hi=i.hi, n=i.n) for i in found]
    pair = Pair(yours=cells[0], reference=cells[1])
    judge([pair], RULES)
    assert pair.p_value == pytest.approx(stats.ttest_ind(one, two).pvalue)
    welch = stats.ttest_ind(one, two, equal_var=False).confidence_interval(0.9)
    assert (pair.lo, pair.hi) == pytest.approx((welch.low, welch.high))


def test_drafters_rest_on_what_they_are_made_of():
    assert made_of("draft_tree") == made_of("draft_dynamic") == ("mtp", "draft")
    assert made_of("medusa2") == ("mtp", "medusa2", "medusa1")
    assert made_of("mtp_chained") == made_of("lookup") == ("mtp",)


# --- the stage ---


def stage(folder: Path, tables: Path, **changes) -> int:
    options = ["--tables", str(tables), "--page", str(folder / "compare.html"), "--output", str(folder / "compare.csv")]
    return main(["compare", "--settings", json.dumps(SETTINGS | changes), "--code", "c", *options])


def test_the_stage_writes_table_page_and_certificate(tmp_path, three, reference, capsys):
    assert stage(tmp_path, three / "tables", reference=str(reference / "tables")) == 0
    assert "compare: agrees (" in capsys.readouterr().err
    with (tmp_path / "compare.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == list(COLUMNS) and {row["topic"] for row in rows} >= {"losses", "controls caught"}
    record = json.loads((tmp_path / "certificate.json").read_text())
    assert record["stage"] == "compare" and {"yours/ledger.csv", "reference/ledger.csv"} <= record["inputs"].keys()
    page = (tmp_path / "compare.html").read_text()
    assert "The study agrees with the reference" in page and "seeds 3 (1, 2, 3), in the reference 8" in page
    explained = (ROOT / "workflow" / "report" / "results.md").read_text(encoding="utf-8").partition("## compare.csv")[2]
    assert all(column.removesuffix("_lo").removesuffix("_hi") in explained for column in COLUMNS)


def test_no_reference_is_one_line_that_says_what_to_do(tmp_path, three, capsys):
    assert stage(tmp_path, three / "tables", reference=str(tmp_path / "none")) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert f"{tmp_path / 'none'}: no tables of a reference there; keep one with" in line and "compare.reference" in line
    assert stage(tmp_path, three / "tables", reference=str(three / "tables")) == 1
    assert "a study beside itself" in capsys.readouterr().err
