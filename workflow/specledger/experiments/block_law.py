"""The exact law of a block: the acceptance rule integrated over its uniforms, with no draw and so no odds.

A rule should be a step function of each uniform. Its steps are found to the last bits by trying the rule on
both sides of where they should be, and by bisection where they are not; the rule is then tried between its
steps, at uniforms spread over [0, 1), and refused where it isn't the function that was found. From the steps
follow the probabilities of all that it can do, and from those the joint law of a block's tokens. Proposals form
a tree, of which a chain is the case with one branch.
Shapes: S drafts (all that a tree can hold), N nodes, K siblings, V vocabulary.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial

import numpy as np

from specledger.experiments.reference import joint
from specledger.sampling.siblings import Siblings, draw_siblings, scaled
from specledger.sampling.verify import Verdict, residual, verify
from specledger.theory.trees import ROOT, Tree

Rule = Callable[..., Verdict]
LARGEST_UNIFORM = np.nextafter(1.0, 0.0)
HALF_BRACKET = 1e-14
CHUNK = 250_000  # numbers of one batch of rows: what stays in a cache of the processor
PROBES = 64  # uniforms, spread evenly and moved at random, at which each row of a rule is tried
NEAR = 1e-12
NUDGES = (-1, 1, -2, 2, -4, 4)  # roundings


class NotASteppedRule(ValueError):
    """A rule that its steps don't describe, so that its law is not known."""


def steps(holds: Callable[[np.ndarray, np.ndarray], np.ndarray], guess_N: np.ndarray) -> np.ndarray:
    """Where `holds(rows, uniforms)`, true below a step and false from it on, changes [N].

    `guess_N` is where it should; a step beyond [0, 1) reads as 0 or 1. The error is at most 1e-14.
    """
    every, guess_N = np.arange(len(guess_N)), np.clip(guess_N, 0.0, 1.0)
    below, above = guess_N - HALF_BRACKET, guess_N + HALF_BRACKET
    lo = np.where((below <= 0) | holds(every, np.clip(below, 0, LARGEST_UNIFORM)), np.maximum(below, 0), 0.0)
    hi = np.where((above >= 1) | ~holds(every, np.clip(above, 0, LARGEST_UNIFORM)), np.minimum(above, 1), 1.0)
    while (rows := np.flatnonzero(hi - lo > 2.5 * HALF_BRACKET)).size:
        mid = (lo[rows] + hi[rows]) / 2
        yes = holds(rows, np.minimum(mid, LARGEST_UNIFORM))
        lo[rows], hi[rows] = np.where(yes, mid, lo[rows]), np.where(yes, hi[rows], mid)
    return (lo + hi) / 2


def rows_after(rows: list[np.ndarray], draft_SN: np.ndarray, tree: Tree, nodes: Sequence[int]) -> np.ndarray:
    """[S, len(nodes), V]: of each draft the distributions after each node; after the text for the root."""
    shape = (len(draft_SN), len(rows[0]))
    paths = [tree.path(node) for node in nodes]
    return np.stack([np.broadcast_to(rows[len(path)][tuple(draft_SN[:, path].T)], shape) for path in paths], axis=1)


def drafts_of(q: list[np.ndarray], tree: Tree) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Every draft of a tree: tokens [S, N], the q that each is declared to come from [S, N, V], its probability [S].

    All three are those of the function that draws. ValueError where q has fewer symbols than a node has children.
    """
    V = len(q[0]) if q else 0
    draft_SN, u_SN, q_SNV, weight_S = (
        np.empty((1, 0), dtype=np.int64),
        np.empty((1, 0)),
        np.empty((1, 0, V)),
        np.ones(1),
    )
    for node, parent in enumerate(tree.parents):
        probs_SV, rank = rows_after(q, draft_SN, tree, [parent])[:, 0], tree.ranks[node]
        before_SK = u_SN[:, list(tree.children[parent][:rank])]

        def drawn(rows, u, probs_SV=probs_SV, before_SK=before_SK) -> Siblings:
            return draw_siblings(probs_SV[rows], np.concatenate([before_SK[rows], u[:, None]], axis=1))

        declared = drawn(np.arange(len(u_SN)), np.zeros(len(u_SN)))
        if not declared.there[:, rank].all():
            raise ValueError(f"node {node} of {tree.parents} has more siblings than q has symbols")
        q_SV = declared.rows[:, rank]
        share_SV, middle_SV = _drawn_shares(lambda rows, u, rank=rank: drawn(rows, u).tokens[:, rank], q_SV)
        s, v = np.nonzero(share_SV)
        draft_SN = np.concatenate([draft_SN[s], v[:, None]], axis=1)
        u_SN = np.concatenate([u_SN[s], middle_SV[s, v][:, None]], axis=1)
        q_SNV = np.concatenate([q_SNV[s], q_SV[s][:, None]], axis=1)
        weight_S = weight_S[s] * share_SV[s, v]
    return draft_SN, q_SNV, weight_S


def _drawn_shares(draws: Callable[[np.ndarray, np.ndarray], np.ndarray], q_SV: np.ndarray) -> tuple[np.ndarray, ...]:
    """The share of uniforms at which `draws(rows, uniforms)` yields each symbol [S, V], and one of these uniforms.

    Where its steps are found to be those of q, the share is q itself, whose smallest numbers keep their digits. What no
    uniform yields has the share 0, and the rule isn't shown it.
    """
    V = q_SV.shape[1]
    cuts_SV = np.cumsum(q_SV, axis=1)
    cuts_SV /= cuts_SV[:, -1:]
    found_SV = steps(lambda rows, u: draws(rows // V, u) <= rows % V, cuts_SV.ravel()).reshape(q_SV.shape)
    parted_S1 = (np.abs(found_SV - cuts_SV) > HALF_BRACKET).any(axis=1, keepdims=True)
    cuts_SV = np.where(parted_S1, found_SV, cuts_SV)
    share_SV = np.where(parted_S1, np.diff(found_SV, axis=1, prepend=0.0), q_SV)
    uniform_SV = np.clip(cuts_SV - share_SV / 2, 0.0, LARGEST_UNIFORM)
    s, v = np.nonzero(share_SV)
    for nudge in (0, *NUDGES):  # what is as narrow as a rounding of the sums may lie beside its middle
        tried = np.clip(uniform_SV[s, v] + nudge * np.finfo(float).epsneg, 0.0, LARGEST_UNIFORM)
        yields = draws(s, tried) == v
        uniform_SV[s[yields], v[yields]] = tried[yields]
        s, v = s[~yields], v[~yields]
        if not s.size:
            break
    share_SV[s, v] = 0.0
    return share_SV, uniform_SV


def _left(p_SV: np.ndarray, q_SKV: np.ndarray) -> np.ndarray:
    """What is left of p [S, V] after the rejection of siblings drawn from q [S, K, V]; of none, p itself."""
    for q_SV in np.moveaxis(q_SKV, 1, 0):
        p_SV = scaled(residual(p_SV, q_SV))[0]
    return p_SV


def _led_to(tree: Tree, node: int) -> np.ndarray:
    """Uniforms [N] that lead a round to `node`: its ancestors are accepted, the siblings before them rejected."""
    uniforms_N = np.zeros(len(tree.parents))
    for on_path in tree.path(node):
        for sibling in tree.children[tree.parents[on_path]][: tree.ranks[on_path]]:
            uniforms_N[sibling] = LARGEST_UNIFORM
    return uniforms_N


def acceptance_law(
    rule: Rule, p_SNV: np.ndarray, q_SNV: np.ndarray, draft_SN: np.ndarray, tree: Tree | None = None
) -> np.ndarray:
    """[S, N]: up to which uniform each node is accepted, given that the round came to it. None is a chain."""
    S, N = draft_SN.shape
    tree = tree or Tree.chain(N)
    found = np.empty((S, N))
    for node, parent in enumerate(tree.parents):
        below = np.array([node in tree.path(last) for last in range(-1, N)])
        led_N = _led_to(tree, node)

        def accepts(rows, u, node=node, below=below, led_N=led_N):
            uniforms = np.tile(led_N, (len(rows), 1))
            uniforms[:, node] = u
            return below[rule(p_SNV[rows], q_SNV[rows], draft_SN[rows], uniforms, np.zeros(len(rows))).last_N + 1]

        before = list(tree.children[parent][: tree.ranks[node]])
        guess_S = _guess_acceptance(_left(p_SNV[:, parent + 1], q_SNV[:, before]), q_SNV[:, node], draft_SN[:, node])
        found[:, node] = steps(accepts, guess_S)
        for rows, u in probes(S, p_SNV[0].size):
            step = found[rows, node]
            wrong = (accepts(rows, u) != (u < step)) & (np.abs(u - step) > NEAR)
            if wrong.any():
                raise NotASteppedRule(f"acceptance is no step function of its uniform at {u[wrong][0]:.6f}")
    return found


def _guess_acceptance(p_SV: np.ndarray, q_SV: np.ndarray, token_S: np.ndarray) -> np.ndarray:
    at = (np.arange(len(token_S)), token_S)
    return np.minimum(1.0, p_SV[at] / q_SV[at])


def probes(count: int, size: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Each of `count` rows with `PROBES` uniforms, one in each part of [0, 1), at random places of their own.

    Batches of row numbers and uniforms; of rows of `size` numbers at most `CHUNK` together.
    """
    uniforms_PS = (np.arange(PROBES)[:, None] + np.random.default_rng(0).random((PROBES, count))) / PROBES
    for start in range(0, PROBES, together := max(1, CHUNK // (count * size))):
        some_PS = uniforms_PS[start : start + together]
        yield np.tile(np.arange(count), len(some_PS)), some_PS.ravel()


def _cumulative(rule: Rule, inputs: list[np.ndarray], guess_SV: np.ndarray) -> np.ndarray:
    """Cumulative law [S, V] of the token that each sequence yields, over its extra uniform."""
    S, V = guess_SV.shape
    found_SV = np.empty((S, V))
    count = max(1, CHUNK // (V * inputs[0][0].size))
    for start in range(0, S, count):
        part = slice(start, start + count)
        some = [array[part] for array in inputs]

        def at_most(rows, u, some=some):
            """Is the token of sequence rows // V at most symbol rows % V?"""
            return rule(*(array[rows // V] for array in some), u).token_N <= rows % V

        found_SV[part] = steps(at_most, guess_SV[part].ravel()).reshape(-1, V)
    return found_SV


def token_law(
    rule: Rule, p_SNV: np.ndarray, q_SNV: np.ndarray, draft_SN: np.ndarray, last: int, tree: Tree | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Which rounds can end after node `last` [S], and the cumulative law of the token that follows [S, V].

    Drafts with the same path and the same children (but for the last child, which is rejected whatever it is) should
    share that law: one of them is integrated and all are tried at `PROBES` uniforms; all are integrated where one of
    them differs.
    """
    S, N = draft_SN.shape
    tree = tree or Tree.chain(N)
    children = list(tree.children[last])
    uniforms_N = _led_to(tree, last)
    uniforms_N[children] = LARGEST_UNIFORM
    inputs = [p_SNV, q_SNV, draft_SN, np.tile(uniforms_N, (S, 1))]
    ends = rule(*inputs, np.zeros(S)).last_N == last
    cumulative_SV = np.zeros(p_SNV[:, 0].shape)
    possible = np.flatnonzero(ends)
    if possible.size == 0:
        return ends, cumulative_SV
    told = [*tree.path(last), *children[:-1]]
    _, first, group = np.unique(draft_SN[possible][:, told], axis=0, return_index=True, return_inverse=True)
    guess_SV = np.cumsum(_left(p_SNV[:, last + 1], q_SNV[:, children]), axis=-1)
    shared, some = possible[first], [array[possible] for array in inputs]
    found = _cumulative(rule, [array[shared] for array in inputs], guess_SV[shared])[group.reshape(-1)]
    if not _describes(found, rule, some):
        found = _cumulative(rule, some, guess_SV[possible])
        if not _describes(found, rule, some):
            raise NotASteppedRule("the token that follows is no step function of its uniform")
    cumulative_SV[possible] = found
    return ends, cumulative_SV


def _describes(cumulative_SV: np.ndarray, rule: Rule, inputs: list[np.ndarray]) -> bool:
    """Does the rule yield the tokens that these steps say, at every probe?"""
    for rows, u in probes(len(cumulative_SV), inputs[0][0].size):
        laws_V = cumulative_SV[rows]
        expected = (laws_V <= u[:, None]).sum(axis=1)
        near = (np.abs(laws_V - u[:, None]) <= NEAR).any(axis=1)
        if ((rule(*(array[rows] for array in inputs), u).token_N != expected) & ~near).any():
            return False
    return True


def try_together(
    rule: Rule,
    p_SNV: np.ndarray,
    q_SNV: np.ndarray,
    draft_SN: np.ndarray,
    accept_SN: np.ndarray,
    laws_NSV: np.ndarray,
    tree: Tree,
) -> None:
    """NotASteppedRule where, with all uniforms drawn at once, the rule isn't what the steps of each alone say."""
    N, generator = draft_SN.shape[1], np.random.default_rng(1)
    for rows, extra in probes(len(draft_SN), p_SNV[0].size):
        u_RN, accept_RN = generator.random((len(rows), N)), accept_SN[rows]
        u_RN = np.where(generator.random(u_RN.shape) < 0.5, u_RN * accept_RN, u_RN)  # so that long accepts occur too
        last_R = np.full(len(rows), ROOT)
        for node, parent in enumerate(tree.parents):
            last_R[(last_R == parent) & (u_RN[:, node] < accept_RN[:, node])] = node
        law_RV = laws_NSV[last_R + 1, rows]
        near_R = (np.abs(u_RN - accept_RN) <= NEAR).any(axis=1)
        near_R |= (np.abs(law_RV - extra[:, None]) <= NEAR).any(axis=1)
        verdict = rule(p_SNV[rows], q_SNV[rows], draft_SN[rows], u_RN, extra)
        same_R = (verdict.last_N == last_R) & (verdict.token_N == (law_RV <= extra[:, None]).sum(axis=1))
        if not (same_R | near_R).all():
            raise NotASteppedRule("a decision hangs on another uniform than its own")


def block_law(rule: Rule, p: list[np.ndarray], q: list[np.ndarray], tree: Tree) -> np.ndarray:
    """The law [V] * (depth + 1) of the first depth + 1 tokens: a round of `rule`, then the target alone.

    Args:
        rule: `verify` with this tree, or what takes its place.
        p, q: trees of distributions of target and draft; entry d is [V] * d + [V], depths 0..tree.depth and
            0..tree.depth - 1.
    """
    V, depth = len(p[0]), tree.depth
    draft_SN, q_SNV, weight_S = drafts_of(q, tree)
    nodes = range(ROOT, len(tree.parents))
    p_SNV = rows_after(p, draft_SN, tree, nodes)
    accept_SN = acceptance_law(rule, p_SNV, q_SNV, draft_SN, tree)
    law, laws_NSV = np.zeros((V,) * (depth + 1)), np.empty((len(tree.parents) + 1, *p_SNV[:, 0].shape))
    for last in nodes:
        path = tree.path(last)
        before = [sibling for node in path for sibling in tree.children[tree.parents[node]][: tree.ranks[node]]]
        rejected = [*before, *tree.children[last]]
        reach_S = weight_S * accept_SN[:, path].prod(axis=1) * (1 - accept_SN[:, rejected]).prod(axis=1)
        possible, cumulative_SV = token_law(rule, p_SNV, q_SNV, draft_SN, last, tree)
        laws_NSV[last + 1] = cumulative_SV
        mass_SV = np.where(possible[:, None], reach_S[:, None] * np.diff(cumulative_SV, axis=1, prepend=0.0), 0.0)
        prefix_S = draft_SN[:, path] @ V ** np.arange(len(path) - 1, -1, -1)
        block = np.zeros((V ** len(path), V))
        np.add.at(block, prefix_S, mass_SV)
        block = block.reshape((V,) * (len(path) + 1))
        for d in range(len(path) + 1, depth + 1):
            block = block[..., None] * p[d]
        law += block
    try_together(rule, p_SNV, q_SNV, draft_SN, accept_SN, laws_NSV, tree)
    return law


def deviation(p: list[np.ndarray], q: list[np.ndarray], tree: Tree, rule: Rule | None = None) -> float:
    """Largest difference of a cell between the law of a block and the target's own; None is `verify` itself."""
    rule = rule or partial(verify, tree=None if tree.is_chain else tree)
    return float(np.abs(block_law(rule, p, q, tree) - joint(p, tree.depth + 1)).max())
