"""Independent streams of random numbers, each told by a key, so that no two purposes share one."""

import hashlib
import json

import numpy as np


def stream(*key: int | str) -> np.random.Generator:
    """The generator of a key: the same key gives the same numbers, any other key others.

    The key is hashed whole: sequences of integers alone would meet where one is the other with zeros behind it.
    """
    digest = hashlib.sha256(json.dumps(key).encode()).digest()
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(int.from_bytes(digest))))


class Uniforms:
    """Three streams of one key: `draft` for proposals, `accept` for verdicts, `extra` for the rest."""

    def __init__(self, *key: int | str):
        self.draft, self.accept, self.extra = (stream(*key, purpose) for purpose in ("draft", "accept", "extra"))
