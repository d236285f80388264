"""An engine that can't be compiled is told of and left out of the sweep."""

from small import corpus_of, drafters_of, play, sizes, tiny_llama
from specledger.commands import sweep
from specledger.decoding import native
from specledger.decoding.building import NotCompiled
from specledger.experiments.bundle import ModelBundle

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
        self.lines = []

    def say(self, line: str) -> None:
        self.lines.append(line)


def test_without_a_compiler(monkeypatch):
    def missing():
        raise NotCompiled("no C++ compiler found")

    monkeypatch.setattr(native, "library", missing)
    log = Said()
    engines, left_out = sweep.warm_engines(BUNDLE, SETTINGS, CORPUS.prompt.tolist(), seed=1, log=log)
    assert [one.name for one in engines] == ["recompute", "cached"]
    rows = sweep.engine_rows(SETTINGS, engines, left_out)
    assert [(row["engine"], row["available"], row["why"], row["compile_s"]) for row in rows] == [
        ("recompute", True, None, 0), ("cached", True, None, 0), ("compiled", False, "no C++ compiler found", 0),
    ]  # fmt: skip
    assert log.lines == ["engine compiled is left out: no C++ compiler found"]
