"""Text to token indices and back, and the split into training and validation."""

import hashlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from specledger.foundation.errors import UserError

AHEAD = 6  # characters behind a context: the furthest that a head's loss looks, and one to choose another place


@dataclass(frozen=True, kw_only=True)
class Vocabulary:
    """The characters of a corpus in code point order; a token is an index into `symbols`."""

    symbols: tuple[str, ...]

    @classmethod
    def of(cls, text: str) -> "Vocabulary":
        return cls(symbols=tuple(sorted(set(text))))

    def __len__(self) -> int:
        return len(self.symbols)

    def encode(self, text: str) -> np.ndarray:
        """Token indices [T] int64 of `text`; UserError for a character that the corpus lacks."""
        index = {symbol: i for i, symbol in enumerate(self.symbols)}
        missing = sorted(set(text) - set(index))
        if missing:
            raise UserError(f"{text[:40]!r} has characters that the corpus lacks: {''.join(missing)!r}")
        return np.fromiter((index[character] for character in text), dtype=np.int64, count=len(text))

    def decode(self, tokens) -> str:
        """The text of token indices."""
        return "".join(self.symbols[int(token)] for token in tokens)


def decode_utf8(raw: bytes, name: str) -> str:
    """The text of `raw`; UserError naming the file and the first byte that is not UTF-8."""
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise UserError(f"{name}: not UTF-8 text (byte {error.start} is 0x{raw[error.start]:02x})") from None


def split_point(characters: int, validation_fraction: float) -> int:
    """Where validation starts: the last `validation_fraction` of the text is validation."""
    return int(characters * (1 - validation_fraction))


def max_order(vocabulary: int) -> int:
    """The longest n-gram whose code still fits into 63 bits."""
    order = 1
    while vocabulary ** (order + 1) < 2**63:
        order += 1
    return order


def check_usable(text: str, **study) -> None:
    """UserError in one line that names the file and why the study can't use its text; `check_fits` says for what."""
    check_fits(len(text), "".join(sorted(set(text))), **study)


def check_fits(
    characters: int,
    symbols: str,
    *,
    name: str,
    context: int,
    validation_fraction: float,
    prompt: str,
    positions: int = 1,
    order: int = 1,
) -> None:
    """Whether a text of so many `characters`, with these `symbols`, is enough for a study; UserError where it is not.

    Training and validation must each be longer than a context and what the losses look at behind it, validation
    must hold `positions` places with a whole context before them, and n-grams of `order` symbols must be countable.
    """
    split = split_point(characters, validation_fraction)
    for part, length, more in (("training", split, AHEAD), ("validation", characters - split, max(AHEAD, positions))):
        if length < context + more:
            raise UserError(
                f"{name}: {characters} characters leave {length} for {part}, at least {context + more} are needed "
                f"(model.context {context} + {more})"
            )
    if len(symbols) < 2:
        raise UserError(f"{name}: only one distinct character, at least 2 are needed")
    missing = "".join(sorted(set(prompt) - set(symbols)))
    if missing:
        raise UserError(f"{name}: lacks {missing!r} of the prompt {prompt!r}; set corpus.prompt to what it can spell")
    if order > (longest := max_order(len(symbols))):
        raise UserError(
            f"config ngram.order: {order} — must be at most {longest} for the {len(symbols):,} distinct "
            f"characters of {name}, so that the codes of its n-grams fit into 63 bits"
        )


@dataclass(frozen=True, kw_only=True)
class Corpus:
    """An encoded corpus: `train`, `validation` and `prompt` are token arrays [T] int64."""

    vocabulary: Vocabulary
    train: np.ndarray
    validation: np.ndarray
    prompt: np.ndarray

    @classmethod
    def load(cls, text_path: Path, record: dict, prompt: str = "") -> "Corpus":
        """Read the text that the corpus stage wrote, split as its record corpus.json says.

        The record has a prompt of its own only where the text is the fallback, which may not spell `prompt`.
        """
        raw = text_path.read_bytes()
        if record.get("sha256", found := hashlib.sha256(raw).hexdigest()) != found:
            raise UserError(f"{text_path}: not the text that corpus.json describes; delete it and run snakemake again")
        text = decode_utf8(raw, str(text_path))
        vocabulary = Vocabulary(symbols=tuple(record["vocabulary"]))
        tokens = vocabulary.encode(text)
        split = record["train_characters"]
        return cls(
            vocabulary=vocabulary,
            train=tokens[:split],
            validation=tokens[split:],
            prompt=vocabulary.encode(record["prompt"] or prompt),
        )
