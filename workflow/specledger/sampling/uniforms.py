"""Independent streams of uniform numbers, so that drafting, accepting and drawing share none."""

import numpy as np

DRAFT, ACCEPT, EXTRA = range(3)


class Uniforms:
    """Three streams from one seed: `draft` for proposals, `accept` for verdicts, `extra` for the rest."""

    def __init__(self, *seed: int):
        self.draft, self.accept, self.extra = (
            np.random.Generator(np.random.PCG64(np.random.SeedSequence((*seed, purpose))))
            for purpose in (DRAFT, ACCEPT, EXTRA)
        )
