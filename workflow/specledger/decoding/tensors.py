"""Where the draws and the rule as functions of tensors stood; they are in `sampling.device` now."""

from specledger.sampling.device import check_total, judge
from specledger.sampling.distributions import distribution, draw
from specledger.sampling.layout import Layout

__all__ = ["Layout", "check_total", "distribution", "draw", "judge"]
