"""The side of an audited system's environment: requests come as lines of JSON, answers go back the same way.

Standard library only, since it runs where specledger isn't installed. A worker ends as soon as its standard input
does, so that none outlives the process that started it; what it started itself ends with it.
"""

import contextlib
import ctypes
import json
import os
import queue
import signal
import socket
import subprocess
import sys
import threading
import time
import traceback
import urllib.error
import urllib.request
from pathlib import Path

HERE = Path(__file__).resolve().parent


def serve(opener) -> None:
    """Answer requests until there are no more. `opener(**arguments)` opens a system; see `answer`."""
    # A library's module must not be taken for one of the adapters beside this file.
    sys.path[:] = [path for path in sys.path if Path(path).resolve() != HERE]
    out = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # what libraries print belongs into the log
    requests = queue.Queue()
    threading.Thread(target=_read, args=(requests,), daemon=True).start()
    opened = None
    while True:
        request = requests.get()
        try:
            if request["op"] == "open":
                opened = opener(**request["arguments"])
            for found in answer(opened, request):
                print(json.dumps(found), file=out)
        except Exception as error:
            traceback.print_exc()
            line = " ".join(f"{type(error).__name__}: {error}".split())
            print(json.dumps({"error": line[:500]}), file=out)


def answer(opened, request: dict):
    """What goes back to a request, one line each; the last says `done`.

    open: the system's version. sample: parts {ids, accepted, drafted, forwards} of the texts, of which the system may
    tell the last three or not, with the time that each part took. logits: a row of logits after each of the prefixes.
    """
    match request["op"]:
        case "open":
            yield {"done": True, "version": opened.version}
        case "sample":
            watch = Stopwatch()
            for part in opened.sample(request["prompt"], request["count"], request["settings"]):
                yield {**part, **watch.lap()}
            yield {"done": True}
        case "logits":
            yield {"done": True, "logits": opened.logits(request["prefixes"])}
        case other:
            raise ValueError(f"op must be open, sample or logits, got {other}")


def _read(requests: queue.Queue) -> None:
    for line in sys.stdin:
        requests.put(json.loads(line))
    for child in STARTED:
        with contextlib.suppress(OSError):
            child.kill()
    os._exit(0)


class Stopwatch:
    """Seconds and CPU seconds of this process and of what it started since the last look."""

    def __init__(self):
        self.last = time.monotonic(), self._cpu()

    @staticmethod
    def _cpu() -> float:
        return time.process_time() + sum(cpu_seconds(child.pid) for child in STARTED)

    def lap(self) -> dict[str, float]:
        before, self.last = self.last, (time.monotonic(), self._cpu())
        return {"seconds": self.last[0] - before[0], "cpu_seconds": self.last[1] - before[1]}


def cpu_seconds(pid: int) -> float:
    """CPU seconds of another process; 0 where the system doesn't tell."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


STARTED: list[subprocess.Popen] = []


def free_port() -> int:
    """A port of the loopback address that nobody uses now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def _die_with_parent() -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


@contextlib.contextmanager
def server(command: list[str], health: str, seconds: float, env: dict | None = None):
    """Run a server while the block lasts; it begins when the address `health` answers.

    Raises TimeoutError after `seconds`, RuntimeError where the server ends by itself before it answers.
    """
    child = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=2,
        env={**os.environ, **(env or {})},
        preexec_fn=_die_with_parent,
    )
    STARTED.append(child)
    try:
        until = time.monotonic() + seconds
        while not answers(health):
            if child.poll() is not None:
                raise RuntimeError(f"the server ended with exit code {child.returncode} before it answered")
            if time.monotonic() > until:
                raise TimeoutError(f"{health}: no answer within {seconds:.0f} s")
            time.sleep(0.1)
        yield child
    finally:
        child.terminate()
        try:
            child.wait(10)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
        STARTED.remove(child)


def answers(address: str) -> bool:
    """Does a server of ours answer there?"""
    try:
        with DIRECT.open(address, timeout=2) as reply:
            return reply.status == 200
    except (urllib.error.URLError, OSError):
        return False


# No proxy of the environment is asked for what lies on this machine.
DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))
