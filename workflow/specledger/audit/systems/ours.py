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
    "lookup": {"options": {"drafter": "lookup", "gamma": 3}, "prompt": "long"},
    # Every proposal is kept, whatever the target says.
    "draft_kept": {"options": {"drafter": None, "of_draft": True}, "control": "lossy"},
}


class System:
    """One mode; what the decoder is called is imported here and nowhere else in the audit."""

    def __init__(self, *, target: str, draft: str, options: dict, threads: int, context: int):
        from pathlib import Path

        import torch

        from specledger.decoding import counted, drafters, engines, loops
        from specledger.foundation.version import VERSION
        from specledger.models.storage import load_model, load_mtp

        torch.set_num_threads(threads)
        cpu, self.version = torch.device("cpu"), f"specledger {VERSION}"
        self.target, model = load_model(Path(target), cpu), load_model(Path(draft), cpu)
        kind, self.gamma = options.get("drafter"), options.get("gamma")
        match kind:
            case "draft":
                self.drafter = drafters.DraftModel(model=model, threshold=options.get("threshold"))
            case "mtp":
                self.drafter = drafters.MTPDrafter(target=self.target, mtp=load_mtp(Path(target), self.target))
            case "lookup":
                self.drafter = counted.LookupDrafter(vocabulary=self.target.config.vocabulary, longest=4, shortest=1)
        if options.get("of_draft"):
            self.target = model
        self.engine, self.loops = engines.engine("cached"), loops
        self.speculates = kind is not None

    def sample(self, prompt: list[int], count: int, settings: dict):
        from specledger.sampling.distributions import Sampling
        from specledger.sampling.uniforms import Uniforms

        sampling = Sampling(**{name: settings[name] for name in ("temperature", "top_k", "top_p")})
        shared = {"engine": self.engine, "sampling": sampling, "count": settings["tokens"], "clocked": False}
        shared["uniforms"] = Uniforms("audit", settings["seed"])
        for first in range(0, count, 250):
            n = min(250, count - first)
            if self.speculates:
                found = [
                    self.loops.speculative(self.target, self.drafter, prompt, gamma=self.gamma, **shared)
                    for _ in range(n)
                ]
            else:
                found = [self.loops.autoregressive(self.target, prompt, **shared) for _ in range(n)]
            rounds = [done for text in found for done in text.rounds]
            yield {
                "ids": [text.tokens for text in found],
                "forwards": len(rounds),
                "accepted": sum(done.accept_len for done in rounds),
                "drafted": sum(done.drafted for done in rounds),
            }


if __name__ == "__main__":
    from specledger.audit.systems.worker import serve

    serve(System)
