"""The controls of a black-box audit: the plain arm against itself, and against texts that are surely wrong."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from specledger.audit.settings import Batch, SamplingSettings, System

SHARE = 0.5  # of the texts that are spoilt


class Spoilt:
    """A system whose texts have, every other one, their first token twice: an audit that keeps it sees nothing."""

    def __init__(self, system: System):
        self.system, self.name, self.version = system, system.name, system.version

    def sample(self, prompt_ids: Sequence[int], count: int, settings: SamplingSettings) -> Batch:
        batch = self.system.sample(prompt_ids, count, settings)
        ids = np.array(batch.ids)
        if ids.shape[1] > 1:
            ids[::2, 1:] = ids[::2, :-1]
        else:
            ids[::2] = ids[:1]
        return replace(batch, ids=ids)

    def close(self) -> None:
        pass
