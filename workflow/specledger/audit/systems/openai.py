"""Any OpenAI-compatible server as a system: texts are asked for over HTTP and read as token ids.

What was sampled is kept on disk as it comes, so that a run that breaks off goes on from there.
"""

import hashlib
import json
import os
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

from specledger.audit.greedy import GreedyText
from specledger.audit.settings import ENDED, Batch, SamplingSettings
from specledger.audit.systems.http import Answer, Http, Kept
from specledger.audit.systems.reading import (
    CHARACTERS,
    IDS,
    LOGPROBS,
    TOKENIZER,
    Reading,
    text_of,
    token_names,
    tokenizer_of,
    top_of,
)
from specledger.foundation.errors import UserError


class OpenAIServer:
    """A model behind /completions (or, with `chat`, /chat/completions); a prompt is a text, ids or messages."""

    def __init__(
        self,
        url: str,
        model: str | None = None,
        *,
        name: str = "server",
        timeout: float = 60.0,
        key: str | None = None,
        parallel: int = 4,
        per_request: int = 32,
        chat: bool = False,
        body: dict | None = None,
        kept: Kept | None = None,
        advance: Callable[[int], None] = lambda texts: None,
    ):
        self.http = Http(url, timeout=timeout, key=key)
        self.name, self.chat, self.body, self.kept, self.advance = name, chat, body or {}, kept, advance
        self.parallel, self.per_request = parallel, per_request
        self.model = self._model(model)
        self.version = self._version()
        self.reading = Reading()
        self.texts_of: dict[str, int] = {}

    def close(self) -> None:
        pass

    def _model(self, wanted: str | None) -> str:
        """The model's name, checked against the server's list where it has one."""
        try:
            listed = [one["id"] for one in self.http.ask("/models")["data"]]
        except (Answer, KeyError, TypeError):
            listed = []
        if wanted is None and len(listed) == 1:
            return listed[0]
        if wanted is None:
            raise UserError(f"{self.http.url}: name the model; it has: {', '.join(listed) or 'no list of them'}")
        if listed and wanted not in listed:
            raise UserError(f"{self.http.url}: no model {wanted}; it has: {', '.join(listed)}")
        return wanted

    def _version(self) -> str:
        """What the server says of itself: vLLM at /version, llama.cpp at /props."""
        for path, key in (("/version", "version"), ("/props", "build_info")):
            try:
                value = self.http.ask(path, root=True)
            except UserError:
                continue
            if isinstance(value, dict) and isinstance(value.get(key), str):
                return f"{'vLLM' if key == 'version' else 'llama.cpp'} {value[key]}"
        return "not told"

    # ---- one request

    def request(self, prompt, count: int, settings: SamplingSettings) -> dict:
        """The JSON that asks for `count` texts; warpers that are not set are not named."""
        asked = {
            "model": self.model,
            "max_tokens": settings.tokens,
            "temperature": settings.temperature,
            "seed": settings.seed,
            "stream": False,
        }
        if count > 1:
            asked["n"] = count
        for name in ("top_k", "top_p", "min_p", "repetition_penalty"):
            if getattr(settings, name) is not None:
                asked[name] = getattr(settings, name)
        if settings.repetition_penalty is not None:
            asked["repeat_penalty"] = settings.repetition_penalty  # llama.cpp's name for it
        if self.chat:
            asked["messages"] = [{"role": "user", "content": prompt}] if isinstance(prompt, str) else prompt
        else:
            asked["prompt"] = prompt
        if self.reading.kind == IDS:
            asked["return_token_ids"] = True
        elif self.reading.kind == LOGPROBS:
            asked |= {"logprobs": True, "top_logprobs": 1} if self.chat else {"logprobs": 1}
        return asked | self.body

    def answer(self, asked: dict) -> dict:
        return self.http.ask("/chat/completions" if self.chat else "/completions", asked)

    def can_read(self, kind: str, prompt) -> bool:
        """Whether the server tells tokens this way, tried with one text; a model that is not there is said."""
        self.reading.kind = kind
        try:
            choice = self.answer(self.request(prompt, 1, SamplingSettings(tokens=2)))["choices"][0]
        except Answer as error:
            if error.status in (401, 403, 404):
                raise
            return False
        except (KeyError, IndexError, TypeError):
            return False
        return self.tokens(choice) is not None

    def learn_many(self, prompt) -> None:
        """How many texts one request may ask for (n): llama.cpp takes no more than it has slots, some servers one."""
        while self.per_request > 1:
            try:
                given = self.answer(self.request(prompt, self.per_request, SamplingSettings(tokens=1)))["choices"]
            except Answer:
                self.per_request //= 2
                continue
            except (KeyError, TypeError):
                given = []
            if len(given) >= self.per_request:
                return
            self.per_request = max(len(given), 1)

    def greedy_all(self, prompts: Sequence, tokens: int, *, top: int = 0, run: int = 0) -> list[GreedyText]:
        """The greedy text of each prompt; another `run` asks again."""
        return self._in_parallel(self.greedy, [(prompt, tokens, top, run) for prompt in prompts])

    def greedy(self, prompt, tokens: int, top: int = 0, run: int = 0) -> GreedyText:
        """The text of temperature 0; with `top`, the log-probabilities of that many tokens at each place."""
        asked = self.request(prompt, 1, SamplingSettings(temperature=0, tokens=tokens, seed=run))
        asked.pop("return_token_ids", None)
        if top:
            asked |= {"logprobs": True, "top_logprobs": top} if self.chat else {"logprobs": top}
        key = self._key(asked)
        known = self.kept.known.get(key) if self.kept else None
        if known is None:
            try:
                choice = self.answer(asked)["choices"][0]
            except UserError as error:
                raise self._with_kept(error) from error
            except (KeyError, IndexError, TypeError):
                raise UserError(f"{self.http.url}: the server gives no text (choices is empty)") from None
            known = {"key": key, "texts": [{"text": text_of(choice), "top": top_of(choice) if top else None}]}
            if self.kept:
                self.kept.add(known)
        self.advance(1)
        (one,) = known["texts"]
        return GreedyText(text=one["text"], top=one["top"])

    def _key(self, asked: dict) -> str:
        """What tells this request from all others of the run."""
        return hashlib.sha256(json.dumps([self.http.url, self.name, self.chat, asked]).encode()).hexdigest()[:20]

    def tokens(self, choice: dict) -> list[int] | None:
        """The ids of one text; None where the server does not tell them."""
        reading = self.reading
        if reading.kind == IDS:
            found = choice.get("token_ids")
            return found if isinstance(found, list) else None
        if reading.kind == LOGPROBS:
            found = token_names(choice)
            return None if found is None else [reading.number(one) for one in found]
        return reading.encode(text_of(choice))

    def detokenized(self, ids: Sequence[int]) -> str | None:
        """The text of token ids where the server has a route for it, as vLLM and llama.cpp do; else None."""
        if self.reading.kind != IDS:
            return None
        try:
            value = self.http.ask("/detokenize", {"model": self.model, "tokens": list(ids)}, root=True)
        except UserError:
            return None
        found = value.get("prompt", value.get("content")) if isinstance(value, dict) else None
        return found if isinstance(found, str) else None

    # ---- many requests

    def sample(self, prompt_ids: Sequence[int] | str, count: int, settings: SamplingSettings) -> Batch:
        """`count` texts in requests of `per_request` each, every request with a seed of its own."""
        import numpy as np

        texts: list[dict] = []
        while len(texts) < count:  # a server may give fewer than it was asked for
            missing = count - len(texts)
            sizes = [self.per_request] * (missing // self.per_request) + [missing % self.per_request]
            jobs = [(len(texts) + sum(sizes[:i]), size) for i, size in enumerate(sizes) if size]
            parts = self._in_parallel(self._part, [(prompt_ids, *job, settings) for job in jobs])
            given = [one for part in parts for one in part["texts"]]
            if len(given) < missing and self.per_request > 1:
                self.per_request = 1  # it does not know n
            texts += given
            if not given:
                raise UserError(f"{self.http.url}: the server gives no text (choices is empty)")
        texts = texts[:count]
        ids_NL = np.full((count, settings.tokens), ENDED, dtype=np.int64)
        for row, one in zip(ids_NL, texts, strict=True):
            row[: len(one["ids"])] = one["ids"][: settings.tokens]
        self._check_lengths(texts, settings.tokens)
        return Batch(ids=ids_NL, texts=[one["text"] for one in texts], **_told_beside(texts, self.parallel))

    def _in_parallel(self, work: Callable, jobs: list[tuple]) -> list:
        """`work` for each of the jobs, some at a time; where one fails, those that wait are given up."""
        pool = ThreadPoolExecutor(self.parallel)
        try:
            return list(pool.map(lambda job: work(*job), jobs))
        finally:
            pool.shutdown(cancel_futures=True)

    def _part(self, prompt, place: int, size: int, settings: SamplingSettings) -> dict:
        """One request, from disk where an earlier run has asked it already."""
        asked = self.request(prompt, size, replace(settings, seed=(settings.seed * 7919 + place) % 2**31))
        key = self._key(asked)
        known = self.kept.known.get(key) if self.kept else None
        if known is None:
            start = time.monotonic()
            try:
                given = self.answer(asked)
            except UserError as error:
                raise self._with_kept(error) from error
            known = {"key": key, "texts": self._texts(given, time.monotonic() - start)}
            if self.kept:
                self.kept.add(known)
        self.advance(len(known["texts"]))
        if self.reading.kind == LOGPROBS:  # numbers of this run
            for one in known["texts"]:
                one["ids"] = [self.reading.number(token) for token in one["tokens"]]
        return known

    def _with_kept(self, error: UserError) -> UserError:
        if not self.kept or not self.kept.known:
            return error
        return UserError(f"{error}; {self.kept.texts()} texts are kept, and the same command goes on with them")

    def _texts(self, given: dict, seconds: float) -> list[dict]:
        choices = given.get("choices")
        if not isinstance(choices, list) or not choices:
            raise UserError(f"{self.http.url}: the server gives no text (choices is empty)")
        timings = given.get("timings") or {}
        found = []
        for choice in choices:
            ids = self.tokens(choice)
            if ids is None:
                raise UserError(f"{self.http.url}: a text came without its {self.reading.kind}")
            one = {"text": text_of(choice), "ids": ids, "end": choice.get("finish_reason")}
            one["seconds"] = seconds / len(choices)
            if self.reading.kind == LOGPROBS:
                one["tokens"] = token_names(choice)
            if len(choices) == 1 and "predicted_n" in timings:  # llama.cpp, which leaves out a draft_n of 0
                one |= {"drafted": timings.get("draft_n", 0), "accepted": timings.get("draft_n_accepted", 0)}
                one["forwards"] = timings["predicted_n"] - one["accepted"]
            found.append(one)
        return found

    def _check_lengths(self, texts: list[dict], tokens: int) -> None:
        """A text that was cut for length must be as long as was asked; one that ended by itself may be shorter."""
        if self.reading.kind not in (IDS, LOGPROBS):
            return
        short = [len(one["ids"]) for one in texts if one["end"] == "length" and len(one["ids"]) < tokens]
        if short:
            raise UserError(
                f"{self.http.url}: {len(short)} of {len(texts)} texts were cut at {max(short)} tokens where {tokens} "
                "were asked for: ask for fewer (--tokens) or lift the server's limit"
            )


def _told_beside(texts: list[dict], parallel: int) -> dict:
    """Time and counts of the texts, for their batch."""

    def total(name: str) -> int | None:
        values = [one.get(name) for one in texts]
        return None if any(value is None for value in values) else sum(values)

    counts = {name: total(name) for name in ("accepted", "drafted", "forwards")}
    return {"seconds": sum(one["seconds"] for one in texts) / min(parallel, len(texts)), **counts}


def api_key(variable: str | None) -> str | None:
    """The key in an environment variable; UserError where one is named and not set."""
    if variable is None:
        return None
    key = os.environ.get(variable)
    if not key:
        raise UserError(f"--key-env {variable}: the environment has no such variable")
    return key


def _all_read(servers: Sequence[OpenAIServer], kind: str, prompt) -> bool:
    return all(server.can_read(kind, prompt) for server in servers)


def agree(servers: Sequence[OpenAIServer], prompt, tokenizer: str | None) -> Reading:
    """How the tokens of all arms are read: ids, else a tokenizer that is given, else log-probabilities' names."""
    for server in servers:
        server.learn_many(prompt)
    if tokenizer == CHARACTERS:
        reading = Reading(kind=CHARACTERS, encode=lambda text: [ord(letter) for letter in text])
    elif _all_read(servers, IDS, prompt):
        reading = Reading(kind=IDS)
    elif tokenizer is not None:
        reading = Reading(kind=TOKENIZER, encode=tokenizer_of(Path(tokenizer)))
    elif _all_read(servers, LOGPROBS, prompt):
        reading = Reading(kind=LOGPROBS)
    else:
        raise UserError(
            f"{servers[-1].http.url}: the server tells neither token ids nor log-probabilities: switch on one of them "
            "(vLLM: return_token_ids; llama.cpp: logprobs), or give --tokenizer FILE (a tokenizer.json) or "
            "--tokenizer characters"
        )
    for server in servers:
        server.reading = reading
    return reading
