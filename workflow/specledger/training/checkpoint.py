"""A checkpoint's file: a training's state in safetensors (no pickle), with what made it and a sum of its content."""

import hashlib
import json
import os
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor

from specledger.corpus.text import Corpus
from specledger.foundation.records import written_whole


class Unusable(Exception):
    """Why a checkpoint is of no use to a training; the text follows the file's name."""


@dataclass(frozen=True, kw_only=True)
class Checkpoint:
    """What a file held: arguments of `State.restore`."""

    tensors: dict[str, Tensor]
    facts: dict

    @property
    def step(self) -> int:
        return self.facts["step"]


def text_sum(corpus: Corpus) -> str:
    """The sha256 of all that training sees of a text: its symbols and both parts."""
    digest = hashlib.sha256("".join(corpus.vocabulary.symbols).encode())
    for part in (corpus.train, corpus.validation):
        digest.update(f"\0{len(part)}\0".encode())
        digest.update(part)
    return digest.hexdigest()


def write(path: Path, tensors: dict[str, Tensor], facts: dict, identity: dict[str, str]) -> None:
    """Write a checkpoint whole, or leave the one that is there as it was; OSError where it can't be written."""
    metadata = {"facts": json.dumps(facts), "identity": json.dumps(identity)}
    content = save(tensors, {**metadata, "sha256": _sum(tensors, metadata)})
    with written_whole(path) as temporary, temporary.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())  # else a power cut may leave the new name with none of its bytes


def read(path: Path, identity: dict[str, str]) -> Checkpoint | None:
    """The checkpoint of `path`, or None where there is none; Unusable for a damaged or another training's."""
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise Unusable(f"can't be read ({error.strerror or error})") from None
    try:
        tensors, metadata = load(content), _metadata(content)
        theirs, facts = json.loads(metadata["identity"]), json.loads(metadata["facts"])
        whole = metadata["sha256"] == _sum(tensors, metadata)
    except (SafetensorError, KeyError, TypeError, ValueError) as error:
        raise Unusable(f"is damaged ({type(error).__name__})") from None
    if not whole:
        raise Unusable("is damaged (its content doesn't match its sum)")
    if theirs != identity:
        other = [name for name in identity if theirs.get(name) != identity[name]]
        raise Unusable(f"is of another training (another {', '.join(other) or 'version'})")
    return Checkpoint(tensors=tensors, facts=facts)


def _metadata(content: bytes) -> dict[str, str]:
    """The metadata of safetensors: 8 bytes with the header's length, then the header as JSON."""
    length = int.from_bytes(content[:8], "little")
    return json.loads(content[8 : 8 + length])["__metadata__"]


def _sum(tensors: dict[str, Tensor], metadata: dict[str, str]) -> str:
    """The sha256 of all that a checkpoint says; safetensors itself notices a missing byte, and no wrong one."""
    digest = hashlib.sha256(f"{metadata['facts']}\0{metadata['identity']}".encode())
    for name in sorted(tensors):
        digest.update(f"\0{name}\0".encode())
        digest.update(tensors[name].reshape(-1).view(torch.uint8).numpy())
    return digest.hexdigest()
