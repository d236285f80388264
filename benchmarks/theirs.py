"""Hugging Face transformers on our weights: plain, assisted and prompt-lookup generation.

The weights are opened as Mistral, which is Llama with a sliding window: each position looks back at most
`context` positions, so that its texts have the very distribution of our engines of the rule `sliding`.
"""

import os
from dataclasses import dataclass
from pathlib import Path

import torch
from specledger.decoding.engines import engine
from specledger.foundation.errors import UserError
from specledger.foundation.records import read_json
from specledger.models.storage import load_model

os.environ.setdefault("HF_HUB_OFFLINE", "1")
try:
    import transformers
except ImportError:
    raise UserError("transformers is not installed; make peers installs it, or pip install -e '.[peers]'") from None

SHARED = (
    "vocab_size num_hidden_layers hidden_size num_attention_heads num_key_value_heads head_dim intermediate_size "
    "rms_norm_eps hidden_act tie_word_embeddings"
).split()
KERNELS = ("sdpa", "eager")
DEFAULT_GAMMA, DEFAULT_THRESHOLD, DEFAULT_LOOKUP = 20, 0.4, 10  # theirs, or what their documentation shows
ROUNDING = 1e-3  # of float32 logits: those of a trained model are of size 1 to 10


def open_model(folder: Path, kernel: str, device: torch.device, positions: int):
    """The model of a folder, for texts of at most `positions` tokens."""
    record = read_json(folder / "config.json")
    config = transformers.MistralConfig(
        **{key: record[key] for key in SHARED},
        rope_parameters={"rope_type": "default", "rope_theta": record["rope_theta"]},
        sliding_window=record["max_position_embeddings"],
        max_position_embeddings=positions,
        bos_token_id=None,
        eos_token_id=None,
    )
    transformers.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    model, found = transformers.MistralForCausalLM.from_pretrained(
        folder, config=config, attn_implementation=kernel, dtype=torch.float32, output_loading_info=True
    )
    assert not any(found.values()), found
    return model.to(device).eval()


@torch.inference_mode()
def furthest_logits(folder: Path, tokens: list[int], device: torch.device) -> float:
    """The largest difference between their logits and ours, token by token, past the window; UserError if it is one."""
    ours = engine("cached").open(load_model(folder, device), len(tokens))
    theirs, cache, furthest = open_model(folder, KERNELS[0], device, len(tokens)), None, 0.0
    for count in range(1, len(tokens) + 1):
        step = theirs(torch.tensor([tokens[count - 1 : count]], device=device), cache=cache, use_cache=True)
        cache = step.cache
        mine_V = ours.forward(tokens[:count], rows=1).logits_TV[-1]
        furthest = max(furthest, float((mine_V - step.logits[0, -1]).abs().max()))
    if furthest > ROUNDING:
        raise UserError(f"{folder}: transformers' logits differ from ours by {furthest:.3g}; nothing was compared")
    return furthest


@dataclass(frozen=True, kw_only=True)
class Theirs:
    """One way in which transformers generates; `gamma` is the most that is proposed a round."""

    kernel: str
    model: object
    method: str = "generate"
    cache: str = "dynamic"
    drafter: str = "none"
    gamma: int = 0
    assistant: object = None
    threshold: float | None = None
    program: str = "transformers"
    engine: str = ""

    @property
    def how(self) -> str:
        """Its settings in words."""
        parts = [f"{self.kernel} attention", f"{self.cache} cache"]
        if self.threshold is not None:
            stops = f"stops drafting below a confidence of {self.threshold}" if self.threshold else "fixed draft length"
            parts.append(stops)
        return ", ".join(parts)

    def decode(self, prompt: list[int], count: int, block: int) -> int:
        """Sample `count` tokens at temperature 1; returns how many came."""
        # What makes our runs repeat isn't asked of others: it costs time.
        torch.use_deterministic_algorithms(False)
        torch.manual_seed(block)
        tokens_BT = torch.tensor([prompt], device=self.model.device)
        settings = transformers.GenerationConfig(
            do_sample=True, temperature=1.0, top_k=0, top_p=1.0, max_new_tokens=count, use_cache=True, pad_token_id=0
        )
        if self.cache == "static":
            settings.cache_implementation = "static"
        if self.drafter == "lookup":
            settings.prompt_lookup_num_tokens = self.gamma
        if self.assistant is not None:
            own = self.assistant.generation_config
            own.num_assistant_tokens, own.num_assistant_tokens_schedule = self.gamma, "constant"
            own.assistant_confidence_threshold = self.threshold
        try:
            found = self.model.generate(
                tokens_BT,
                attention_mask=torch.ones_like(tokens_BT),
                generation_config=settings,
                assistant_model=self.assistant,
            )
        finally:
            torch.use_deterministic_algorithms(True, warn_only=True)
        return found.shape[1] - len(prompt)


def generating(target: Path, device: torch.device, positions: int) -> list[Theirs]:
    """Plain generation with each attention kernel and cache."""
    models = {kernel: open_model(target, kernel, device, positions) for kernel in KERNELS}
    return [
        Theirs(kernel=kernel, model=model, cache=cache)
        for kernel, model in models.items()
        for cache in ("dynamic", "static")
    ]


def speculating(plain: Theirs, draft: Path, gammas: list[int], device: torch.device, positions: int) -> list[Theirs]:
    """Assisted generation and prompt lookup with the kernel of `plain`, which work with the dynamic cache alone."""
    one = {"kernel": plain.kernel, "model": plain.model}
    assisted = {"method": "assisted generation", "drafter": "draft"}
    assisted["assistant"] = open_model(draft, plain.kernel, device, positions)
    lookup = {"method": "prompt lookup", "drafter": "lookup"}
    return [
        Theirs(**one, **assisted, gamma=gamma, threshold=threshold)
        for gamma in sorted({*gammas, DEFAULT_GAMMA})
        for threshold in (0.0, DEFAULT_THRESHOLD)
    ] + [Theirs(**one, **lookup, gamma=gamma) for gamma in sorted({*gammas, DEFAULT_LOOKUP})]
