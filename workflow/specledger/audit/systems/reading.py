"""How an answer of an OpenAI-compatible server is read: its text, its tokens, and their log-probabilities."""

import json
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from specledger.foundation.errors import UserError

IDS, LOGPROBS, TOKENIZER, CHARACTERS = "token ids", "logprobs", "tokenizer", "characters"
MARK = "\x00"  # begins a name that holds the token's id


@dataclass
class Reading:
    """How texts become ids, the same way for both arms: a token that has no id of its own gets the next free one."""

    kind: str = IDS
    encode: Callable[[str], list[int]] | None = None
    numbers: dict = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def number(self, token) -> int:
        with self._lock:
            return self.numbers.setdefault(token, len(self.numbers))

    def names(self) -> dict[int, str]:
        """What each id stands for, where the ids are ours."""
        return {number: _shown(token) for token, number in self.numbers.items()}


def _shown(token) -> str:
    """A token without the id that `_token_name` puts before it."""
    return str(token).partition(" ")[2] if str(token).startswith(MARK) else str(token)


def text_of(choice: dict) -> str:
    if isinstance(choice.get("text"), str):
        return choice["text"]
    message = choice.get("message") or {}
    return message.get("content") or json.dumps(message.get("tool_calls") or "")


def token_names(choice: dict) -> list | None:
    """The tokens of a text as the log-probabilities name them: by id, else by bytes, else as strings."""
    told = choice.get("logprobs")
    if not isinstance(told, dict):
        return None
    if isinstance(told.get("content"), list):
        return [_token_name(one) for one in told["content"]]
    return told["tokens"] if isinstance(told.get("tokens"), list) else None


def _token_name(one: dict):
    if one.get("id") is not None:
        return f"{MARK}{one['id']} {one.get('token', '')}"
    return one.get("token")


def top_of(choice: dict) -> list[tuple[str, float, dict[str, float]]] | None:
    """For each token its string, its log-probability and those of the likeliest ones; None where not told."""
    told = choice.get("logprobs")
    if not isinstance(told, dict):
        return None
    if isinstance(told.get("content"), list):
        return [
            (one["token"], one["logprob"], {other["token"]: other["logprob"] for other in one.get("top_logprobs", [])})
            for one in told["content"]
        ]
    try:
        return list(zip(told["tokens"], told["token_logprobs"], told["top_logprobs"], strict=True))
    except (KeyError, TypeError, ValueError):
        return None


def tokenizer_of(path: Path) -> Callable[[str], list[int]]:
    """The encoder of a tokenizer.json."""
    if not path.is_file():
        raise UserError(f"--tokenizer {path}: no such file; allowed: a tokenizer.json, or the word characters")
    try:
        from tokenizers import Tokenizer
    except ModuleNotFoundError:
        raise UserError("--tokenizer wants the package tokenizers: pip install 'specledger[tokenizer]'") from None
    try:
        tokenizer = Tokenizer.from_file(str(path))
    except Exception as error:
        raise UserError(f"--tokenizer {path}: no tokenizer.json ({' '.join(str(error).split())})") from error
    return lambda text: tokenizer.encode(text, add_special_tokens=False).ids
