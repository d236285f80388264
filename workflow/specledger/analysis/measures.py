"""What a claim may be judged on: named quantities, each computed from the evidence of all seeds."""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import pandas as pd
from scipy import stats

from specledger.analysis import costs
from specledger.analysis.summary import validation_losses
from specledger.analysis.timing import ratio_interval
from specledger.statistics import intervals
from specledger.statistics.intervals import Interval
from specledger.theory.speculation import expected_tokens_per_round, walltime_speedup


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """Observations by seed: methods, single texts, single forwards, trainings, checks."""

    by_seed: pd.DataFrame
    texts: pd.DataFrame
    forwards: pd.DataFrame
    training: pd.DataFrame
    acceptance: pd.DataFrame
    prefix: pd.DataFrame
    greedy: pd.DataFrame
    contexts: pd.DataFrame
    plain_texts: pd.DataFrame
    oracle: pd.DataFrame
    sequences: pd.DataFrame


@dataclass(frozen=True, kw_only=True)
class Measured:
    """A number, its interval if it has one, and in words what the interval is; exact needs none.

    `sample` says how much it rests on, where a rule may need so much: draws a position, tokens a text.
    """

    value: float
    lo: float | None = None
    hi: float | None = None
    interval: str
    exact: bool = False
    sample: Mapping[str, int] = field(default_factory=dict)


Measure = Callable[..., Measured | None]
MEASURES: dict[str, Measure] = {}
SAMPLED = {  # what each quantity tells of its sample, so that a rule may need some of it
    "tv_bound": {"draws"},
    "output_distance": {"draws"},
    "plausible_share": {"published_draws"},
    "one_text": {"tokens"},
    "text_spread": {"tokens"},
    "method": {"tokens"},
}
MEAN, PREDICTION, EQUIVALENCE = "mean", "prediction", "equivalence"


def measure(function: Measure) -> Measure:
    """Register a quantity under its function's name; its keyword-only arguments are its parameters."""
    MEASURES[function.__name__] = function
    return function


def parameters_of(name: str) -> tuple[set[str], set[str]]:
    """The parameters that a quantity takes, and those that it requires."""
    found = [p for p in inspect.signature(MEASURES[name]).parameters.values() if p.kind is p.KEYWORD_ONLY]
    return {p.name for p in found}, {p.name for p in found if p.default is p.empty}


def exact(value: float, words: str) -> Measured:
    """A number that no sampling of ours blurs; `words` say what kind."""
    return Measured(value=float(value), interval=words, exact=True)


def measured(interval: Interval, note: str = "") -> Measured:
    """An interval in a claim's terms: its method, its level and its n in words."""
    words = f"{interval.method}{note}, {interval.level:.0%}, n = {interval.n}"
    if interval.lo is None:
        words = f"none, n = {interval.n}"
    return Measured(value=interval.mean, lo=interval.lo, hi=interval.hi, interval=words)


def resting_on(found: Measured | None, **sizes: pd.Series) -> Measured | None:
    """The same number with the least size of its sample, by name."""
    if found is None:
        return None
    return replace(found, sample={name: int(values.min()) for name, values in sizes.items() if len(values)})


def over_seeds(values: pd.Series, kind: str, method: str = "t over seeds") -> Measured | None:
    """One value a seed: their mean's interval, where one further seed is expected, or the interval of TOST at 5%."""
    values = values.dropna()
    if values.empty:
        return None
    if kind == PREDICTION:
        groups = [[value] for value in values]
        return measured(intervals.prediction_interval(groups, method="t prediction for one seed"))
    if kind == EQUIVALENCE:  # two one-sided tests at 5% reject where the 90% interval lies inside the margin
        return measured(intervals.t_interval(values, level=0.9, method=method), ", as two one-sided tests at 5% use it")
    return measured(intervals.t_interval(values, method=method))


def _rows(evidence: Evidence, engine: str, drafter: str, gamma: int | None = None) -> pd.DataFrame:
    rows = evidence.by_seed.query("engine == @engine and drafter == @drafter")
    return rows if gamma is None else rows[rows["gamma"] == gamma]


def _by_seed(evidence: Evidence, column: str, engine: str, drafter: str, gamma: int) -> pd.Series:
    return _rows(evidence, engine, drafter, gamma).set_index("seed")[column].sort_index()


def of_pairs(texts: pd.DataFrame, column: str = "log_speedup", note: str = "") -> Measured | None:
    """A ratio of paired texts; its interval is over seeds, so that one seed has none."""
    found = ratio_interval(texts, column)
    if found is None:
        return None
    if found.n == 1:
        return Measured(value=found.mean, interval="none, n = 1")
    return measured(found, note)


@measure
def parameters(evidence: Evidence, *, model: str, over_model: str | None = None) -> Measured:
    """Trained parameters of a model without its head, or that over another model's."""
    sizes = evidence.training.groupby("model")["parameters"].first()
    return exact(sizes[model] / (sizes[over_model] if over_model else 1), "exact, counted")


@measure
def loss(
    evidence: Evidence,
    *,
    model: str,
    column: str = "validation_loss",
    minus_model: str | None = None,
    minus_column: str = "validation_loss",
    interval: str = MEAN,
) -> Measured | None:
    """A validation loss in nats a character, or a difference of two, paired by seed."""
    values, method = validation_losses(evidence.training, model, column), "t over seeds"
    if minus_model is not None:
        values, method = values - validation_losses(evidence.training, minus_model, minus_column), "paired t over seeds"
    return over_seeds(values, interval, method)


@measure
def method(
    evidence: Evidence,
    *,
    column: str,
    engine: str,
    drafter: str,
    gamma: int,
    minus_drafter: str | None = None,
    minus_gamma: int | None = None,
    scale: float = 1.0,
) -> Measured | None:
    """A column of the methods by seed (times scale), or its difference to another method's, paired by seed."""
    values, words = _by_seed(evidence, column, engine, drafter, gamma), "t over seeds"
    if minus_drafter is not None or minus_gamma is not None:
        other = (minus_drafter or drafter, gamma if minus_gamma is None else minus_gamma)
        values, words = values - _by_seed(evidence, column, engine, *other), "paired t over seeds"
    texts = evidence.texts.query("engine == @engine and drafter == @drafter and gamma == @gamma")
    return resting_on(over_seeds(values * scale, MEAN, words), tokens=texts["tokens"])


@measure
def one_text(evidence: Evidence, *, column: str, engine: str, drafter: str, gamma: int) -> Measured | None:
    """Where a single text's alpha or tokens_per_round is expected: a published row is one text."""
    rows = evidence.texts.query("engine == @engine and drafter == @drafter and gamma == @gamma").dropna(subset=[column])
    if rows.empty:
        return None
    groups = [group.to_numpy() for _, group in rows.groupby("seed")[column]]
    found = measured(intervals.prediction_interval(groups, method="t prediction for one text"), " over seeds")
    return resting_on(found, tokens=rows["tokens"])


@measure
def alpha_range(evidence: Evidence, *, engine: str, drafter: str) -> Measured | None:
    """Mean acceptance over all gammas; lo and hi are the outermost ends of the rows' own intervals."""
    alphas = [group.dropna() for _, group in _rows(evidence, engine, drafter).groupby("gamma")["alpha"]]
    rows = [intervals.t_interval(values) for values in alphas if len(values)]
    if not rows:
        return None
    mean = float(np.mean([row.mean for row in rows]))
    if rows[0].lo is None:
        return measured(Interval(mean=mean, lo=None, hi=None, n=1, level=intervals.LEVEL, method=""))
    lo, hi = min(row.lo for row in rows), max(row.hi for row in rows)
    return measured(
        Interval(mean=mean, lo=lo, hi=hi, n=rows[0].n, level=rows[0].level, method="t over seeds"),
        f", outermost of {len(rows)} gammas",
    )


@measure
def text_spread(evidence: Evidence, *, column: str, engine: str, drafter: str) -> Measured | None:
    """The range that one text a gamma stays within 19 times out of 20 if all gammas share one mean.

    The studentised range for as many rows as there are gammas, times the sd of single texts of a seed,
    pooled over gammas.
    """
    rows = evidence.texts.query("engine == @engine and drafter == @drafter").dropna(subset=[column])
    variances = rows.groupby(["seed", "gamma"])[column].var(ddof=1).dropna()
    if variances.empty or rows["gamma"].nunique() < 2:
        return None
    factor = stats.studentized_range.ppf(0.95, rows["gamma"].nunique(), np.inf)
    found = over_seeds(factor * np.sqrt(variances.groupby("seed").mean()), MEAN)
    return resting_on(found, tokens=rows["tokens"])


@measure
def eq1_share(evidence: Evidence, *, engine: str, drafter: str, gamma: int) -> Measured | None:
    """Tokens a round over what eq. (1) makes of the same seed's alpha."""
    rows = _rows(evidence, engine, drafter, gamma).dropna(subset=["alpha"])
    if rows.empty:
        return None
    expected = [expected_tokens_per_round(alpha, gamma) for alpha in rows["alpha"]]
    return measured(intervals.exp_t_interval(np.log(rows["tokens_per_round"] / expected)))


@measure
def speedup(evidence: Evidence, *, engine: str, drafter: str, gamma: int) -> Measured | None:
    """Plain seconds over the method's, same engine: the ledger's median of paired texts and its interval."""
    return of_pairs(evidence.texts.query("engine == @engine and drafter == @drafter and gamma == @gamma"))


@measure
def speedup_lead(
    evidence: Evidence, *, engine: str, drafter: str, gamma: int, over_drafters: list[str]
) -> Measured | None:
    """A method's speed-up over that of the fastest other row of `over_drafters`, paired by seed."""
    mine = _by_seed(evidence, "log_speedup", engine, drafter, gamma)
    rivals = evidence.by_seed.query("engine == @engine and drafter in @over_drafters")
    rivals = [group.set_index("seed")["log_speedup"] for _, group in rivals.groupby(["drafter", "gamma"])]
    if mine.empty or not rivals:
        return None
    fastest = max(rivals, key=lambda values: values.mean())
    return measured(intervals.exp_t_interval(mine - fastest), ", against the fastest rival")


@measure
def theory_share(evidence: Evidence, *, engine: str, drafters: list[str]) -> Measured | None:
    """Measured speed-up over Theorem 3.8's at each seed's own alpha and c, for the row where it is largest."""
    rows = evidence.by_seed.query("engine == @engine and drafter in @drafters").dropna(subset=["alpha", "c"])
    if rows.empty:
        return None
    predicted = [walltime_speedup(row.alpha, row.gamma, row.c) for row in rows.itertuples()]
    rows = rows.assign(log_share=rows["log_speedup"] - np.log(predicted))
    groups = [group["log_share"] for _, group in rows.groupby(["drafter", "gamma"])]
    return measured(intervals.exp_t_interval(max(groups, key=lambda g: g.mean())), ", for the row nearest to theory")


@measure
def least_forwards(evidence: Evidence, *, engine: str, drafter: str) -> Measured | None:
    """Target forwards a token of the gamma that needs the fewest."""
    groups = [group for _, group in _rows(evidence, engine, drafter).groupby("gamma")["forwards_per_token"]]
    if not groups:
        return None
    return measured(intervals.t_interval(min(groups, key=lambda g: g.mean())), ", for the best gamma")


@measure
def eq1(evidence: Evidence, *, alpha: float, gamma: int, rounding: float) -> Measured:
    """Eq. (1) at a published alpha; the interval is what the rounding of that alpha leaves open."""
    lo, value, hi = (expected_tokens_per_round(a, gamma) for a in (alpha - rounding, alpha, alpha + rounding))
    return Measured(value=value, lo=lo, hi=hi, interval=f"eq. (1) at alpha = {alpha:g} +- {rounding:g}, no sampling")


@measure
def forward_cost(evidence: Evidence, *, column: str, engine: str, model: str, scale: float = 1.0) -> Measured | None:
    """c or seconds (times scale) of a model's single forward at one position.

    Of a drafter it is one token of its shortest proposal, with the draw of that token.
    """
    part = costs.FORWARD if model == "target" else costs.PROPOSE
    rows = evidence.forwards.query("engine == @engine and model == @model and positions == 1")
    rows = rows[rows["part"] == part]
    if rows.empty:
        return None
    rows = rows[rows["gamma"] == rows["gamma"].min()].set_index("seed")
    values = rows["c"] if column == "c" else rows[column] / max(int(rows["gamma"].iloc[0]), 1)
    return over_seeds(values * scale, MEAN)
