"""An engine that can't be compiled is told of and left out; nothing is compiled while it is timed."""

from small import corpus_of, drafters_of, play, sizes, tiny_llama
from specledger.commands import sweep
from specledger.decoding import steps
from specledger.experiments.bundle import ModelBundle
from specledger.experiments.sweep import methods_of

CORPUS = corpus_of(play(6000))
TARGET = tiny_llama(sizes(len(CORPUS.vocabulary), context=24), seed=31)
BUNDLE = ModelBundle(target=TARGET, drafters=drafters_of(TARGET))
SETTINGS = {
    "engines": ["recompute", "cached", "compiled"], "gammas": {"draft": [1, 3], "ngram": [2], "mtp": [1]},
    "tokens": 8, "repeats": 1, "stop": {"half_width": 0.0, "blocks": 5}, "warmup_tokens": 8, "threads": 1,
    "sampling": {"temperature": 1.0, "top_k": None, "top_p": None},
}  # fmt: skip


class Said:
    def __init__(self):
        self.lines, self.path = [], None

    def say(self, line: str) -> None:
        self.lines.append(line)


def used(settings=SETTINGS):
    log = Said()
    engines, left_out = sweep.usable_engines(BUNDLE, settings, CORPUS.prompt.tolist(), seed=1, log=log)
    return engines, sweep.engine_rows(settings, engines, left_out), log.lines


def test_without_a_compiler(monkeypatch):
    monkeypatch.setattr(sweep, "not_compiled", lambda device: "no C++ compiler found")
    engines, rows, lines = used()
    assert [one.name for one in engines] == ["recompute", "cached"]
    assert [(row["engine"], row["available"], row["why"], row["compile_s"]) for row in rows] == [
        ("recompute", True, None, 0), ("cached", True, None, 0), ("compiled", False, "no C++ compiler found", 0),
    ]  # fmt: skip
    assert lines == ["sweep: engine compiled is left out: no C++ compiler found"]


def test_a_compiler_that_fails(monkeypatch):
    def failing(function, tensors):
        raise steps.NotCompiled("engine compiled: the compiler failed (g++ was killed)")

    monkeypatch.setattr(sweep, "not_compiled", lambda device: None)
    monkeypatch.setattr(steps, "compiled", failing)
    engines, rows, lines = used()
    assert [one.name for one in engines] == ["recompute", "cached"]
    assert rows[-1]["why"] == "engine compiled: the compiler failed (g++ was killed)"
    assert lines[-1] == "sweep: engine compiled is left out: engine compiled: the compiler failed (g++ was killed)"


def test_nothing_is_compiled_while_it_is_timed(monkeypatch):
    """Texts longer than the smallest table of angles, and the pieces of a round: all of it was warm before."""
    compiled = []
    monkeypatch.setattr(sweep, "not_compiled", lambda device: None)
    monkeypatch.setattr(steps, "compiled", lambda function, tensors: compiled.append(1) or function)
    monkeypatch.setattr(sweep, "Progress", Quiet)
    settings = SETTINGS | {"engines": ["cached", "compiled"], "tokens": 1100}
    engines, rows, _ = used(settings)
    # Verdicts at gamma 0, 1, 2 and 3, drafts at 1 and 3, the module at 1.
    assert len(compiled) == 7 and rows[1]["compile_s"] > 0 == rows[0]["compile_s"]
    methods = [one for one in methods_of(engines[1:], settings["gammas"]) if one.counts]
    texts, costs = sweep.timed(BUNDLE, engines[1:], methods, CORPUS, settings, 1, Said())
    assert len(texts) == 5 and len(costs) == 4 + 1 + 2 * 4
    assert len(compiled) == 7


class Quiet:
    def __init__(self, *arguments, **named):
        self.done, self.advance, self.expect = 0, lambda: None, lambda total: None

    def __enter__(self):
        return self

    def __exit__(self, *raised):
        return None
