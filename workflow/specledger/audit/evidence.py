"""What one test says of one sample, and the instruments that make it: against the exact, and of two samples.

Shapes: N texts, L tokens, C cells.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from specledger.audit.exact import SPANS, ExactTree
from specledger.audit.settings import ENDED
from specledger.audit.shown import Shown, against_exact, of_two
from specledger.statistics.families import summed_chisquare
from specledger.statistics.goodness import pooled_chisquare, total_variation
from specledger.statistics.power import POWER, detectable_leak, detectable_tv
from specledger.statistics.two_samples import two_sample_chisquare

SCORE = "score"
LENGTHS = "lengths"
EXACT_MINIMUM = 10.0  # expected count of a pool: 5 is too few for the small levels of a family (docs/audit.md)
PAIRED_MINIMUM = 5.0


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """One test of one sample: a chi-square with df, or the score's z with df 0 and two sides.

    tv: the distance that was measured in the test's cells, and tv_noise what chance alone gives there;
    detectable_tv_draft, detectable_tv_any: seen with power .9 at the level that the family leaves.
    """

    test: str
    n: int
    statistic: float
    df: int
    p_value: float
    tv: float | None = None
    tv_noise: float | None = None
    detectable_tv_draft: float | None = None
    detectable_tv_any: float | None = None


class White:
    """One sample against the exact distribution: chi-squares of the spans and, with a draft, the score test."""

    box = "white"

    def __init__(self, tree: ExactTree):
        self.tree = tree
        self.cells = {span: tree.cells(span) for span in tree.spans()}
        known = [cells for cells in self.cells.values() if cells.score_C is not None]
        self.scored = known[-1] if known else None  # the longest span

    @property
    def names(self) -> list[str]:
        return [*self.cells, *([SCORE] if self.scored else [])]

    def tests(self, samples: Sequence[NDArray[np.int64]]) -> list[Evidence]:
        """The evidence of the one sample [N, L], without what it could have seen."""
        (ids_NL,) = samples
        found = []
        for span in self.cells:
            cells = self._cells(span, len(ids_NL))
            counts = cells.counts(ids_NL) if SPANS[span][0] == 0 else self.tree.counts(ids_NL, span)
            chi2, df, p_value = pooled_chisquare(counts, cells.probs_C, EXACT_MINIMUM)
            tv, noise = _distance(counts, cells.probs_C)
            found.append(
                Evidence(test=span, n=len(ids_NL), statistic=chi2, df=df, p_value=p_value, tv=tv, tv_noise=noise)
            )
        if self.scored:
            found.append(self._score(ids_NL))
        return found

    def _cells(self, span: str, n: int):
        """Whole beginnings by their common prefixes, later tokens by themselves."""
        start, end = SPANS[span]
        return self.tree.common(end, n, EXACT_MINIMUM) if start == 0 else self.cells[span]

    def sees(self, one: Evidence, level: float) -> Evidence:
        """`one` with the smallest distances that its test sees at `level` with power .9."""
        if one.test == SCORE:
            return replace(one, detectable_tv_draft=self._score_sees(one.n, level))
        if not one.df:
            return one
        cells, draft = self._cells(one.test, one.n), None
        if cells.draft_C is not None:
            share = detectable_leak(
                cells.probs_C, cells.draft_C, one.n, level=level, power=POWER, minimum=EXACT_MINIMUM
            )
            draft = None if share is None else share * total_variation(cells.probs_C, cells.draft_C)
        return replace(
            one, detectable_tv_draft=draft, detectable_tv_any=detectable_tv(one.df, one.n, level=level, power=POWER)
        )

    def _moments(self) -> tuple[float, float]:
        """Mean and standard deviation of log(q/p) of a text that the target draws."""
        cells = self.scored
        mean = float((cells.probs_C * cells.score_C).sum())
        return mean, float(np.sqrt((cells.probs_C * (cells.score_C - mean) ** 2).sum()))

    def _score(self, ids_NL: NDArray[np.int64]) -> Evidence:
        """Is log(q/p) on average what the target makes it? Sees texts that lean to the draft, and nothing else."""
        cells, n = self.scored, len(ids_NL)
        mean, sd = self._moments()
        if sd < 1e-9:
            return Evidence(test=SCORE, n=n, statistic=float("nan"), df=0, p_value=float("nan"))
        counts = self.tree.counts(ids_NL, cells.span)
        z = float(((counts * cells.score_C).sum() / n - mean) / sd * np.sqrt(n))
        return Evidence(test=SCORE, n=n, statistic=z, df=0, p_value=float(2 * stats.norm.sf(abs(z))))

    def _score_sees(self, n: int, level: float) -> float | None:
        """The TV of a mixture with the draft that the score test sees with power .9; None where it sees none."""
        cells = self.scored
        mean, sd = self._moments()
        pull = float((cells.draft_C * cells.score_C).sum()) - mean
        share = (stats.norm.isf(level / 2) + stats.norm.ppf(POWER)) * sd / np.sqrt(n) / pull if pull > 0 else 2.0
        return float(share) * total_variation(cells.probs_C, cells.draft_C) if share <= 1 else None

    def shown(self, samples: Sequence[NDArray[np.int64]]) -> list[Shown]:
        return against_exact(samples[0], self.tree)


def _distance(counts_C: NDArray, probs_C: NDArray) -> tuple[float, float]:
    """The TV of the counts from probs, and what noise alone would make it on average."""
    n = counts_C.sum()
    noise = 0.5 * np.sqrt(2 / (np.pi * n)) * np.sqrt(probs_C * (1 - probs_C)).sum()
    return float(0.5 * np.abs(counts_C / n - probs_C).sum()), float(min(noise, 1.0))


class Black:
    """Two samples, plain and speculative, in cells that both together choose."""

    box = "black"
    lead = 0  # columns before the tokens
    names = (*SPANS, LENGTHS)

    def __init__(self, minimum: float = PAIRED_MINIMUM):
        self.minimum = minimum

    def tests(self, samples: Sequence[NDArray[np.int64]]) -> list[Evidence]:
        """The evidence of the two samples [N, L] and [M, L], without what it could have seen."""
        first, second = samples
        found = []
        for span, (start, end) in SPANS.items():
            if end > first.shape[1]:
                continue
            which = span_cells(np.concatenate(samples)[:, start:end], len(first), len(second), self.minimum)
            found.append(self._compared(span, which, len(first)))
        lengths = (np.concatenate(samples) != ENDED).sum(axis=1)
        if np.ptp(lengths):
            found.append(self._compared(LENGTHS, lengths, len(first)))
        return found

    def _compared(self, test: str, which_N: NDArray[np.int64], n: int) -> Evidence:
        m, cells = len(which_N) - n, int(which_N.max()) + 1
        one, two = np.bincount(which_N[:n], minlength=cells), np.bincount(which_N[n:], minlength=cells)
        chi2, df, p_value = two_sample_chisquare(one, two, self.minimum)
        both = (one + two) / (n + m)
        noise = 0.5 * np.sqrt(2 / np.pi * (1 / n + 1 / m)) * np.sqrt(both * (1 - both)).sum()
        tv = float(0.5 * np.abs(one / n - two / m).sum())
        return Evidence(test=test, n=m, statistic=chi2, df=df, p_value=p_value, tv=tv, tv_noise=float(min(noise, 1.0)))

    def sees(self, one: Evidence, level: float) -> Evidence:
        """`one` with the smallest distance that its test sees at `level` with power .9 (both samples of one size)."""
        if not one.df:
            return one
        return replace(one, detectable_tv_any=detectable_tv(one.df, one.n, one.n, level=level, power=POWER))

    def shown(self, samples: Sequence[NDArray[np.int64]]) -> list[Shown]:
        return of_two(*samples)


class Together(Black):
    """Two samples over many prompts at once: the chi-squares of each prompt add up, as do their degrees of freedom.

    The first column of the ids is the number of the prompt. It sees a small bias that is everywhere with few
    texts of each prompt; one large bias at a single prompt it sees less well than a row of that prompt would.
    """

    lead = 1

    def tests(self, samples: Sequence[NDArray[np.int64]]) -> list[Evidence]:
        first, second = samples
        found: dict[str, list[Evidence]] = {}
        for prompt in np.unique(first[:, 0]):
            parts = [sample[sample[:, 0] == prompt, 1:] for sample in samples]
            for one in super().tests(parts):
                found.setdefault(one.test, []).append(one)
        return [self._summed(name, ones, len(second)) for name, ones in found.items()]

    def _summed(self, name: str, ones: list[Evidence], n: int) -> Evidence:
        chi2, df, p_value = summed_chisquare([one.statistic for one in ones], [one.df for one in ones])
        shares = np.array([one.n for one in ones]) / n
        tv, noise = (float(shares @ [getattr(one, field) for one in ones]) for field in ("tv", "tv_noise"))
        return Evidence(test=name, n=n, statistic=chi2, df=df, p_value=p_value, tv=tv, tv_noise=noise)

    def shown(self, samples: Sequence[NDArray[np.int64]]) -> list[Shown]:
        return [one for one in of_two(*samples, most=40) if one.prefix][:12]  # the prompt itself is no finding


def span_cells(tokens_NT: NDArray[np.int64], n: int, m: int, minimum: float) -> NDArray[np.int64]:
    """[N] the cell of each text of both samples: its longest prefix that is common enough to be tested.

    A prefix is a cell where the smaller sample is expected to hold `minimum` texts of it; the texts of a
    common prefix whose own continuation is rare are a cell together. Chosen without regard to the sample
    that a text came from, so that the choice favours neither.
    """
    enough = minimum * (n + m) / min(n, m)
    cell = np.zeros(len(tokens_NT), dtype=np.int64)
    open_N = np.ones(len(tokens_NT), dtype=bool)
    for place in range(tokens_NT.shape[1]):
        pair = np.stack([cell[open_N], tokens_NT[open_N, place]], axis=1)
        _, which, counts = np.unique(pair, axis=0, return_inverse=True, return_counts=True)
        which = which.ravel()
        deeper = np.zeros(len(tokens_NT), dtype=bool)
        deeper[open_N] = counts[which] >= enough
        cell[deeper] = cell.max() + 1 + which[counts[which] >= enough]
        open_N = deeper
    return np.unique(cell, return_inverse=True)[1].ravel()
