"""One row over many prompts: each prompt has its share of the texts, and its number stands before them."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from specledger.audit.settings import Batch, SamplingSettings, System, joined


class AllPrompts:
    """A system that spreads the texts that are asked of it over its prompts; column 0 of the ids is the prompt."""

    def __init__(self, system: System, prompts: Sequence):
        self.system, self.prompts = system, prompts
        self.name, self.version = system.name, system.version

    def sample(self, prompt_ids: Sequence, count: int, settings: SamplingSettings) -> Batch:
        """`count` texts, as equally many of each prompt as can be; `prompt_ids` is not looked at."""
        sizes = np.full(len(self.prompts), count // len(self.prompts))
        sizes[: count % len(self.prompts)] += 1
        parts = []
        for place, size in enumerate(sizes):
            if size:
                seeded = replace(settings, seed=(settings.seed + 10_007 * place) % 2**31)
                batch = self.system.sample(self.prompts[place], int(size), seeded)
                column = np.full((len(batch.ids), 1), place)
                parts.append(replace(batch, ids=np.concatenate([column, batch.ids], axis=1)))
        return joined(parts)

    def close(self) -> None:
        self.system.close()
