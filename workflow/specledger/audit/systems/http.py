"""JSON over HTTP to the one address that the user gave, and what came of it kept on disk.

No proxy, no redirect: nothing but that address is asked.
"""

import http.client
import json
import threading
import time
from pathlib import Path
from urllib.parse import urlsplit

from specledger.foundation.errors import UserError

PATIENCE_S = 120.0  # how long a server that is busy is asked again
TRIES = 3  # of a request that breaks off or runs out of time
BUSY = (429, 502, 503, 529)


class Answer(UserError):
    """The server refused a request: its status and its words."""

    def __init__(self, where: str, status: int, words: str):
        super().__init__(f"{where}: the server answers {status}: {words}")
        self.status, self.words = status, words


class Http:
    """JSON to and from one server; a connection for each thread."""

    def __init__(self, url: str, *, timeout: float = 60.0, key: str | None = None):
        parts = urlsplit(url if "//" in url else f"http://{url}")
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise UserError(f"{url}: not an address; wanted is one such as http://127.0.0.1:8000/v1")
        try:
            self.host, self.port = parts.hostname, parts.port
        except ValueError:
            raise UserError(f"{url}: the port must be a number from 0 to 65535") from None
        self.url, self.base, self.timeout = url.rstrip("/"), parts.path.rstrip("/"), timeout
        self.kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
        self.headers = {"Content-Type": "application/json", "User-Agent": "specledger"}
        if key:
            self.headers["Authorization"] = f"Bearer {key}"
        self._local = threading.local()

    def ask(self, path: str, body: dict | None = None, *, root: bool = False):
        """The JSON that `path` answers; waits and asks again where the server is busy or breaks off."""
        start, tries, wait = time.monotonic(), 0, 0.5
        while True:
            try:
                status, headers, raw = self._once(("" if root else self.base) + path, body)
            except ConnectionRefusedError:
                raise UserError(f"{self.url}: no server answers there (connection refused)") from None
            except TimeoutError as error:
                tries += 1
                if tries >= TRIES:
                    raise UserError(f"{self.url}: no answer within {self.timeout:g} s, {tries} times") from error
                continue
            except (OSError, http.client.HTTPException) as error:
                tries += 1
                if tries >= TRIES:
                    raise UserError(f"{self.url}: the connection fails ({_words(error)}), {tries} times") from error
                time.sleep(wait)
                continue
            if status in BUSY and time.monotonic() - start < PATIENCE_S:
                time.sleep(_pause(headers, wait))
                wait = min(wait * 2, 20.0)
                continue
            return self._read(path, status, raw)

    def _once(self, path: str, body: dict | None):
        connection = getattr(self._local, "connection", None)
        if connection is None:
            connection = self._local.connection = self.kind(self.host, self.port, timeout=self.timeout)
        try:
            data = None if body is None else json.dumps(body).encode()
            connection.request("GET" if body is None else "POST", path, data, self.headers)
            reply = connection.getresponse()
            return reply.status, reply.headers, reply.read()
        except BaseException:
            connection.close()
            self._local.connection = None
            raise

    def _read(self, path: str, status: int, raw: bytes):
        try:
            value = json.loads(raw)
        except ValueError:
            value = None
        if status == 200 and value is not None:
            return value
        if 300 <= status < 400:
            raise Answer(self.url, status, "it sends elsewhere, and only the address that was given is asked")
        if status == 200:
            raise UserError(f"{self.url}{path}: the answer is not JSON; is it an OpenAI-compatible server?")
        raise Answer(self.url, status, _told(value, raw))


def _words(error: BaseException) -> str:
    return str(getattr(error, "strerror", None) or error or type(error).__name__)


def _pause(headers, wait: float) -> float:
    try:
        return min(max(float(headers.get("Retry-After", "")), 0.05), 30.0)
    except ValueError:
        return wait


def _told(value, raw: bytes) -> str:
    """The server's own message, on one line."""
    found = value
    for key in ("error", "message", "detail"):
        if isinstance(found, dict) and key in found:
            found = found[key]
    text = found if isinstance(found, str) else raw[:300].decode("utf-8", "replace")
    return " ".join(text.split())[:300] or "nothing"


class Kept:
    """Answers on disk, one line a request, so that an interrupted run does not ask for them again."""

    def __init__(self, path: Path):
        self.path, self._lock = path, threading.Lock()
        self.known: dict[str, dict] = {}
        if path.exists():
            for line in path.read_text(encoding="utf-8").splitlines():
                try:
                    value = json.loads(line)
                    self.known[value["key"]] = value
                except (ValueError, KeyError):
                    continue  # the last line of a run that was killed
        self.before = self.texts()

    def add(self, value: dict) -> None:
        with self._lock:
            self.known[value["key"]] = value
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self.path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(value) + "\n")

    def texts(self) -> int:
        with self._lock:
            return sum(len(value["texts"]) for value in self.known.values())
