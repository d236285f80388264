"""llama.cpp: its own server, as the package xllamacpp carries it, asked over HTTP at a loopback port.

The lower half runs in llama.cpp's environment, where specledger isn't installed.
"""

import http.client
import json
import random
from urllib.parse import urlsplit

NAME = "llama.cpp"
REQUIREMENTS = "llama_cpp.txt"
UNWANTED = ()
ORDER = "llama.cpp"  # of its warpers; see audit.warpers
MODEL = "gguf"

DRAFT = {"types": ["DRAFT_SIMPLE"], "n_max": 3}
PROBABILISTIC = {**DRAFT, "probabilistic": True}
MODES = {
    "plain": {"control": "null"},
    "draft": {"options": DRAFT},
    "draft_p_min": {"options": {**DRAFT, "p_min": 0.2}},
    "draft_p_min_n_min": {"options": {**DRAFT, "p_min": 0.2, "n_min": 2}},
    "draft_greedy": {"options": DRAFT, "settings": {"temperature": 0}},
    "probabilistic": {"options": PROBABILISTIC},
    "probabilistic_temperature": {"options": PROBABILISTIC, "settings": {"temperature": 0.7}},
    "probabilistic_top_k": {"options": PROBABILISTIC, "settings": {"top_k": 8}},
    "probabilistic_top_p": {"options": PROBABILISTIC, "settings": {"top_p": 0.9}},
    "probabilistic_min_p": {"options": PROBABILISTIC, "settings": {"min_p": 0.05}},
    "probabilistic_penalty": {"options": PROBABILISTIC, "settings": {"repetition_penalty": 1.3}},
    "probabilistic_together": {
        "options": PROBABILISTIC,
        "settings": {"temperature": 0.8, "top_k": 20, "top_p": 0.95, "repetition_penalty": 1.1},
    },
    "probabilistic_p_min": {"options": {**PROBABILISTIC, "p_min": 0.2}},
    "probabilistic_n_min": {"options": {**PROBABILISTIC, "n_min": 2}},
    # A draft shorter than n_min is thrown away whole, and how long it is depends on the tokens drawn.
    "probabilistic_p_min_n_min": {"options": {**PROBABILISTIC, "p_min": 0.2, "n_min": 2}},
    "ngram_simple": {
        "options": {"types": ["NGRAM_SIMPLE"], "size_n": 2, "size_m": 3},
        "prompt": "long",
        "draft": False,
    },
    "ngram_map_k": {"options": {"types": ["NGRAM_MAP_K"], "size_n": 2, "size_m": 3}, "prompt": "long", "draft": False},
    "ngram_map_k4v": {
        "options": {"types": ["NGRAM_MAP_K4V"], "size_n": 2, "size_m": 3},
        "prompt": "long",
        "draft": False,
    },
    "ngram_mod": {
        "options": {"types": ["NGRAM_MOD"], "n_match": 2, "n_max": 3, "n_min": 1},
        "prompt": "long",
        "draft": False,
    },
    "ngram_cache": {"options": {"types": ["NGRAM_CACHE"]}, "prompt": "long", "draft": False},
    # Documented as a tool for timing: drafts are kept at given rates, whatever the target says.
    "synthetic": {"options": {**DRAFT, "synth_rates": [0.7, 0.5, 0.3]}, "control": "lossy"},
}


class System:
    """A server of one mode, with one slot of `context` positions."""

    def __init__(self, *, target: str, draft: str, options: dict, threads: int, context: int):
        import xllamacpp

        self.version = f"xllamacpp {xllamacpp.__version__}"
        self.server = xllamacpp.Server(parameters(xllamacpp, target, draft, options, threads, context))
        self.client = http.client.HTTPConnection(urlsplit(self.server.listening_address).netloc, timeout=60)

    def ask(self, **body) -> dict:
        self.client.request("POST", "/completion", json.dumps(body), {"content-type": "application/json"})
        reply = self.client.getresponse()
        text = reply.read()
        if reply.status != 200:
            raise RuntimeError(f"/completion answered {reply.status}: {text[:300].decode(errors='replace')}")
        return json.loads(text)

    def sample(self, prompt: list[int], count: int, settings: dict):
        asked, draw = request(prompt, settings), random.Random(settings["seed"])
        for first in range(0, count, 250):
            found = [self.ask(**asked, seed=draw.getrandbits(31)) for _ in range(first, min(first + 250, count))]
            times = [text["timings"] for text in found]
            accepted = sum(time.get("draft_n_accepted", 0) for time in times)
            yield {
                "ids": [text["tokens"] for text in found],
                "accepted": accepted,
                "drafted": sum(time.get("draft_n", 0) for time in times),
                # A forward pass of the target yields the draft tokens that it accepts and one more.
                "forwards": sum(len(text["tokens"]) for text in found) - accepted,
            }

    def logits(self, prefixes: list[list[int]]) -> list[list[float]]:
        """Logarithms of the probabilities after each prefix: the logits, less a constant of each row."""
        rows = []
        for prefix in prefixes:
            asked = {**request(prefix, {"temperature": 1.0, "tokens": 1}), "n_probs": 1_000_000, "seed": 0}
            (place,) = self.ask(**asked)["completion_probabilities"]
            found = {one["id"]: one["logprob"] for one in place["top_logprobs"]}
            rows.append([found[token] for token in sorted(found)])
        return rows


def request(prompt: list[int], settings: dict) -> dict:
    """The body of a request but for its seed; a warper that is left out is switched off by name."""
    return {
        "prompt": prompt,
        "n_predict": settings["tokens"],
        "temperature": settings["temperature"],
        "top_k": settings.get("top_k") or 0,
        "top_p": settings.get("top_p") or 1.0,
        "min_p": settings.get("min_p") or 0.0,
        "repeat_penalty": settings.get("repetition_penalty") or 1.0,
        "repeat_last_n": len(prompt) + settings["tokens"],
        "ignore_eos": True,
        "return_tokens": True,
    }


def parameters(llama, target: str, draft: str, options: dict, threads: int, context: int):
    """The server's: float32 keys and values, nothing fused, a free port of the loopback address."""
    options = dict(options)
    params, speculative = llama.CommonParams(), None
    params.model.path = target
    params.n_ctx, params.n_parallel = context, 1
    params.hostnames, params.port = ["127.0.0.1"], 0
    params.cache_type_k = params.cache_type_v = llama.ggml_type.GGML_TYPE_F32
    params.flash_attn_type = llama.llama_flash_attn_type.LLAMA_FLASH_ATTN_TYPE_DISABLED
    params.warmup = params.use_jinja = params.ui = False
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = threads
    speculative = params.speculative
    types = options.pop("types", [])
    if not types:
        return params
    speculative.types = [getattr(llama.common_speculative_type, f"COMMON_SPECULATIVE_TYPE_{name}") for name in types]
    speculative.synth_rates = options.pop("synth_rates", [])
    if "DRAFT_SIMPLE" in types:
        speculative.draft.mparams.path = draft
        speculative.draft.cache_type_k = speculative.draft.cache_type_v = llama.ggml_type.GGML_TYPE_F32
        speculative.draft.cpuparams.n_threads = speculative.draft.cpuparams_batch.n_threads = threads
    place = getattr(speculative, types[0].lower(), speculative.draft)
    for name, value in options.items():
        setattr(place, name, value)
    return params


if __name__ == "__main__":
    from worker import serve

    serve(System)
