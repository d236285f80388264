"""The pair, opened: target, drafters, prompts as tokens, and the engine that runs models of transformers."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from specledger.decoding.drafter import Drafter
from specledger.decoding.engines import Engine
from specledger.drafters.draft_model import ModelProposer
from specledger.drafters.lookup import LookupProposer
from specledger.drafters.ngram import NGram, NGramProposer
from specledger.foundation.errors import UserError
from specledger.models import huggingface
from specledger.models.huggingface import Opened, TextCache
from specledger.pair.files import (
    Prompt,
    check_lengths,
    check_memory,
    check_model,
    check_vocabularies,
    prompts_of,
    text_of,
)

MODELS = ("draft", "early_exit")  # drafters that run a model


@dataclass(frozen=True, kw_only=True)
class TransformersEngine(Engine):
    """The engine `cached` for models of transformers."""

    name: str = "cached"

    def cache(self, model: Opened, layers: int, capacity: int) -> TextCache:
        return TextCache(capacity=capacity, device=model.device)


@dataclass(frozen=True, kw_only=True)
class Pair:
    """All that a pair study measures; `tokens` are those of each prompt."""

    target: Opened
    drafters: dict[str, Drafter]
    prompts: list[Prompt]
    tokens: list[list[int]]
    engine: Engine
    decode: Callable[[list[int]], str]

    @property
    def tasks(self) -> list[str]:
        return list(dict.fromkeys(prompt.task for prompt in self.prompts))

    def of_task(self, task: str) -> list[list[int]]:
        return [tokens for prompt, tokens in zip(self.prompts, self.tokens, strict=True) if prompt.task == task]


def open_pair(settings: dict, target_path: Path, device: torch.device) -> Pair:
    """Open what the settings name; UserError, before any weight is read, for what can't be studied."""
    draft_path = Path(settings["draft"]) if settings["draft"] else None
    paths = [target_path, *([draft_path] if draft_path else [])]
    for path, key in zip(paths, ("target", "draft"), strict=False):
        check_model(path, key)
    prompts = prompts_of(Path(settings["prompts"]))
    text = text_of(Path(settings["text"]), "text") if settings["text"] else None
    check_memory(paths, settings["dtype"])
    huggingface.quiet()
    tokenizers = [_opened(huggingface.tokenizer_of, path, what="tokenizer") for path in paths]
    configs = [_opened(huggingface.config_of, path, what="config.json") for path in paths]
    for path, config in zip(paths, configs, strict=True):
        if not huggingface.croppable(config):
            raise UserError(
                f"{path}: the cache of this kind of model ({config.model_type}) can't be cropped; models whose "
                "attention slides or whose state is recurrent can't be studied"
            )
    sizes = [config.get_text_config().vocab_size for config in configs]
    if draft_path is not None:
        check_vocabularies(*(one.get_vocab() for one in tokenizers), *sizes)
    tokens = huggingface.tokens_of([prompt.text for prompt in prompts], tokenizers[0], chat=settings["chat"])
    longest = max(settings["tokens"], settings["proof"]["tokens"], settings["batches"]["tokens"])
    check_lengths(prompts, tokens, longest, huggingface.context_of(configs[0]))
    dtype = {"dtype": settings["dtype"], "device": device}
    models = [_opened(huggingface.load, path, what="weights", **dtype) for path in paths]
    counted = tokenizers[0](text)["input_ids"] if text is not None else None
    drafters = drafters_of(settings, models[0], models[1] if draft_path else None, counted)
    return Pair(
        target=models[0],
        drafters=drafters,
        prompts=prompts,
        tokens=tokens,
        engine=TransformersEngine(),
        decode=tokenizers[0].decode,
    )


def drafters_of(settings: dict, target: Opened, draft: Opened | None, text: list[int] | None) -> dict[str, Drafter]:
    """The drafters that have gammas, in their order; UserError for one that nothing was given for."""
    V, gammas = target.config.vocabulary, settings["gammas"]
    found: dict[str, Drafter] = {}
    shared = {"vocabulary": V}
    for name in [name for name, choices in gammas.items() if choices]:
        if name == "lookup":
            parts = settings["lookup_longest"], settings["lookup_shortest"]
            found[name] = Drafter(name=name, proposer=LookupProposer, parts=parts, branches=False, **shared)
        elif name == "ngram":
            if text is None:
                raise UserError("config pair.gammas.ngram: the n-gram wants pair.text, a UTF-8 file to count")
            counted = NGram.count(
                np.array(text, dtype=np.int64), vocabulary=V, order=settings["ngram_order"], discount=0.75
            )
            found[name] = Drafter(name=name, proposer=NGramProposer, parts=(counted,), prefix_alone=True, **shared)
        elif name == "early_exit":
            if settings["early_exit"] is None:
                raise UserError("config pair.gammas.early_exit: pair.early_exit must say after how many layers")
            model = target.first_layers(settings["early_exit"])
            found[name] = Drafter(name=name, proposer=ModelProposer, parts=(model,), prefix_alone=True, **shared)
        else:
            if draft is None:
                raise UserError("config pair.gammas.draft: pair.draft names no draft model")
            found[name] = Drafter(name=name, proposer=ModelProposer, parts=(draft,), prefix_alone=True, **shared)
    return found


def _opened(opening: Callable, path: Path, *, what: str, **how):
    """What transformers opens, or its complaint as one line."""
    try:
        return opening(path, **how)
    except UserError:
        raise
    except ImportError as error:
        raise UserError(f"{path}: {' '.join(str(error).split())[:160]}; pip install 'specledger[pair]'") from error
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RuntimeError) as error:
        line = " ".join(str(error).split())[:200] or type(error).__name__
        raise UserError(f"{path}: transformers can't open its {what} ({line})") from error
