"""The simulation of a study on many workers: by hand, within its bounds, and on Snakemake's own graph."""

import random
import sys

import pytest
from clone import ROOT
from planning import Planned, environment
from reruns import EACH_SEED, HEADS
from specledger.foundation.errors import UserError

sys.path.insert(0, str(ROOT / "benchmarks"))
import makespan as simulation


def test_by_hand():
    """a 3 s; b 1 s and c 4 s after a; d 2 s after b and c."""
    seconds, needs = {"a": 3, "b": 1, "c": 4, "d": 2}, {"a": set(), "b": {"a"}, "c": {"a"}, "d": {"b", "c"}}
    assert simulation.ways(seconds, needs) == {"a": 9, "b": 3, "c": 6, "d": 2}
    assert [simulation.makespan(seconds, needs, workers) for workers in (1, 2, 1000)] == [10, 9, 9]


@pytest.mark.parametrize("seed", range(20))
def test_between_its_bounds(seed):
    """Never under total / workers or the longest chain, never over their sum (Graham 1969)."""
    choose = random.Random(seed)
    names = [str(number) for number in range(40)]
    seconds = {name: choose.uniform(1, 9) for name in names}
    needs = {
        name: set(choose.sample(names[:place], min(place, choose.randint(0, 3)))) for place, name in enumerate(names)
    }
    longest, total = max(simulation.ways(seconds, needs).values()), sum(seconds.values())
    for workers in (1, 2, 3, 7, 1000):
        took = simulation.makespan(seconds, needs, workers)
        assert max(longest, total / workers) - 1e-9 <= took <= longest + total / workers + 1e-9
    assert simulation.makespan(seconds, needs, 1) == pytest.approx(total)
    assert simulation.makespan(seconds, needs, 1000) == pytest.approx(longest)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (None, "can't be read as YAML"),
        ("seeds: [1", "can't be read as YAML"),
        ("- 1", "holds no keys"),
        ("seeds: [one]", 'config seeds[0]: "one"'),
        ("seed: 1", "config seed: unknown key"),
    ],
)
def test_a_bad_configfile_is_one_line(text, expected, tmp_path, monkeypatch):
    path = tmp_path / "mine.yaml"
    if text is not None:
        path.write_text(text)
    monkeypatch.setattr(sys, "argv", ["makespan.py", "--configfile", str(path)])
    with pytest.raises(SystemExit) as caught:
        simulation.main()
    said = str(caught.value)
    assert said.startswith("makespan: ") and expected in said and "\n" not in said


def test_on_the_graph_of_a_study(tmp_path, monkeypatch):
    study = Planned.in_folder(tmp_path)
    monkeypatch.chdir(study.checkout)
    with environment(SPECLEDGER_CORPUS=str(study.corpus)):
        jobs = simulation.graph(study.checkout / "Snakefile", [study.config])
    assert len(jobs) == 1 + 1 + 6 + 2 * len(HEADS) + 2 * len(EACH_SEED) + 1 + 4
    assert jobs["train mtp 2"][2] == {"corpus"} and "train mtp 2" in jobs["sweep_of_seed 2"][2]
    assert jobs["head medusa2 1"][0] == "head medusa2" and "head medusa1 1" in jobs["head medusa2 1"][2]
    with pytest.raises(UserError, match="no seconds of acceptance_of_seed, checks_of_seed"):
        simulation.measured(jobs)
    for kind, path, _ in jobs.values():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"s\th:m:s\n{100 if kind.startswith('train') else 10}\t-\n")
    jobs["train mtp 2"][1].unlink()  # its seconds are those of the other seed
    seconds = simulation.measured(jobs)
    assert seconds["train mtp 2"] == 100
    found = simulation.table(seconds, {name: needs for name, (_, _, needs) in jobs.items()}, (1, 1000))
    assert found.attrs["longest_h"] * 3600 == pytest.approx(
        10 + 100 + 10 * 2 + 10 + 10 + 10 * 3
    )  # medusa1 and 2, trees, and the report
    assert found.hours[1] * 3600 == pytest.approx(180) and found.speedup[0] == pytest.approx(1)
