"""specledger's own decoder, audited like everybody else's: one system among others."""

import os
import shutil

NAME = "specledger"
REQUIREMENTS = None  # it runs in ours
UNWANTED = ()
ORDER = "transformers"  # of its warpers; see audit.warpers
MODEL = "folder"

DRAFT = {"drafter": "draft", "gamma": 3}
MODES = {
    "plain": {"control": "null"},
    "draft": {"options": DRAFT},
    "draft_dynamic": {"options": {**DRAFT, "drafter": "draft_dynamic"}},
    "draft_greedy": {"options": DRAFT, "settings": {"temperature": 0}},
    "draft_temperature": {"options": DRAFT, "settings": {"temperature": 0.7}},
    "draft_top_k": {"options": DRAFT, "settings": {"top_k": 8}},
    "draft_top_p": {"options": DRAFT, "settings": {"top_p": 0.9}},
    "draft_together": {"options": DRAFT, "settings": {"temperature": 0.8, "top_k": 20, "top_p": 0.95}},
    "draft_tree": {"options": {**DRAFT, "parents": [-1, -1, 0, 0, 1]}},
    "mtp": {"options": {"drafter": "mtp", "gamma": 1}, "draft": False},
    "lookup": {"options": {"drafter": "lookup", "gamma": 3}, "prompt": "long", "draft": False},
    "draft_kept": {"options": {"of_draft": True}, "control": "lossy"},  # whatever the target says of its draft tokens
}
COMPILERS = [os.environ["CXX"]] if "CXX" in os.environ else ["g++", "clang++", "c++"]
if any(map(shutil.which, COMPILERS)):
    for _name in ("draft", "draft_tree", "mtp"):
        MODES[f"{_name}_compiled"] = {**MODES[_name], "options": MODES[_name]["options"] | {"engine": "compiled"}}
DRAFTING = {"threshold": 0.4, "lookup_longest": 4, "lookup_shortest": 1}


class System:
    """One mode; what the decoder is called is said here and nowhere else in the audit."""

    def __init__(self, *, target: str, draft: str, options: dict, threads: int, context: int):
        from pathlib import Path

        import torch

        from specledger.decoding.drafter import Parts
        from specledger.decoding.engines import engine
        from specledger.drafters.mtp import load_mtp
        from specledger.drafters.registry import make
        from specledger.foundation.version import VERSION
        from specledger.models.storage import load_model
        from specledger.theory.trees import Tree

        torch.set_num_threads(threads)
        cpu, self.version = torch.device("cpu"), f"specledger {VERSION}"
        self.target, model = load_model(Path(target), cpu), load_model(Path(draft), cpu)
        parts = Parts(target=self.target, mtp=load_mtp(Path(target), self.target), draft=model, drafting=DRAFTING)
        self.engine, self.gamma = engine(options.get("engine", "cached")), options.get("gamma")
        self.drafter = make(options["drafter"], parts) if "drafter" in options else None
        if "parents" in options:
            self.drafter = self.drafter.in_tree(Tree.of(tuple(options["parents"])))
        if options.get("of_draft"):
            self.target = model

    def sample(self, prompt: list[int], count: int, settings: dict):
        from specledger.decoding.loops import autoregressive, speculative
        from specledger.sampling.distributions import Sampling
        from specledger.sampling.uniforms import Uniforms

        sampling = Sampling(**{name: settings[name] for name in ("temperature", "top_k", "top_p")})
        shared = {"engine": self.engine, "sampling": sampling, "count": settings["tokens"], "clocked": False}
        shared["uniforms"] = Uniforms("audit", settings["seed"])
        for _ in range(count):
            if self.drafter is None:
                text = autoregressive(self.target, prompt, **shared)
            else:
                text = speculative(self.target, self.drafter, prompt, gamma=self.gamma, **shared)
            accepted, drafted = sum(one.accept_len for one in text.rounds), sum(one.drafted for one in text.rounds)
            yield {"ids": [text.tokens], "forwards": len(text.rounds), "accepted": accepted, "drafted": drafted}


if __name__ == "__main__":
    from specledger.audit.workers.worker import serve

    serve(System)
