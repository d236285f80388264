"""A worker that draws from a known distribution, for tests of the protocol: `python fake_worker.py`."""

import random
import sys
import time
from pathlib import Path

SYSTEMS = Path(__file__).resolve().parents[1] / "workflow" / "specledger" / "audit" / "workers"
sys.path.insert(0, str(SYSTEMS))
import worker


class System:
    """Tokens 0..2 with probabilities 1/2, 1/4, 1/4; `options` make it misbehave, the server is a real one."""

    def __init__(self, *, target, draft, options, threads, context):
        self.version, self.options = "fake 1", options
        if options.get("print"):
            print("a library's chatter")
        if options.get("serve"):
            port = worker.free_port()
            command = [sys.executable, "-m", "http.server", str(port), "--bind", "127.0.0.1"]
            self.server = worker.server(command, f"http://127.0.0.1:{port}/", 20)
            self.version = str(self.server.__enter__().pid)

    def sample(self, prompt, count, settings):
        draw = random.Random(settings["seed"])
        for first in range(0, count, 10):
            n = min(10, count - first)
            if self.options.get("hang"):
                time.sleep(600)
            if self.options.get("end"):
                sys.exit(3)
            if self.options.get("fail"):
                raise RuntimeError("top-k over an empty tensor\nand more")
            ids = [draw.choices((0, 1, 2), (2, 1, 1), k=settings["tokens"]) for _ in range(n)]
            yield {"ids": ids[self.options.get("lose", 0) :], "forwards": n * settings["tokens"]}

    def logits(self, prefixes):
        return [[1.0, 0.5, 0.5] for _ in prefixes]


if __name__ == "__main__":
    worker.serve(System)
