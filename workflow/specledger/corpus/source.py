"""Where the text comes from: a file, the mirrors, or, with no network, Python's own documentation."""

import hashlib
import http.client
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path

from specledger.corpus.text import decode_utf8
from specledger.foundation.errors import UserError

TINY_SHAKESPEARE = "86c4e6aa9db7c042ec79f339dcb96d42b0075e16b8fc2e86bf0ca57e2dc565ed"
TINY_CHARACTERS = 1_115_394
TINY_SYMBOLS = "\n !$&',-.3:;?ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
LARGEST_DOWNLOAD = 64 * 1024 * 1024
FALLBACK_PROMPT_CHARACTERS = 7


def sha256(raw: bytes) -> str:
    return hashlib.sha256(raw).hexdigest()


def from_file(path: Path, expected_sha256: str | None) -> bytes:
    """The bytes of the user's file; UserError if it can't be read or hasn't the sum asked for."""
    try:
        raw = path.expanduser().read_bytes()
    except (OSError, ValueError) as error:  # a ValueError is a name that no file can have
        why = getattr(error, "strerror", None) or "no name of a file"
        raise UserError(f"corpus.path: {str(path)[:200]}: {why}; a readable UTF-8 text file is needed") from None
    if expected_sha256 is not None and sha256(raw) != expected_sha256:
        raise UserError(f"corpus.path: {path}: sha256 is {sha256(raw)}, corpus.sha256 asks for {expected_sha256}")
    return raw


def _get(url: str, timeout_s: float) -> bytes:
    request = urllib.request.Request(url, headers={"User-Agent": "specledger"})
    with urllib.request.urlopen(request, timeout=timeout_s) as answer:
        return answer.read(LARGEST_DOWNLOAD)


def from_mirrors(
    urls: list[str], expected_sha256: str, timeout_s: float, say: Callable[[str], None]
) -> tuple[bytes, str] | None:
    """The first mirror's bytes that have the sum, with its address; None when no mirror gave them.

    `timeout_s` bounds the connection and each wait for more bytes; a page with another sum (an
    error page, a cut download) is dropped and the next mirror asked.
    """
    for url in urls:
        try:
            raw = _get(url, timeout_s)
        except (urllib.error.URLError, http.client.HTTPException, OSError, ValueError) as error:
            say(f"corpus: {url}: {getattr(error, 'reason', None) or error}")
            continue
        if sha256(raw) == expected_sha256:
            return raw, url
        say(f"corpus: {url}: {len(raw)} bytes with sha256 {sha256(raw)[:12]}…, refused")
    return None


def from_pydoc() -> bytes:
    """The topics of Python's documentation that every CPython carries, in alphabetical order."""
    from pydoc_data.topics import topics

    return "\n\n".join(topics[name] for name in sorted(topics)).encode("utf-8")


def acquire(settings: dict, say: Callable[[str], None]) -> tuple[str, dict]:
    """The text and where it came from: {source, origin, fallback, prompt, sha256, bytes}.

    `prompt` is None but for the fallback, which brings its own.

    Args:
        settings: `prompt` (the fallback's is no longer), `path` (the user's own file, or None to download) and
            `sha256` (the sum that it must have, or None), `download` (urls, sha256, timeout_s), `offline_fallback`.
    """
    if settings["path"] is not None:
        path = Path(settings["path"])
        raw, source, origin = from_file(path, settings["sha256"]), "file", path.name
    else:
        download = settings["download"]
        got = from_mirrors(download["urls"], download["sha256"], download["timeout_s"], say)
        if got is not None:
            (raw, origin), source = got, "download"
        elif settings["offline_fallback"] == "pydoc":
            raw, source, origin = from_pydoc(), "pydoc", "pydoc_data.topics"
            say("corpus: NO MIRROR ANSWERED. The text is now Python's own documentation; nothing in the")
            say("corpus: report can be compared with the published readings. Later: snakemake --forcerun corpus")
        else:
            raise UserError(
                "corpus: no mirror answered and corpus.offline_fallback is none. Three ways out: "
                "run again with a network; set corpus.path or SPECLEDGER_CORPUS to a text of yours, such as "
                "tiny shakespeare downloaded elsewhere; or set corpus.offline_fallback: pydoc, which is Python's own "
                "documentation"
            )
    text = decode_utf8(raw, origin)
    fallback = source == "pydoc"
    return text, {
        "source": source,
        "origin": origin,
        "fallback": fallback,
        "prompt": text[: min(FALLBACK_PROMPT_CHARACTERS, len(settings["prompt"]))] if fallback else None,
        "sha256": sha256(raw),
        "bytes": len(raw),
        "tiny_shakespeare": sha256(raw) == TINY_SHAKESPEARE,
    }
