"""The interval of paired ratios covers as often as it says, whichever of seeds and blocks varies more."""

import numpy as np
import pytest
from calibration import within
from specledger.statistics.paired import paired_log_interval

TRIALS = 1_000
TRUTH = np.log(1.7)


def studies(seeds: int, blocks: int, between: float, within_sd: float):
    rng = np.random.default_rng(20)
    for _ in range(TRIALS):
        yield [TRUTH + rng.normal(0, between) + rng.normal(0, within_sd, blocks) for _ in range(seeds)]


@pytest.mark.parametrize(
    ("seeds", "blocks", "between"), [(8, 10, 0.0), (8, 10, 0.05), (8, 10, 0.3), (3, 10, 0.3), (1, 15, 0.0)]
)
def test_covers_as_often_as_it_says(seeds, blocks, between):
    """Four standard errors: a right interval fails about once in 16,000 seeds of the test."""
    found = [paired_log_interval(logs, resamples=300) for logs in studies(seeds, blocks, between, 0.1)]
    covered = np.mean([one.lo <= 1.7 <= one.hi for one in found])
    assert within(covered, 0.95, TRIALS), covered


def test_a_level_of_half_is_hit_half_as_often():
    found = [paired_log_interval(logs, level=0.5, resamples=300) for logs in studies(8, 10, 0.1, 0.1)]
    assert within(np.mean([one.lo <= 1.7 <= one.hi for one in found]), 0.5, TRIALS)


def test_blocks_taken_for_independent_would_cover_too_rarely():
    """What the nesting is for: pooled blocks of seeds that differ give an interval far too narrow."""
    pooled = [
        paired_log_interval([np.concatenate(logs)], resamples=200)
        for _, logs in zip(range(300), studies(5, 20, 0.2, 0.05), strict=False)
    ]
    assert np.mean([one.lo <= 1.7 <= one.hi for one in pooled]) < 0.7


def test_median_method_and_repeatability():
    logs = [np.log([1.0, 2.0, 50.0]), np.log([2.0, 4.0, 2.0])]
    found = paired_log_interval(logs)
    assert found == paired_log_interval(logs) and found.mean == pytest.approx(2.0)
    assert found.method == "bootstrap over 2 seeds with their 3 blocks, median of paired log ratios" and found.n == 2
    uneven = paired_log_interval([np.log([1.0, 2.0]), np.log([2.0, 4.0, 2.0])])
    assert "with their 2 to 3 blocks" in uneven.method and uneven.lo < 2 < uneven.hi
    one = paired_log_interval([np.log([1.0, 2.0, 4.0])])
    assert one.method.startswith("bootstrap over the 3 blocks of one seed") and one.n == 1 and one.lo < 2 < one.hi
    assert paired_log_interval([np.log([3.0])]).lo is None


def test_nothing_and_nan_are_refused():
    with pytest.raises(ValueError, match="must not be empty"):
        paired_log_interval([[]])
    with pytest.raises(ValueError, match="must be finite"):
        paired_log_interval([[0.0, np.nan]])
