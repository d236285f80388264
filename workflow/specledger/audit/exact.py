"""The exact distribution of a text's first tokens: a pruned prefix tree, the rest as one cell.

Shapes: N texts or prefixes, L tokens, D depth of the tree, V vocabulary, C cells.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from specledger.audit.settings import ENDED, SamplingSettings
from specledger.audit.warpers import cuts, near_a_cut, warped

PRUNE = 2e-6  # prefixes less probable than this are not followed
MOST = 20_000  # forward passes that one tree may take; the most probable prefixes come first
AT_ONCE = 4_096  # rows of one call of the model
CLIP = 8.0  # log(q/p) beyond this says nothing more, and would spoil the normal approximation
SPANS = {"token 1": (0, 1), "tokens 1-2": (0, 2), "tokens 3-4": (2, 4), "tokens 1-4": (0, 4)}

NextLogits = Callable[[NDArray[np.int64]], NDArray[np.floating]]


@dataclass(frozen=True, kw_only=True)
class Cells:
    """Disjoint sets of texts with their exact probabilities; the last two are the rest and the impossible.

    tokens_CT: [C - 2, T] the tokens that a cell stands for; probs_C: [C], the impossible at 0;
    draft_C: the same texts under the draft, score_C: E[sum of log(q/p) | cell]; None where no draft is known.
    """

    span: str
    tokens_CT: NDArray[np.int64]
    probs_C: NDArray[np.float64]
    draft_C: NDArray[np.float64] | None
    score_C: NDArray[np.float64] | None


@dataclass(frozen=True, kw_only=True)
class _Level:
    """The known prefixes of one length d: each a parent (of length d - 1) and a token, sorted by both."""

    parent_N: NDArray[np.int64]
    token_N: NDArray[np.int64]
    probs_N: NDArray[np.float64]
    draft_N: NDArray[np.float64] | None
    score_N: NDArray[np.float64] | None
    possible: NDArray[np.int64] | None  # keys of tokens that a cut leaves possible; None where all are


def _key(parent_N: NDArray, token_N: NDArray) -> NDArray[np.int64]:
    """One number for a parent and a token, which orders by parent and then by token."""
    return parent_N.astype(np.int64) * (1 << 32) + (token_N + 1)


@dataclass(frozen=True, kw_only=True, eq=False)
class ExactTree:
    """What `exact_cells` found: prefixes of 1..D tokens after a prompt, with their probabilities."""

    settings: SamplingSettings
    prompt_ids: tuple[int, ...]
    levels: list[_Level]
    forwards: int
    _grouped: dict = field(default_factory=dict, init=False, repr=False)

    @property
    def depth(self) -> int:
        return len(self.levels)

    def spans(self) -> list[str]:
        """The spans of tokens that the tree is deep enough for."""
        return [span for span, (_, end) in SPANS.items() if end <= self.depth]

    def located(self, ids_NL: NDArray[np.int64], depth: int) -> NDArray[np.int64]:
        """[N] which prefix of `depth` tokens each text has; -1 the rest, -2 what a cut makes impossible."""
        place = np.zeros(len(ids_NL), dtype=np.int64)
        for d, level in enumerate(self.levels[:depth]):
            keys, known = _key(level.parent_N, level.token_N), place >= 0
            asked = _key(np.where(known, place, 0), ids_NL[:, d])
            found = np.minimum(np.searchsorted(keys, asked), max(len(keys) - 1, 0))
            hit = known & (keys[found] == asked) if len(keys) else np.zeros(len(place), dtype=bool)
            missed = known & ~hit
            place = np.where(known, np.where(hit, found, -1), place)
            if level.possible is not None and missed.any():
                place[missed & ~np.isin(asked, level.possible) & ~self._open(d, asked)] = -2
        return place

    def _open(self, d: int, keys_N: NDArray[np.int64]) -> NDArray[np.bool_]:
        """[N]: was the parent of these keys left unfollowed, so that nothing is known to be impossible?"""
        followed = np.unique(self.levels[d].possible >> 32)
        return ~np.isin(keys_N >> 32, followed)

    def prefixes(self, depth: int) -> NDArray[np.int64]:
        """[N, depth] the tokens of the known prefixes."""
        rows = np.zeros((1, 0), dtype=np.int64)
        for level in self.levels[:depth]:
            rows = np.concatenate([rows[level.parent_N], level.token_N[:, None]], axis=1)
        return rows

    def _groups(self, span: str) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """[C, T] the distinct tokens of a span, and [N] which of them each prefix up to its end has."""
        if span not in self._grouped:
            start, end = SPANS[span]
            unique_CT, which_N = np.unique(self.prefixes(end)[:, start:], axis=0, return_inverse=True)
            self._grouped[span] = unique_CT, which_N.ravel()
        return self._grouped[span]

    def cells(self, span: str) -> Cells:
        """The cells of a span of `SPANS`: its tokens, of texts that stay within the tree up to its end."""
        level = self.levels[SPANS[span][1] - 1]
        unique_CT, which_N = self._groups(span)
        probs = np.bincount(which_N, level.probs_N, len(unique_CT))
        draft = score = None
        if level.draft_N is not None:
            draft = np.bincount(which_N, level.draft_N, len(unique_CT))
            draft = np.append(draft, [max(1 - draft.sum(), 0.0), 0.0])
            score = np.bincount(which_N, level.probs_N * level.score_N, len(unique_CT)) / probs
            score = np.append(score, [0.0, 0.0])
        rest = max(1 - probs.sum(), 0.0)
        probs = np.append(probs, [rest if rest > 1e-9 else 0.0, 0.0])
        return Cells(span=span, tokens_CT=unique_CT, probs_C=probs / probs.sum(), draft_C=draft, score_C=score)

    def counts(self, ids_NL: NDArray[np.int64], span: str) -> NDArray[np.int64]:
        """[C] how many of the texts fall into each cell of `cells(span)`."""
        unique_CT, which_N = self._groups(span)
        place = self.located(ids_NL, SPANS[span][1])
        which = np.append(which_N, [len(unique_CT) + 1, len(unique_CT)])  # -2 and -1 count from the end
        return np.bincount(which[place], minlength=len(unique_CT) + 2)

    def common(self, depth: int, texts: int, minimum: float) -> "CommonPrefixes":
        """Cells of the first `depth` tokens for a sample of `texts`: prefixes expected `minimum` times in it."""
        return CommonPrefixes.of(self, depth, minimum / texts)


@dataclass(frozen=True, kw_only=True)
class CommonPrefixes:
    """Cells of texts by their longest common prefix: pooling rare texts by how they begin blurs less than by chance.

    cell_N: for each level the cell of its prefixes, -1 where a prefix is rare; the first cell is the root's,
    the last one the impossible; probs_C, draft_C: as in `Cells`.
    """

    tree: ExactTree
    cells: list[NDArray[np.int64]]
    probs_C: NDArray[np.float64]
    draft_C: NDArray[np.float64] | None

    @classmethod
    def of(cls, tree: ExactTree, depth: int, least: float) -> "CommonPrefixes":
        probs, drafts, cells, above = [1.0], [1.0], [], np.zeros(1, dtype=np.int64)
        for level in tree.levels[:depth]:
            cell = np.full(len(level.probs_N), -1, dtype=np.int64)
            big = np.nonzero((level.probs_N >= least) & (above[level.parent_N] >= 0))[0]
            cell[big] = len(probs) + np.arange(len(big))
            parents = above[level.parent_N[big]]
            probs = np.concatenate([probs, level.probs_N[big]])
            np.subtract.at(probs, parents, level.probs_N[big])
            if level.draft_N is not None:
                drafts = np.concatenate([drafts, level.draft_N[big]])
                np.subtract.at(drafts, parents, level.draft_N[big])
            cells.append(cell)
            above = cell
        probs = np.append(np.where(np.abs(probs) < 1e-9, 0.0, probs), 0.0)
        draft = None
        if tree.levels and tree.levels[0].draft_N is not None:
            draft = np.append(np.maximum(drafts, 0.0), 0.0)
            draft /= draft.sum()
        return cls(tree=tree, cells=cells, probs_C=probs / probs.sum(), draft_C=draft)

    def counts(self, ids_NL: NDArray[np.int64]) -> NDArray[np.int64]:
        """[C] how many of the texts fall into each cell."""
        which = np.zeros(len(ids_NL), dtype=np.int64)
        for d, cell in enumerate(self.cells):
            place = self.tree.located(ids_NL, d + 1)
            found = np.where(place >= 0, cell[np.maximum(place, 0)], -1) if len(cell) else np.full(len(place), -1)
            which = np.where(found >= 0, found, which)
            which[place == -2] = len(self.probs_C) - 1
        return np.bincount(which, minlength=len(self.probs_C))


def exact_cells(
    next_logits: NextLogits,
    prompt_ids: Sequence[int],
    settings: SamplingSettings,
    *,
    draft_logits: NextLogits | None = None,
    depth: int = 4,
    order: str | tuple[str, ...] = "transformers",
    end_ids: Sequence[int] = (),
    prune: float = PRUNE,
    most: int = MOST,
) -> ExactTree:
    """The tree of the first `depth` tokens after a prompt, as `settings` make a right decoder draw them.

    Args:
        next_logits: [N, T] ids, the prompt's included, to the [N, V] logits of the token after them;
        draft_logits: the same of the draft model, under the same warpers; order: of the warpers, a name of
        `warpers.ORDERS` or warpers by name; end_ids: tokens that end a text; prune: probability below which
        a prefix is not followed; most: forward passes (rows) at most, the most probable prefixes first.

    A prefix at which a rounding decides what a cut keeps is not followed: its texts are of the rest.
    """
    depth = min(depth, settings.tokens)
    prompt = np.asarray(prompt_ids, dtype=np.int64)
    prefixes, forwards = np.zeros((1, 0), dtype=np.int64), 0
    probs, drafts, scores = np.ones(1), np.ones(1), np.zeros(1)
    levels: list[_Level] = []
    for _ in range(depth):
        ended = np.isin(prefixes[:, -1], [*end_ids, ENDED]) if prefixes.shape[1] else np.zeros(1, dtype=bool)
        followed = _most_probable(np.where(ended, 0.0, probs), max(most - forwards, 0))
        rows = np.concatenate([np.broadcast_to(prompt, (len(followed), len(prompt))), prefixes[followed]], axis=1)
        p, q, clear = _rows(next_logits, draft_logits, rows, settings, order)
        forwards += len(followed)
        level = _children(followed[clear], p, q, probs, drafts, scores, prune, settings)
        level = _with_ends(level, np.nonzero(ended)[0], probs, drafts, scores)
        levels.append(level)
        prefixes = np.concatenate([prefixes[level.parent_N], level.token_N[:, None]], axis=1)
        probs = level.probs_N
        drafts, scores = (level.draft_N, level.score_N) if q is not None else (probs, np.zeros(len(probs)))
    return ExactTree(settings=settings, prompt_ids=tuple(map(int, prompt)), levels=levels, forwards=forwards)


def _most_probable(probs_N: NDArray, most: int) -> NDArray[np.int64]:
    """The places of the prefixes that are followed, ascending."""
    open_N = np.nonzero(probs_N > 0)[0]
    chosen = open_N[np.argsort(-probs_N[open_N], kind="stable")[:most]]
    return np.sort(chosen)


def _rows(next_logits, draft_logits, rows, settings, order):
    """p and q of the rows that no rounding touches, and which those are."""
    ps, qs, clear = [], [], []
    for start in range(0, len(rows), AT_ONCE):
        part = rows[start : start + AT_ONCE]
        logits = np.asarray(next_logits(part), dtype=np.float64)
        kept = ~near_a_cut(logits, settings, context_NC=part, order=order)
        ps.append(warped(logits[kept], settings, context_NC=part[kept], order=order))
        clear.append(kept)
        if draft_logits is not None and kept.any():
            qs.append(warped(draft_logits(part[kept]), settings, context_NC=part[kept], order=order))
    if not ps:
        return np.zeros((0, 1)), None if draft_logits is None else np.zeros((0, 1)), np.zeros(0, dtype=bool)
    p = np.concatenate(ps)
    q = None if draft_logits is None else (np.concatenate(qs) if qs else np.zeros_like(p))
    return p, q, np.concatenate(clear)


def _children(parents, p, q, probs, drafts, scores, prune, settings) -> _Level:
    joint_NV = probs[parents, None] * p
    rows, tokens = np.nonzero((joint_NV >= prune) & (p > 0))
    parent = parents[rows]
    draft = score = None
    if q is not None:
        with np.errstate(divide="ignore"):
            ratio = np.clip(np.log(q[rows, tokens]) - np.log(p[rows, tokens]), -CLIP, CLIP)
        draft, score = drafts[parent] * q[rows, tokens], scores[parent] + ratio
    possible = None
    if cuts(settings):
        all_rows, all_tokens = np.nonzero(p > 0)
        possible = _key(parents[all_rows], all_tokens)
    return _Level(
        parent_N=parent,
        token_N=tokens,
        probs_N=joint_NV[rows, tokens],
        draft_N=draft,
        score_N=score,
        possible=possible,
    )


def _with_ends(level: _Level, ended_N, probs, drafts, scores) -> _Level:
    """`level` with the one child of each text that has ended: nothing, with certainty."""
    if not len(ended_N):
        return level
    parent = np.concatenate([level.parent_N, ended_N])
    token = np.concatenate([level.token_N, np.full(len(ended_N), ENDED)])
    order = np.argsort(_key(parent, token), kind="stable")

    def merged(mine, theirs):
        return None if mine is None else np.concatenate([mine, theirs[ended_N]])[order]

    possible = level.possible
    if possible is not None:
        possible = np.concatenate([possible, _key(ended_N, np.full(len(ended_N), ENDED))])
    return _Level(
        parent_N=parent[order],
        token_N=token[order],
        probs_N=merged(level.probs_N, probs),
        draft_N=merged(level.draft_N, drafts),
        score_N=merged(level.score_N, scores),
        possible=possible,
    )
