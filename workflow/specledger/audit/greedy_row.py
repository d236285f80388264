"""A greedy row of the workflow's audit: the system's texts of many prompts against our target's own.

Shapes: N prompts, T tokens of each, L tokens of a text, V vocabulary.
"""

from dataclasses import replace

import numpy as np

from specledger.audit.exact import NextLogits
from specledger.audit.greedy import GreedyText, compare
from specledger.audit.measure import Measured
from specledger.audit.settings import SamplingSettings, System, joined
from specledger.corpus.text import Corpus

PROMPTS, BEFORE, AFTER = 60, 16, 24  # prompts, from all over the validation text; tokens of each, and of its text
MARGIN = 1e-3  # nats: logits nearer than this may change places by float32's rounding


def greedy_row(system: System, logits: NextLogits, corpus: Corpus, settings: SamplingSettings, row: dict) -> Measured:
    """The row, whose margins come from our target's `logits`."""
    settings = replace(settings, tokens=AFTER)
    starts = np.linspace(0, len(corpus.validation) - BEFORE, PROMPTS).astype(int)
    prompts_NT = np.stack([corpus.validation[start : start + BEFORE] for start in starts])
    plain_NL = prompts_NT
    for _ in range(AFTER):
        plain_NL = np.concatenate([plain_NL, logits(plain_NL).argmax(axis=-1)[:, None]], axis=1)
    batch = joined([system.sample(prompt, 1, settings) for prompt in prompts_NT.tolist()])
    symbols = corpus.vocabulary.symbols

    def texts(ids_NL: np.ndarray) -> list[GreedyText]:
        return [GreedyText(text="".join(symbols[token] for token in ids)) for ids in ids_NL.tolist()]

    def margin_of(number: int, place: int) -> float:
        """How much likelier our target's token is than the one that the system chose, where both texts part."""
        (row_V,) = logits(plain_NL[number : number + 1, : BEFORE + place])
        return float(row_V.max() - row_V[batch.ids[number, place]])

    return Measured(
        system=system.name,
        version=system.version,
        mode=row["mode"],
        prompt=f"{PROMPTS} of the text",
        settings=settings,
        n=PROMPTS,
        control=row["control"],
        greedy=compare(texts(plain_NL[:, BEFORE:]), texts(batch.ids), margin=MARGIN, margin_of=margin_of),
        tokens_per_forward=batch.tokens_per_forward(),
        acceptance=batch.acceptance(),
        seconds_per_text=batch.seconds / PROMPTS,
        cpu_seconds_per_text=None if batch.cpu_seconds is None else batch.cpu_seconds / PROMPTS,
    )
