"""How far a simulated rate may lie from the one promised; shared by the tests of the statistics."""

import numpy as np

FLAT = np.full(65, 1 / 65)
PEAKED = np.array([0.6, *np.full(64, 0.4 / 64)])


def slack(nominal: float, trials: int) -> float:
    """Four binomial standard errors: a right implementation fails about once in 16,000 seeds."""
    return 4 * np.sqrt(nominal * (1 - nominal) / trials)


def within(rate: float, nominal: float, trials: int) -> bool:
    return abs(rate - nominal) < slack(nominal, trials)
