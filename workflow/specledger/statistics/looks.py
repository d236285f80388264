"""Sequential looks at growing samples: fixed in advance, each with its share of the error.

p = min over looks of p_k / w_k with weights that sum to 1 is a p-value whatever rule stops between the
looks: P(p <= x) <= sum of w_k x. It costs next to nothing where the last look has most of the weight.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, kw_only=True)
class Looks:
    """When to look, as shares of the whole sample, and how much of the error each look may spend.

    ValueError unless shares rise to 1 and the weights, one a look, are above 0 and sum to 1.
    """

    shares: tuple[float, ...] = (0.125, 0.25, 0.5, 1.0)
    weights: tuple[float, ...] = (0.02, 0.06, 0.12, 0.8)

    def __post_init__(self):
        rising = all(one < two for one, two in zip(self.shares, self.shares[1:], strict=False))
        if not self.shares or not rising or self.shares[0] <= 0 or self.shares[-1] != 1:
            raise ValueError(f"shares must rise from above 0 to 1, got {self.shares}")
        if len(self.weights) != len(self.shares) or min(self.weights) <= 0 or abs(sum(self.weights) - 1) > 1e-9:
            raise ValueError(f"weights must be one a look, above 0, and sum to 1, got {self.weights}")

    def sizes(self, n: int) -> list[int]:
        """The sizes of the sample at the looks; n at the last."""
        return [max(round(share * n), 1) for share in self.shares[:-1]] + [n]

    def spent(self, p_values: Sequence[float]) -> float:
        """The p-value after the looks so far, one p-value each; a nan tested nothing. nan where all are."""
        known = [p / w for p, w in zip(p_values, self.weights, strict=False) if not np.isnan(p)]
        return min(*known, 1.0) if known else float("nan")


ONE_LOOK = Looks(shares=(1.0,), weights=(1.0,))
