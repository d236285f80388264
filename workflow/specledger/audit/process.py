"""A system in a process and an environment of its own, asked in lines of JSON; see `workers.worker`."""

import contextlib
import json
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from specledger.audit.environments import environment
from specledger.audit.settings import ENDED, Batch, SamplingSettings
from specledger.foundation.errors import UserError

STOP_S = 10.0  # that a worker has to end by itself


class Worker:
    """A `settings.System` whose texts are drawn by a script that another environment's interpreter runs.

    It ends with `close`, with this process however that ends, and when it is silent for `seconds`. What it and its
    libraries print goes to `log`.
    """

    def __init__(
        self,
        name: str,
        command: Sequence[str | Path],
        arguments: dict,
        *,
        log: Path,
        seconds: float = 600.0,
        after_part: Callable[[int], None] = lambda count: None,
    ):
        self.name, self.log, self.seconds, self.after_part = name, log, seconds, after_part
        # Nothing is asked of the network.
        env = dict(os.environ) if str(command[0]) == sys.executable else environment()
        env |= {"HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false", "PYTHONUNBUFFERED": "1"}
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("w", encoding="utf-8") as file:
            self.process = subprocess.Popen(
                list(map(str, command)),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=file,
                text=True,
                env=env,
            )
        self.lines: queue.Queue[str | None] = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()
        try:
            self.version = self._ask("open", arguments=arguments)[-1]["version"]
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> "Worker":
        return self

    def __exit__(self, *_) -> None:
        self.close()

    def sample(self, prompt_ids: Sequence[int], count: int, settings: SamplingSettings) -> Batch:
        """`count` texts, and what the system tells of making them; UserError where it fails or is silent."""
        asked = {"prompt": list(map(int, prompt_ids)), "count": count, "settings": settings.named()}
        parts = self._ask("sample", **asked)[:-1]
        ids = np.full((count, settings.tokens), ENDED, dtype=np.int64)
        texts = [text for part in parts for text in part["ids"]]
        if len(texts) != count:
            raise UserError(f"{self.name}: gave {len(texts)} texts where {count} were asked for; its log is {self.log}")
        for row, text in zip(ids, texts, strict=True):
            row[: len(text)] = text[: settings.tokens]

        def total(key: str):
            found = [part.get(key) for part in parts]
            return None if any(value is None for value in found) else sum(found)

        return Batch(
            ids=ids,
            seconds=total("seconds"),
            cpu_seconds=total("cpu_seconds"),
            accepted=total("accepted"),
            drafted=total("drafted"),
            forwards=total("forwards"),
        )

    def logits(self, prefixes_NT: np.ndarray) -> np.ndarray:
        """[N, V] logits of the system's own target after each of the prefixes."""
        rows = self._ask("logits", prefixes=np.asarray(prefixes_NT).tolist())[-1]["logits"]
        return np.asarray(rows, dtype=np.float64)

    def close(self) -> None:
        """Ask it to end, and end it where it doesn't."""
        with contextlib.suppress(OSError):
            self.process.stdin.close()
        try:
            self.process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def _ask(self, op: str, **request) -> list[dict]:
        with contextlib.suppress(OSError):  # a worker that has ended is found out below
            self.process.stdin.write(json.dumps({"op": op, **request}) + "\n")
            self.process.stdin.flush()
        found = []
        while True:
            try:
                line = self.lines.get(timeout=self.seconds)
            except queue.Empty:
                self.process.kill()
                raise UserError(f"{self.name}: silent for {self.seconds:g} s; its log is {self.log}") from None
            if line is None:
                code = self.process.wait()
                raise UserError(f"{self.name}: its process ended with exit code {code}; its log is {self.log}")
            answer = json.loads(line)
            if "error" in answer:
                raise UserError(f"{self.name}: {answer['error']} (its log is {self.log})")
            found.append(answer)
            if answer.get("done"):
                return found
            self.after_part(len(answer["ids"]))

    def _read(self) -> None:
        for line in self.process.stdout:
            self.lines.put(line)
        self.lines.put(None)
