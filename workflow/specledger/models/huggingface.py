"""A causal language model of transformers behind the few names that decoding asks of a model.

What is cached is ours, so that rolling back sets a length and copies nothing; transformers is handed the keys and
values through its own cache interface. Shapes: B batch, T new positions, S attended positions, K key/value heads,
E head width, V vocabulary.
"""

import contextlib
import copy
import inspect
import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import transformers
from torch import Tensor, nn
from transformers.cache_utils import CacheLayerMixin, DynamicCache, DynamicLayer

from specledger.foundation.errors import UserError
from specledger.models.cache import Cache, Where
from specledger.models.rows import RowCache, SeenByRows


@dataclass(frozen=True, kw_only=True)
class Sizes:
    """What decoding asks of a model's configuration."""

    vocabulary: int
    layers: int
    context: int


class TextCache(Cache):
    """Keys and values [1, K, S, E] of each layer, made when they first come."""

    def __init__(self, *, capacity: int, device: torch.device):
        super().__init__(context=capacity + 1, capacity=capacity)
        self.device = device
        self.keys: dict[int, Tensor] = {}
        self.values: dict[int, Tensor] = {}

    def view(self, where: Where) -> SeenByRows:
        places = torch.tensor([list(where.places)], device=self.device)
        line = isinstance(where.places, range)
        mask = None if where.mask is None or (line and places[0, 0] == 0) else where.mask[None, None]
        start = where.stop - len(where.places)
        return SeenByRows(cache=self, places_BT=places, mask_TS=mask, start=start, stop=where.stop)

    def as_mask(self, sees_TS: np.ndarray) -> Tensor:
        return torch.from_numpy(np.ascontiguousarray(sees_TS)).to(self.device)

    def move(self, rows: list[int], first: int) -> None:
        taken = torch.tensor(rows, device=self.device)
        for stored in (*self.keys.values(), *self.values.values()):
            stored[:, :, first : first + len(rows)] = stored.index_select(2, taken)


class _Layer(CacheLayerMixin):
    """One layer as transformers asks for it; what it stores is the `Past`'s."""

    is_croppable = True
    is_sliding = False

    def __init__(self, past: "Past", layer: int):
        super().__init__()
        self.past, self.layer = past, layer

    def lazy_initialization(self, key_states, value_states) -> None:
        self.is_initialized = True

    def update(self, key_states, value_states, *args, **kwargs):
        return self.past.seen.keys_and_values(self.layer, key_states, value_states)

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        return self.past.seen.stop, 0

    def get_seq_length(self) -> int:
        return self.past.seen.stop - self.past.seen.places_BT.shape[1]

    def get_max_length(self) -> int:
        return -1

    get_max_cache_shape = get_max_length  # its name before transformers 5.2x


class Past(transformers.Cache):
    """The cache of one forward pass, as transformers takes it."""

    def __init__(self, seen: Any, layers: int):
        self.seen = seen
        super().__init__(layers=[_Layer(self, layer) for layer in range(layers)])


class Opened:
    """The model: `outputs` gives logits for new tokens after what a cache holds.

    Hidden states stay inside: what stands in their place has the right number of rows and says nothing.
    """

    chain = None

    def __init__(self, model: transformers.PreTrainedModel):
        self.network, own = model, model.config.get_text_config()
        context = context_of(model.config)
        self.config = Sizes(vocabulary=own.vocab_size, layers=own.num_hidden_layers, context=context)
        asked = inspect.signature(model.forward).parameters
        self.takes = "cache" if "cache" in asked else "past_key_values"
        self.keeps = "logits_to_keep" in asked
        self.lowest = torch.finfo(model.dtype).min

    @property
    def lm_head(self) -> nn.Module:
        return self.network.get_output_embeddings()

    @property
    def device(self) -> torch.device:
        return self.lm_head.weight.device

    def outputs(self, tokens_BT: Tensor, cache: TextCache | RowCache, rows: int) -> tuple[Tensor, Tensor, Tensor]:
        """Stand-ins for hidden states, twice, and logits of the last `rows` positions [B, rows, V] in float32."""
        B, T = tokens_BT.shape
        seen = cache.extend(T)
        asked = {"input_ids": tokens_BT, "position_ids": seen.places_BT, "use_cache": True}
        asked[self.takes] = Past(seen, self.config.layers)
        if seen.mask_TS is not None:  # added to the scores, which every kind of attention takes
            asked["attention_mask"] = torch.zeros(
                seen.mask_TS.shape, dtype=self.network.dtype, device=self.device
            ).masked_fill_(~seen.mask_TS, self.lowest)
        if self.keeps:
            asked["logits_to_keep"] = rows
        logits_BTV = self.network(**asked).logits[:, -rows:].float()
        nothing_BT1 = logits_BTV.new_zeros((B, T, 1))
        return nothing_BT1, nothing_BT1, logits_BTV

    def hidden(self, tokens_BT: Tensor, cache: TextCache | RowCache | None = None) -> Tensor:
        """The logits of all positions, which `logits` takes for hidden states; without a cache the tokens are all."""
        count = tokens_BT.shape[1]
        made = TextCache(capacity=count, device=self.device) if cache is None else cache
        return self.outputs(tokens_BT, made, count)[2]

    def logits(self, hidden_BTV: Tensor) -> Tensor:
        return hidden_BTV

    def first_layers(self, count: int) -> "Opened":
        """The model that leaves after `count` of its layers, through its own norm and head; all weights are shared."""
        if not 1 <= count < self.config.layers:
            raise UserError(f"config pair.early_exit: {count} — allowed: from 1 to {self.config.layers - 1}, or null")
        config = copy.deepcopy(self.network.config)
        config.get_text_config().num_hidden_layers = count
        return Opened(_cut(self.network, self.config.layers, count, config))


def _cut(module: nn.Module, layers: int, count: int, config: Any) -> nn.Module:
    """A copy of a module that shares every weight and has only the first `count` of its `layers` blocks."""
    found = copy.copy(module)
    found._modules = dict(module._modules)
    if hasattr(found, "config"):
        found.config = config
    for name, child in module._modules.items():
        if isinstance(child, nn.ModuleList) and len(child) == layers:
            found._modules[name] = nn.ModuleList(child[:count])
        elif child is not None and any(isinstance(c, nn.ModuleList) and len(c) == layers for c in child.modules()):
            found._modules[name] = _cut(child, layers, count, config)
    return found


def croppable(config: transformers.PreTrainedConfig) -> bool:
    """Can a cache of this model forget its last positions? Not where attention slides or a state is recurrent."""
    try:
        layers = DynamicCache(config=config).layers
    except Exception:  # of a model that transformers has no such cache for
        return False
    return all(type(layer) is DynamicLayer for layer in layers)


def load(path: Any, *, dtype: str, device: torch.device) -> Opened:
    """The model of a folder in Hugging Face layout or of a GGUF file, for inference."""
    asked = {"dtype": getattr(torch, dtype), "local_files_only": True}
    if path.suffix == ".gguf":
        with contextlib.redirect_stderr(io.StringIO()):  # a bar of its own that nothing switches off
            model = transformers.AutoModelForCausalLM.from_pretrained(path.parent, gguf_file=path.name, **asked)
    else:
        model = transformers.AutoModelForCausalLM.from_pretrained(path, use_safetensors=True, **asked)
    return Opened(model.to(device).eval().requires_grad_(False))


def config_of(path: Any) -> transformers.PreTrainedConfig:
    """The configuration of a folder or of a GGUF file."""
    if path.suffix == ".gguf":
        return transformers.AutoConfig.from_pretrained(path.parent, gguf_file=path.name, local_files_only=True)
    return transformers.AutoConfig.from_pretrained(path, local_files_only=True)


def context_of(config: transformers.PreTrainedConfig) -> int:
    """How many positions a model takes; a large number where its configuration doesn't say."""
    own = config.get_text_config()
    return getattr(own, "max_position_embeddings", None) or getattr(own, "n_positions", None) or 1 << 20


def tokenizer_of(path: Any) -> Any:
    """The tokenizer that lies in the folder or in the GGUF file."""
    if path.suffix == ".gguf":
        return transformers.AutoTokenizer.from_pretrained(path.parent, gguf_file=path.name, local_files_only=True)
    return transformers.AutoTokenizer.from_pretrained(path, local_files_only=True)


def quiet() -> None:
    """transformers' warnings and bars are not for the user of a stage."""
    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()


def tokens_of(texts: Sequence[str], tokenizer: Any, *, chat: bool) -> list[list[int]]:
    """The tokens of each prompt; with `chat` as a user's message in the model's own template."""
    if not chat:
        return [tokenizer(text)["input_ids"] for text in texts]
    found = []
    for text in texts:
        message = [{"role": "user", "content": text}]
        words = tokenizer.apply_chat_template(message, add_generation_prompt=True, tokenize=False)
        found.append(tokenizer(words, add_special_tokens=False)["input_ids"])
    return found
