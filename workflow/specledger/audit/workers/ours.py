"""specledger's own decoder, audited like everybody else's: one system among others."""

NAME = "specledger"
REQUIREMENTS = None  # it runs in ours
UNWANTED = ()
ORDER = "transformers"  # of its warpers; see audit.warpers
MODEL = "folder"

DRAFT = {"drafter": "draft", "gamma": 3}
MODES = {
    "plain": {"control": "null"},
    "draft": {"options": DRAFT},
    "draft_dynamic": {"options": {**DRAFT, "threshold": 0.4}},
    "draft_temperature": {"options": DRAFT, "settings": {"temperature": 0.7}},
    "draft_top_k": {"options": DRAFT, "settings": {"top_k": 8}},
    "draft_top_p": {"options": DRAFT, "settings": {"top_p": 0.9}},
    "draft_together": {"options": DRAFT, "settings": {"temperature": 0.8, "top_k": 20, "top_p": 0.95}},
    "mtp": {"options": {"drafter": "mtp", "gamma": 1}, "draft": False},
    "draft_kept": {"options": {"of_draft": True}, "control": "lossy"},  # whatever the target says of its proposals
}


class System:
    """One mode; what the decoder is called is said here and nowhere else in the audit."""

    def __init__(self, *, target: str, draft: str, options: dict, threads: int, context: int):
        from pathlib import Path

        import torch

        from specledger.decoding import drafters, engines
        from specledger.foundation.version import VERSION
        from specledger.models.storage import load_model, load_mtp

        torch.set_num_threads(threads)
        cpu, self.version = torch.device("cpu"), f"specledger {VERSION}"
        self.target, model = load_model(Path(target), cpu), load_model(Path(draft), cpu)
        self.engine, self.gamma, self.drafter = engines.engine("cached"), options.get("gamma"), None
        if options.get("of_draft"):
            self.target = model
        elif options.get("drafter") == "draft":
            self.drafter = drafters.DraftModel(model=model, threshold=options.get("threshold"))
        elif options.get("drafter") == "mtp":
            self.drafter = drafters.MTPDrafter(target=self.target, mtp=load_mtp(Path(target), self.target))

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
