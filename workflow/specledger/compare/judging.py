"""Verdicts on pairs of figures, by rules that the configuration fixes before either study is looked at.

A mean *differs* where its two-sample t-test, after Holm over all means of the comparison, has p below
`difference_level`. It *agrees* where it does not differ and the interval of its difference at 1 - 2 *
`equivalence_level` lies inside the margin (two one-sided tests, Schuirmann 1987). All else is *undecided*.

The first test pools the variances: what it tries to refute is that both sides are the same study, whose spread
is one. The second takes each side's own (Welch), since who claims that they agree may not assume it.
"""

import math
from dataclasses import dataclass

from scipy import stats

from specledger.compare.figures import Figure
from specledger.statistics.families import holm

AGREES, DIFFERS, UNDECIDED, APART = "agrees", "differs", "undecided", "not compared"
VERDICTS = (AGREES, DIFFERS, UNDECIDED, APART)
FEWEST = 0.25  # share of the reference's draws with which a departure twice as large as its smallest is seen
LEVEL = 0.95  # of the intervals in the tables


@dataclass(frozen=True, kw_only=True)
class Rules:
    """The block `compare` of the configuration."""

    difference_level: float
    equivalence_level: float
    margins: dict[str, float]


@dataclass(kw_only=True)
class Pair:
    """A figure on both sides with what is made of it; None on the side that does not have it."""

    yours: Figure | None
    reference: Figure | None
    difference: float | None = None
    lo: float | None = None
    hi: float | None = None
    margin: float | None = None
    p_value: float | None = None
    p_holm: float | None = None
    verdict: str = APART
    why: str = ""

    @property
    def figure(self) -> Figure:
        return self.yours or self.reference

    def say(self, verdict: str, why: str) -> None:
        self.verdict, self.why = verdict, why


def _variance(figure: Figure, scale) -> float | None:
    """The squared standard error that a 95% t interval over n seeds was made of."""
    if figure.lo is None or figure.hi is None or figure.n is None or figure.n < 2:
        return None
    half = (scale(figure.hi) - scale(figure.lo)) / 2
    return (half / stats.t.ppf((1 + LEVEL) / 2, figure.n - 1)) ** 2


def measure(pair: Pair, rules: Rules) -> None:
    """Difference, its interval, margin and p-value of two means (of ratios: of logs), from the intervals alone."""
    yours, reference = pair.yours, pair.reference
    ratio = yours.kind == "ratio"
    scale = math.log if ratio else float
    margin = rules.margins[yours.margin]
    if ratio:
        pair.margin = math.log1p(margin)
    else:
        pair.margin = margin * abs(reference.value) if yours.margin == "tokens_per_round" else margin
    pair.difference = scale(yours.value) - scale(reference.value)
    one, two = _variance(yours, scale), _variance(reference, scale)
    if one is None or two is None:
        return
    n, m = yours.n, reference.n
    pooled = ((n - 1) * n * one + (m - 1) * m * two) / (n + m - 2)
    spread = math.sqrt(pooled * (1 / n + 1 / m))
    if spread == 0:
        pair.p_value = 1.0 if pair.difference == 0 else 0.0
        pair.lo = pair.hi = pair.difference
        return
    pair.p_value = float(2 * stats.t.sf(abs(pair.difference) / spread, n + m - 2))
    degrees = (one + two) ** 2 / (one**2 / (n - 1) + two**2 / (m - 1))
    half = stats.t.isf(rules.equivalence_level, degrees) * math.sqrt(one + two)
    pair.lo, pair.hi = pair.difference - half, pair.difference + half


def judge_means(pairs: list[Pair], rules: Rules) -> None:
    """Verdicts on means and ratios, which are one family."""
    for pair in pairs:
        measure(pair, rules)
    known = [pair for pair in pairs if pair.p_value is not None]
    if known:
        for pair, p_holm in zip(known, holm([pair.p_value for pair in known]), strict=True):
            pair.p_holm = float(p_holm)
    for pair in pairs:
        one, two = pair.yours, pair.reference
        if (one.value, one.lo, one.hi, one.n) == (two.value, two.lo, two.hi, two.n):
            pair.say(AGREES, "equal to the last digit")
        elif pair.p_holm is None:
            pair.say(UNDECIDED, "one seed gives no interval")
        elif pair.p_holm < rules.difference_level:
            pair.say(DIFFERS, "the difference is more than seeds explain")
        elif -pair.margin < pair.lo and pair.hi < pair.margin:
            pair.say(AGREES, "the interval of the difference lies inside the margin")
        else:
            pair.say(UNDECIDED, "no difference is shown, and the interval reaches beyond the margin")


def judge_tests(pairs: list[Pair], rules: Rules) -> None:
    """Verdicts on tests that the distribution is kept: Holm on each side, then one side against the other."""
    departs = []
    for side in ("yours", "reference"):
        known = {at: getattr(pair, side).value for at, pair in enumerate(pairs)}
        known = {at: p for at, p in known.items() if p is not None}
        found = holm(list(known.values())) if known else []
        departs.append({at: p < rules.difference_level for at, p in zip(known, found, strict=True)})
    for at, pair in enumerate(pairs):
        ours, theirs = (side.get(at) for side in departs)
        if ours is None or theirs is None:
            pair.say(UNDECIDED, "too few draws for a test on one side")
        elif ours != theirs:
            pair.say(DIFFERS, f"the distribution departs {'in yours' if ours else 'in the reference'} alone")
        elif ours:
            pair.say(AGREES, "the distribution departs on both sides")
        elif pair.yours.n < FEWEST * pair.reference.n:
            pair.say(UNDECIDED, "kept on both sides, yours with under a quarter of the reference's draws")
        else:
            pair.say(AGREES, "kept on both sides")


def judge_one(pair: Pair) -> None:
    """The verdict on what has no chance in it: exact values, counts that must be 0, controls."""
    yours, reference = pair.yours, pair.reference
    match yours.kind:
        case "exact":
            pair.difference = yours.value - reference.value
            same = math.isclose(yours.value, reference.value, rel_tol=1e-9)
            pair.say(
                AGREES if same else DIFFERS, "equal" if same else "it follows from the text alone, and is not equal"
            )
        case "none":
            if (yours.value == 0) == (reference.value == 0):
                pair.say(AGREES, "none on either side" if yours.value == 0 else "some on both sides")
            else:
                pair.say(DIFFERS, f"some {'in yours' if yours.value else 'in the reference'} alone")
        case "control":
            if yours.value is None or reference.value is None:
                where = "yours" if yours.value is None else "the reference"
                pair.say(APART, f"so many draws can't show it in {where}")
            elif yours.value == reference.value:
                pair.say(AGREES, "caught on both sides" if yours.value else "caught on neither side")
            else:
                pair.say(DIFFERS, f"caught {'in yours' if yours.value else 'in the reference'} alone")


def judge(pairs: list[Pair], rules: Rules) -> None:
    """Give every pair that has both sides, and no word yet on why it is not compared, its verdict."""
    asked = [pair for pair in pairs if not pair.why]
    judge_means([pair for pair in asked if pair.figure.kind in ("mean", "ratio")], rules)
    judge_tests([pair for pair in asked if pair.figure.kind == "test"], rules)
    for pair in asked:
        if pair.figure.kind in ("exact", "none", "control"):
            judge_one(pair)
