"""The acceptance rule at many real positions, a few thousand draws each: is it right everywhere?

Shapes: C contexts of T tokens each, V vocabulary.
"""

from collections.abc import Callable, Iterator

import numpy as np

from specledger.experiments.acceptance import simulate
from specledger.experiments.bundle import ModelBundle
from specledger.experiments.reference import next_logits
from specledger.sampling.distributions import Sampling, distribution
from specledger.sampling.uniforms import Uniforms, stream
from specledger.sampling.verify import acceptance_probability
from specledger.statistics.goodness import null_distances, pooled_chisquare, total_variation

NULL_SAMPLES = 1_000


def null_band(p_V: np.ndarray, draws: int, generator: np.random.Generator) -> tuple[float, float]:
    """The .5% and 99.5% quantiles of TV when `draws` draws do follow p."""
    lo, hi = np.quantile(null_distances(p_V, draws, generator, NULL_SAMPLES), (0.005, 0.995))
    return float(lo), float(hi)


def context_rows(
    bundle: ModelBundle,
    drafters: list[str],
    contexts_CT: np.ndarray,
    positions: list[int],
    *,
    draws: int,
    null_draws: int,
    sampling: Sampling,
    seed: int,
    after_each: Callable[[], None],
) -> Iterator[dict]:
    """One row per drafter and context; `null_draws` is how many a published reading of TV was taken from."""
    targets: dict[int, tuple] = {}  # what each target says there, and its bands
    for name in drafters:
        target = bundle.target_of(name)
        if id(target) not in targets:
            p_CV = distribution(next_logits(target, contexts_CT), sampling)
            bands = [
                null_band(p_V, null_draws, stream("contexts", seed, place, "null"))
                for place, p_V in zip(positions, p_CV, strict=True)
            ]
            targets[id(target)] = p_CV, bands
        p_CV, bands = targets[id(target)]
        q_CV = distribution(next_logits(bundle.drafters[name], contexts_CT), sampling)
        for p_V, q_V, position, (lo, hi) in zip(p_CV, q_CV, positions, bands, strict=True):
            found = simulate(p_V, q_V, draws=draws, uniforms=Uniforms("contexts", seed, name, position))
            chi2, df, p_value = pooled_chisquare(found.counts_V, p_V)
            yield {
                "seed": seed,
                "drafter": name,
                "position": position,
                "draws": draws,
                "accepted": found.accepted,
                "beta": float(acceptance_probability(p_V, q_V)),
                "tv_output": float(total_variation(found.counts_V / draws, p_V)),
                "tv_draft": float(total_variation(q_V, p_V)),
                "chi2": chi2,
                "df": df,
                "p_value": p_value,
                "null_draws": null_draws,
                "null_tv_lo": lo,
                "null_tv_hi": hi,
            }
        after_each()
