"""Small things that many tests play with: a synthetic text, tiny models with spread-out logits, drafters."""

import random
from dataclasses import replace

import numpy as np
import torch
from specledger.corpus.text import Corpus, Vocabulary, split_point
from specledger.decoding.drafter import Drafter, Parts
from specledger.drafters.mtp import MTPModule
from specledger.drafters.ngram import NGram
from specledger.drafters.registry import make
from specledger.models.llama import Llama, LlamaConfig, initialise

CPU = torch.device("cpu")
SCHEDULE = {
    "learning_rate": 1e-2,
    "warmup_steps": 5,
    "final_learning_rate_fraction": 0.1,
    "weight_decay": 0.1,
    "betas": (0.9, 0.95),
    "clip_norm": 1.0,
}
WORDS = "the king and his fool speak of love death honour night what shall we do with thee my lord".split()


def play(characters: int, seed: int = 0) -> str:
    """A text that looks like a play, with as many characters and with the prompt `ROMEO:` in it."""
    choose = random.Random(seed)
    lines, written = [], 0
    while written < characters:
        speech = " ".join(choose.choices(WORDS, k=choose.randint(3, 9)))
        lines.append(f"{choose.choice(('ROMEO', 'JULIET', 'NURSE'))}:\n{speech.capitalize()}.\n\n")
        written += len(lines[-1])
    return ("ROMEO:\n" + "".join(lines))[:characters]


def corpus_of(text: str, validation_fraction: float = 0.1) -> Corpus:
    vocabulary = Vocabulary.of(text)
    tokens, split = vocabulary.encode(text), split_point(len(text), validation_fraction)
    return Corpus(
        vocabulary=vocabulary, train=tokens[:split], validation=tokens[split:], prompt=vocabulary.encode("ROMEO:\n")
    )


def sizes(vocabulary: int = 7, *, context: int = 12, layers: int = 2, width: int = 16) -> LlamaConfig:
    return LlamaConfig(vocabulary=vocabulary, layers=layers, width=width, heads=4, kv_heads=2, context=context)


def tiny_llama(config: LlamaConfig, seed: int, std: float = 0.4) -> Llama:
    """Random weights, so large that the logits differ by whole units and attention matters."""
    model = Llama(config)
    initialise(model, torch.Generator().manual_seed(seed), std=std)
    return model.eval().requires_grad_(False)


def tiny_mtp(config: LlamaConfig, seed: int, std: float = 0.4) -> MTPModule:
    mtp = MTPModule(config)
    initialise(mtp, torch.Generator().manual_seed(seed), std=std)
    return mtp.eval().requires_grad_(False)


def drafters_of(target: Llama) -> dict:
    """One drafter of each kind, none of them good: every round has something to reject."""
    config = target.config
    draft = tiny_llama(sizes(config.vocabulary, context=config.context, layers=1, width=8), seed=101)
    tokens = np.random.default_rng(5).integers(config.vocabulary, size=400)
    ngram = NGram.count(tokens, vocabulary=config.vocabulary, order=3, discount=0.75)
    parts = Parts(target=target, draft=draft, ngram=ngram, mtp=tiny_mtp(config, seed=102))
    return {name: make(name, parts) for name in ("draft", "ngram", "mtp")}


def model_drafter(model: Llama, *, name: str = "draft", threshold: float = 0.0) -> Drafter:
    """A model of its own as the drafter, which stops after what it gave less than the threshold."""
    found = make("draft", Parts(target=model, draft=model))
    return replace(found, name=name, threshold=threshold, prefix_alone=not threshold)


def lookup_drafter(vocabulary: int, *, longest: int, shortest: int) -> Drafter:
    drafting = {"lookup_longest": longest, "lookup_shortest": shortest}
    return make("lookup", Parts(target=tiny_llama(sizes(vocabulary), seed=0), drafting=drafting))
