"""The stand-in over HTTP, with the routes of an OpenAI-compatible server: to try the audit without a model.

`python -m specledger.audit.standin_server --port 8001 --fault residual`
"""

import argparse
import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np

from specledger.audit.settings import ENDED, SamplingSettings
from specledger.audit.standin import FAULTS, TinyDecoder, TinyModel
from specledger.audit.warpers import warped

MODEL_NAME = "tiny"


class StandInServer(ThreadingHTTPServer):
    """One decoder behind a port of this machine.

    tells: "ids", "logprobs" or "text", what an answer tells of its tokens; many: whether a request may ask for
    several texts, and most_texts how many; most_tokens: a limit of its own; busy: this many requests are first
    answered 429; hangs: from this request on it does not answer for `hang_s` seconds.
    """

    daemon_threads = True

    def __init__(
        self,
        decoder: TinyDecoder,
        *,
        port: int = 0,
        tells: str = "ids",
        many: bool = True,
        most_texts: int = 10_000,
        most_tokens: int = 10_000,
        busy: int = 0,
        hangs: int | None = None,
        hang_s: float = 5.0,
    ):
        super().__init__(("127.0.0.1", port), _Handler)
        self.decoder, self.tells, self.many, self.most_tokens = decoder, tells, many, most_tokens
        self.busy, self.hangs, self.hang_s, self.most_texts = busy, hangs, hang_s, most_texts
        self.asked: list[dict] = []
        self.lock = threading.Lock()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/v1"

    def __enter__(self):
        threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.shutdown()
        self.server_close()

    def completion(self, asked: dict) -> dict:
        settings = SamplingSettings(
            tokens=min(asked.get("max_tokens", 16), self.most_tokens),
            seed=asked.get("seed", 0),
            **{name: asked[name] for name in ("temperature", "top_k", "top_p", "min_p") if name in asked},
        )
        prompt = asked["prompt"] if "prompt" in asked else asked["messages"][-1]["content"]
        ids = self.decoder.model.ids(prompt) if isinstance(prompt, str) else list(prompt)
        count = asked.get("n", 1) if self.many else 1
        with self.lock:
            batch = self.decoder.sample(ids, count, settings)
        return {
            "object": "text_completion",
            "choices": [self._choice(i, ids, row, asked) for i, row in enumerate(batch.ids)],
        }

    def _choice(self, index: int, prompt: list[int], row: np.ndarray, asked: dict) -> dict:
        model = self.decoder.model
        made = [int(one) for one in row if one != ENDED]
        ended = len(made) < len(row) or (made and made[-1] == model.end)
        text = model.text(made)
        choice: dict = {"index": index, "finish_reason": "stop" if ended else "length"}
        choice |= {"message": {"role": "assistant", "content": text}} if "messages" in asked else {"text": text}
        if self.tells == "ids" and asked.get("return_token_ids"):
            choice["token_ids"] = made
        if self.tells == "logprobs" and asked.get("logprobs"):
            choice["logprobs"] = self._logprobs(prompt, made, max(asked.get("logprobs"), asked.get("top_logprobs", 0)))
        return choice

    def _logprobs(self, prompt: list[int], made: list[int], top: int) -> dict:
        """Of the target at temperature 1, in the form of /completions."""
        model, told = self.decoder.model, {"tokens": [], "token_logprobs": [], "top_logprobs": []}
        for place, token in enumerate(made):
            before = np.array([[*prompt, *made[:place]]])
            logs = np.log(warped(model.next_logits(before), SamplingSettings())[0])
            best = np.argsort(-logs)[:top]
            told["tokens"].append(model.text([token]))
            told["token_logprobs"].append(float(logs[token]))
            told["top_logprobs"].append({model.text([one]): float(logs[one]) for one in best})
        return told


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: StandInServer

    def log_message(self, *_):
        """Nothing: a request is no news."""

    def _send(self, status: int, value: dict, **headers: str) -> None:
        data = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        for name, one in headers.items():
            self.send_header(name.replace("_", "-"), one)
        self.end_headers()
        self.wfile.write(data)

    def do_GET(self):
        if self.path == "/v1/models":
            return self._send(200, {"object": "list", "data": [{"id": MODEL_NAME, "object": "model"}]})
        if self.path == "/health":
            return self._send(200, {"status": "ok"})
        return self._send(404, {"error": {"message": f"no route {self.path}"}})

    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))))
        server = self.server
        with server.lock:
            server.asked.append(asked)
            number = len(server.asked)
        if number <= server.busy:
            return self._send(429, {"error": {"message": "too many requests"}}, Retry_After="0.05")
        if server.hangs is not None and number > server.hangs:
            time.sleep(server.hang_s)
        if self.path == "/detokenize":
            return self._send(200, {"prompt": server.decoder.model.text(asked["tokens"])})
        if self.path not in ("/v1/completions", "/v1/chat/completions"):
            return self._send(404, {"error": {"message": f"no route {self.path}"}})
        if asked.get("n", 1) > server.most_texts:
            return self._send(400, {"error": {"message": f"n must be at most {server.most_texts}"}})
        if asked.get("model") != MODEL_NAME:
            return self._send(404, {"error": {"message": f"The model `{asked.get('model')}` does not exist."}})
        try:
            value = server.completion(asked)
        except ValueError as error:
            return self._send(400, {"error": {"message": str(error)}})
        return self._send(200, value)


def main() -> None:
    parser = argparse.ArgumentParser(prog="standin_server", description="A tiny model that decodes speculatively.")
    parser.add_argument("--port", type=int, default=8001)
    parser.add_argument("--fault", choices=[*FAULTS, "none"], default="none", help="what it does wrong")
    parser.add_argument("--plain", action="store_true", help="decode without speculation")
    parser.add_argument("--tells", choices=["ids", "logprobs", "text"], default="ids")
    options = parser.parse_args()
    fault = None if options.fault == "none" else options.fault
    decoder = TinyDecoder(TinyModel.made(0), gamma=0 if options.plain else 3, fault=fault)
    server = StandInServer(decoder, port=options.port, tells=options.tells)
    print(f"{decoder.name} at {server.url}, model {MODEL_NAME}", flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
