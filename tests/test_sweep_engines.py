"""An engine that can't be compiled is told of and left out; the others go on."""

from small import drafters_of, sizes, tiny_llama
from specledger.commands import sweep
from specledger.decoding import steps
from specledger.experiments.cast import Cast
from specledger.sampling.distributions import Sampling

TARGET = tiny_llama(sizes(context=24), seed=31)
CAST = Cast(target=TARGET, drafters=drafters_of(TARGET))
NAMES = ["recompute", "cached", "compiled"]


class Said:
    def __init__(self):
        self.lines = []

    def say(self, line: str) -> None:
        self.lines.append(line)


def used(gammas):
    log = Said()
    warming = {"count": 8, "sampling": Sampling(), "seed": 1}
    engines, rows = sweep.usable_engines(CAST, NAMES, gammas, [1, 2, 3], log=log, **warming)
    return [executed.name for executed in engines], rows, log.lines


def test_without_a_compiler(monkeypatch):
    monkeypatch.setattr(sweep, "not_compiled", lambda device: "no C++ compiler found")
    names, rows, lines = used({"ngram": [2]})
    assert names == ["recompute", "cached"]
    assert [(row["engine"], row["available"], row["why"]) for row in rows] == [
        ("recompute", True, None), ("cached", True, None), ("compiled", False, "no C++ compiler found"),
    ]  # fmt: skip
    assert lines == ["sweep: engine compiled is left out: no C++ compiler found"]


def test_a_compiler_that_fails(monkeypatch):
    def failing(function, tensors):
        raise steps.NotCompiled("engine compiled: the compiler failed (g++ was killed)")

    monkeypatch.setattr(sweep, "not_compiled", lambda device: None)
    monkeypatch.setattr(steps, "compiled", failing)
    names, rows, lines = used({"ngram": [2]})
    assert names == ["recompute", "cached"]
    assert rows[-1]["why"] == "engine compiled: the compiler failed (g++ was killed)"
    assert lines[-1] == "sweep: engine compiled is left out: engine compiled: the compiler failed (g++ was killed)"


def test_what_compiles_is_warm_before_it_is_timed(monkeypatch):
    """Every step of every method has been compiled once the sweep begins."""
    compiled = []
    monkeypatch.setattr(sweep, "not_compiled", lambda device: None)
    monkeypatch.setattr(steps, "compiled", lambda function, tensors: compiled.append(1) or function)
    names, rows, _ = used({"draft": [1, 3], "ngram": [2], "mtp": [1]})
    assert names == NAMES and rows[-1]["compile_s"] > 0
    # Verdicts at gamma 0, 1, 2 and 3, drafts at 1 and 3, the module at 1.
    assert len(compiled) == 7
    assert [row["compile_s"] for row in rows[:2]] == [0, 0]
