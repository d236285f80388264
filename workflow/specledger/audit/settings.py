"""What an audited system is asked for, and what it gives back.

Shapes: N texts, L tokens.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:  # numpy takes a tenth of a second, and `--help` needs none of it
    import numpy as np

ENDED = -1  # stands where a text has ended already


@dataclass(frozen=True, kw_only=True)
class SamplingSettings:
    """How the tokens of a text are drawn; None leaves a warper out, temperature 0 is greedy.

    ValueError where a value lies outside of its range.
    """

    temperature: float = 1.0
    top_k: int | None = None
    top_p: float | None = None
    min_p: float | None = None
    repetition_penalty: float | None = None
    tokens: int = 6
    seed: int = 0

    def __post_init__(self):
        if not 0 <= self.temperature < float("inf"):
            raise ValueError(f"temperature must be at least 0, got {self.temperature}")
        if self.top_k is not None and (self.top_k != int(self.top_k) or self.top_k < 1):
            raise ValueError(f"top_k must be a whole number, at least 1, got {self.top_k}")
        if self.top_p is not None and not 0 < self.top_p <= 1:
            raise ValueError(f"top_p must lie in (0, 1], got {self.top_p}")
        if self.min_p is not None and not 0 <= self.min_p <= 1:
            raise ValueError(f"min_p must lie in [0, 1], got {self.min_p}")
        if self.repetition_penalty is not None and not 0 < self.repetition_penalty < float("inf"):
            raise ValueError(f"repetition_penalty must be above 0, got {self.repetition_penalty}")
        if self.tokens != int(self.tokens) or self.tokens < 1:
            raise ValueError(f"tokens must be a whole number, at least 1, got {self.tokens}")
        if self.seed != int(self.seed) or self.seed < 0:
            raise ValueError(f"seed must be a whole number, at least 0, got {self.seed}")

    def named(self) -> dict:
        """The settings by name, as the columns of audit.csv have them; `tokens` and `seed` with them."""
        return asdict(self)

    def in_words(self) -> str:
        """Such as "temperature 1, top_k 40": what a reader needs to set the same."""
        parts = [f"temperature {self.temperature:g}"]
        for name in ("top_k", "top_p", "min_p", "repetition_penalty"):
            value = getattr(self, name)
            if value is not None:
                parts.append(f"{name} {value:g}")
        return ", ".join(parts)


@dataclass(frozen=True, kw_only=True)
class Batch:
    """`count` texts of one prompt and what the system tells of making them; None is what it does not tell.

    ids: [N, L] int64, `ENDED` after the end of a text that ended early; seconds: wall-clock time of them all;
    accepted, drafted, forwards: draft tokens and forward passes of the target over all texts; texts: as strings.
    """

    ids: "np.ndarray"
    seconds: float
    cpu_seconds: float | None = None
    accepted: int | None = None
    drafted: int | None = None
    forwards: int | None = None
    texts: list[str] | None = None

    def tokens_per_forward(self) -> float | None:
        """Tokens of all texts over forward passes of the target; None where the system does not count them."""
        return int((self.ids != ENDED).sum()) / self.forwards if self.forwards else None

    def acceptance(self) -> float | None:
        """Accepted over drafted tokens, as servers count it (not over examined ones)."""
        return self.accepted / self.drafted if self.drafted and self.accepted is not None else None


def joined(batches: Sequence[Batch]) -> Batch:
    """Several batches of one arm as one; a count that one of them lacks is lacking."""
    import numpy as np

    def total(name: str):
        values = [getattr(batch, name) for batch in batches]
        return None if any(value is None for value in values) else sum(values)

    texts = [batch.texts for batch in batches]
    return Batch(
        ids=np.concatenate([batch.ids for batch in batches]),
        seconds=total("seconds"),
        cpu_seconds=total("cpu_seconds"),
        accepted=total("accepted"),
        drafted=total("drafted"),
        forwards=total("forwards"),
        texts=None if any(one is None for one in texts) else [text for one in texts for text in one],
    )


class System(Protocol):
    """Anything that draws texts: a mode of one program, started already, for as long as it is open."""

    name: str
    version: str

    def sample(self, prompt_ids: Sequence[int], count: int, settings: SamplingSettings) -> Batch:
        """`count` independent texts that go on from the prompt, drawn from `settings.seed`."""

    def close(self) -> None:
        """Stop whatever was started for it."""


def checked_ids(ids, count: int, tokens: int, name: str) -> "np.ndarray":
    """`ids` as int64 [count, tokens]; ValueError that names the system where they are something else."""
    import numpy as np

    array = np.asarray(ids)
    if array.shape != (count, tokens):
        raise ValueError(f"{name}: sample() must give ids of shape ({count}, {tokens}), got {array.shape}")
    if not np.issubdtype(array.dtype, np.integer):
        raise ValueError(f"{name}: sample() must give whole numbers, got {array.dtype}")
    if array.size and array.min() < ENDED:
        raise ValueError(f"{name}: token ids must be at least 0 (or -1 after a text's end), got {array.min()}")
    return array.astype(np.int64)
