"""The quantities of the acceptance rule: what must hold exactly, and what draws can tell; registered with the rest."""

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import stats

from specledger.analysis import evidence as tables
from specledger.analysis import summary
from specledger.analysis.measures import (
    MEAN,
    MEASURES,
    Evidence,
    Measured,
    exact,
    measure,
    measured,
    over_seeds,
    resting_on,
)
from specledger.foundation.errors import UserError
from specledger.statistics import intervals
from specledger.statistics.families import summed_chisquare
from specledger.statistics.rates import clopper_pearson, cluster_t

__all__ = ["MEASURES"]
CERTAIN = 1e-12  # a sum of min(p, q) so near to 0 or 1 is one
POSITIONS, CONTEXTS, DECODERS = "positions", "contexts", "decoders"


@measure
def prefix(evidence: Evidence, *, precision: str) -> Measured | None:
    """Largest difference of the shared rows' logits over all seeds, models and engines."""
    rows = evidence.prefix.loc[evidence.prefix["precision"] == precision, "max_abs_difference"]
    return None if rows.empty else exact(rows.max(), f"exact, largest of {len(rows)} comparisons")


@measure
def greedy(evidence: Evidence) -> Measured:
    """Fraction of greedy texts that equal plain greedy decoding character by character."""
    rows = evidence.greedy["identical"]
    return exact(rows.mean(), f"exact, {int(rows.sum())} of {len(rows)} texts")


@measure
def oracle(evidence: Evidence) -> Measured:
    """Largest deviation of a block's enumerated joint law from the target's, over all cells."""
    cells = int((evidence.oracle["blocks"] * evidence.oracle["seeds"]).sum())
    return exact(evidence.oracle["max_abs_deviation"].max(), f"exact, largest over {cells} enumerated blocks")


@measure
def rejected(evidence: Evidence, *, level: float, of: str = POSITIONS) -> Measured | None:
    """How many positions, contexts or tests of complete decoders depart from the target at `level` after Holm.

    None where nothing could be tested: at temperature 0 every symbol is certain.
    """
    families = {
        POSITIONS: (evidence.acceptance, f"{POSITIONS} by drafter, chi-square"),
        CONTEXTS: (evidence.contexts, f"{CONTEXTS} by drafter, chi-square"),
        DECODERS: (evidence.sequences, "tests of complete decoders,"),
    }
    if of not in families:
        raise UserError(f"rejected.of: must be one of {', '.join(families)}, got {of!r}")
    rows, words = families[of]
    count = summary.rejected(rows["p_value"], level)
    size = summary.tested(rows["p_value"])
    return None if count is None else exact(count, f"count over {size} {words} at {level:g} after Holm")


@measure
def contexts_p_value(evidence: Evidence) -> Measured | None:
    """p-value of all contexts and drafters as one: the sum of their chi-squares."""
    rows = evidence.contexts.dropna(subset=["p_value"])
    _, df, p_value = summed_chisquare(rows["chi2"], rows["df"])
    return None if rows.empty else exact(p_value, f"one test, sum of {len(rows)} chi-squares with {df} df")


def binomial_p_values(accepted: pd.Series, draws: pd.Series, rates: pd.Series) -> NDArray[np.float64]:
    """Exact two-sided p-values of counts against their rates: twice the smaller tail, at most 1."""
    p = rates.clip(0, 1)
    tails = np.minimum(stats.binom.cdf(accepted, draws, p), stats.binom.sf(accepted - 1, draws, p))
    return np.minimum(2 * tails, 1.0)


@measure
def acceptance_rejected(evidence: Evidence, *, level: float) -> Measured | None:
    """Positions and contexts whose acceptance departs from the sum of min(p, q): binomial at `level` after Holm."""
    columns = ["accepted", "draws", "beta"]
    rows = pd.concat([evidence.acceptance[columns], evidence.contexts[columns]])
    p_values = pd.Series(binomial_p_values(rows["accepted"], rows["draws"], rows["beta"]), index=rows.index)
    # Acceptance that is certain, or impossible, is no test unless it fails.
    certain = np.minimum(rows["beta"], 1 - rows["beta"]) < CERTAIN
    p_values = p_values[~certain | (p_values < level)]
    count = summary.rejected(p_values, level)
    words = f"count over {len(p_values)} positions and contexts, binomial at {level:g} after Holm"
    return None if count is None else exact(count, words)


@measure
def plausible_share(evidence: Evidence, *, distance: float) -> Measured:
    """Share of contexts at which `distance` from p is an ordinary outcome of as many draws as were published.

    Ordinary: within the central 99% of what such draws give there. A context is one cluster over seeds; where
    all agree clusters have no spread, and the interval is Clopper and Pearson's over the contexts.
    """
    # p is the same for all drafters.
    rows = evidence.contexts.drop_duplicates(["seed", "position"])
    groups = tables.plausible(rows, distance).groupby(rows["position"])
    sums, sizes = groups.sum(), groups.size()
    if sums.sum() in (0, sizes.sum()):
        share = measured(clopper_pearson(int((sums > 0).sum()), len(sizes)), " over contexts")
    else:
        found = cluster_t(sums, sizes)
        share = measured(intervals.Interval(**{**vars(found), "method": "cluster t by context"}))
    return resting_on(share, published_draws=rows["null_draws"])


@measure
def tv_bound(evidence: Evidence) -> Measured | None:
    """The largest upper bound on the total variation from p of the tested cells (rare symbols pooled).

    Over all positions and drafters.
    """
    bounds = evidence.acceptance["tv_bound"].dropna()
    if bounds.empty:
        return None
    words = f"largest of {len(bounds)} upper bounds, 95% each, tested cells (rare symbols pooled)"
    return resting_on(exact(bounds.max(), words), draws=evidence.acceptance["draws"])


@measure
def output_distance(
    evidence: Evidence, *, column: str, over: str | None = None, drafter: str | None = None
) -> Measured | None:
    """Geometric mean over positions of a TV column, or of its ratio to another, with t over seeds."""
    rows = evidence.acceptance
    rows = rows if drafter is None else rows[rows["drafter"] == drafter]
    values = rows[column] / (rows[over] if over else 1.0)
    values = values[values > 0]
    if values.empty:
        return None
    logs = np.log(values).groupby(rows["seed"]).mean()
    found = measured(intervals.exp_t_interval(logs), " of the geometric mean over positions")
    return resting_on(found, draws=rows["draws"])


@measure
def difficulty_lag1(evidence: Evidence, *, drafter: str) -> Measured | None:
    """Correlation of a position's acceptance probability with the next one's, in plainly decoded texts."""
    rows = evidence.plain_texts
    rows = rows[rows["drafter"] == drafter].sort_values(["seed", "text", "position"])
    rows = rows.assign(following=rows.groupby(["seed", "text"])["beta"].shift(-1)).dropna(subset=["following"])
    by_seed = {seed: group["beta"].corr(group["following"]) for seed, group in rows.groupby("seed")}
    return over_seeds(pd.Series(by_seed, dtype=float), MEAN)
