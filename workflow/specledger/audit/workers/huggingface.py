"""transformers: `generate` with an assistant, with prompt lookup, and with an early exit of the target's own layers.

The lower half runs in transformers' environment, where specledger isn't installed.
"""

NAME = "transformers"
REQUIREMENTS = "transformers.txt"
UNWANTED = ()
ORDER = "transformers"  # of its warpers; see audit.warpers
MODEL = "folder"

ASSISTANT = {"num_assistant_tokens": 3, "num_assistant_tokens_schedule": "constant"}
ALWAYS = {**ASSISTANT, "assistant_confidence_threshold": 0.0}
MODES = {
    "plain": {"control": "null"},
    "assistant": {"options": ALWAYS},
    "assistant_heuristic": {"options": {**ALWAYS, "num_assistant_tokens_schedule": "heuristic"}},
    "assistant_threshold": {"options": {**ASSISTANT, "assistant_confidence_threshold": 0.4}},
    # Settings of the assistant's own, which would make it draw from another distribution than it is asked for.
    "assistant_own_settings": {"options": {**ALWAYS, "own": {"do_sample": True, "temperature": 0.5, "top_k": 5}}},
    "assistant_greedy": {"options": ALWAYS, "settings": {"temperature": 0}},
    "assistant_temperature": {"options": ALWAYS, "settings": {"temperature": 0.7}},
    "assistant_top_k": {"options": ALWAYS, "settings": {"top_k": 8}},
    "assistant_top_p": {"options": ALWAYS, "settings": {"top_p": 0.9}},
    "assistant_min_p": {"options": ALWAYS, "settings": {"min_p": 0.05}},
    "assistant_penalty": {"options": ALWAYS, "settings": {"repetition_penalty": 1.3}},
    "assistant_together": {
        "options": ALWAYS,
        "settings": {"temperature": 0.8, "top_k": 20, "top_p": 0.95, "repetition_penalty": 1.1},
    },
    "prompt_lookup": {
        "options": {"prompt_lookup_num_tokens": 3, "max_matching_ngram_size": 2},
        "prompt": "long",
        "draft": False,
    },
    "early_exit": {"options": {**ALWAYS, "assistant_early_exit": 2}, "draft": False},
    # Documented as lossy: it accepts by a mixture of the target's and the assistant's distributions.
    "ensemble": {"options": {**ALWAYS, "assistant_ensemble_weight": 0.5}, "control": "lossy"},
    # Models of tiny random weights, made on the spot: target and assistant share keys and values.
    "gemma4_plain": {"options": {"gemma4": True}, "control": "null", "own_vocabulary": 41},
    "gemma4_assistant": {"options": {"gemma4": True, "num_assistant_tokens": 3}, "own_vocabulary": 41},
}


class System:
    """A target and, as the mode wants it, its assistant; `generate` serves one text at a time with an assistant."""

    def __init__(self, *, target: str, draft: str, options: dict, threads: int, context: int):
        import torch
        import transformers
        from transformers.utils import logging

        logging.set_verbosity_error()
        torch.set_num_threads(threads)
        self.torch, self.options = torch, dict(options)
        self.version = f"transformers {transformers.__version__}, torch {torch.__version__}"
        self.assistant = None
        own, assistant = self.options.pop("own", {}), {}
        for name in [name for name in self.options if "assistant" in name and name not in ON_TARGET]:
            assistant[name] = self.options.pop(name)
        if self.options.pop("gemma4", False):
            self.target, drafting = gemma4(torch, transformers)
            self.assistant = drafting if assistant else None
        else:
            self.target = transformers.LlamaForCausalLM.from_pretrained(target).eval()
            if assistant and "assistant_early_exit" not in self.options:
                self.assistant = transformers.LlamaForCausalLM.from_pretrained(draft).eval()
        # With an early exit the target is its own assistant, and drafts by its own settings.
        for name, value in {**assistant, **own}.items():
            setattr((self.assistant or self.target).generation_config, name, value)
        self.alone = not assistant and not self.options
        self.forwards = 0
        self.counting = None
        self.target.register_forward_hook(self._count)
        self.GenerationConfig = transformers.GenerationConfig

    def _count(self, *_) -> None:
        self.forwards += 1

    def sample(self, prompt: list[int], count: int, settings: dict):
        torch = self.torch
        config = self.GenerationConfig(**generation(settings), **self.options, eos_token_id=None, pad_token_id=0)
        ids = torch.tensor([prompt])
        asked = {"attention_mask": torch.ones_like(ids), "generation_config": config}
        if self.assistant is not None:
            asked["assistant_model"] = self.assistant
        torch.manual_seed(settings["seed"])
        size = 250 if self.alone else 25
        for first in range(0, count, size):
            n, self.forwards = min(size, count - first), 0
            with torch.inference_mode():
                if self.alone:
                    found = self.target.generate(ids, num_return_sequences=n, **asked)[:, len(prompt) :].tolist()
                    self.forwards *= n  # one of a batch is one of each text
                else:
                    found = [self.target.generate(ids, **asked)[0, len(prompt) :].tolist() for _ in range(n)]
            # The layers of an early exit run in the target's own module, and can't be told from its forward passes.
            counted = None if "assistant_early_exit" in self.options else self.forwards
            yield {"ids": found, "forwards": counted}

    def logits(self, prefixes: list[list[int]]) -> list[list[float]]:
        """The target's, after each prefix; all of one length."""
        with self.torch.inference_mode():
            return self.target(self.torch.tensor(prefixes)).logits[:, -1].double().tolist()


ON_TARGET = ("assistant_early_exit", "assistant_ensemble_weight")


def generation(settings: dict) -> dict:
    """The settings as `GenerationConfig` has them; temperature 0 is greedy; a warper left out is switched off."""
    found = {"max_new_tokens": settings["tokens"], "min_new_tokens": settings["tokens"]}
    if settings.get("repetition_penalty") is not None:
        found["repetition_penalty"] = settings["repetition_penalty"]
    if settings["temperature"] == 0:
        return found | {"do_sample": False}
    found |= {"do_sample": True, "temperature": settings["temperature"], "top_k": settings.get("top_k") or 0}
    found |= {name: settings[name] for name in ("top_p", "min_p") if settings.get(name) is not None}
    return found


def gemma4(torch, transformers):
    """A Gemma 4 target of 41 symbols and its assistant, both of random weights with logits that differ by units."""
    sizes = {
        "vocab_size": 41,
        "hidden_size": 32,
        "intermediate_size": 64,
        "num_attention_heads": 2,
        "num_key_value_heads": 1,
        "head_dim": 16,
        "global_head_dim": 16,
        "hidden_size_per_layer_input": 0,
        "vocab_size_per_layer_input": 0,
        "sliding_window": 64,
        "max_position_embeddings": 64,
        "layer_types": ["sliding_attention", "full_attention"],
        "num_hidden_layers": 2,
        "eos_token_id": None,
        "initializer_range": 0.2,
        "tie_word_embeddings": False,
    }
    torch.manual_seed(1)
    target = transformers.Gemma4ForCausalLM(transformers.Gemma4TextConfig(**sizes)).eval()
    text = transformers.Gemma4TextConfig(**sizes, num_kv_shared_layers=2)
    config = transformers.Gemma4AssistantConfig(text_config=text, backbone_hidden_size=sizes["hidden_size"])
    return target, transformers.Gemma4AssistantForCausalLM(config).eval()


if __name__ == "__main__":
    from worker import serve

    serve(System)
