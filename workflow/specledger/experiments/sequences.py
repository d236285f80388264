"""Short texts through the complete decoder, held against the target's exact joint law.

The first gamma + 1 tokens or more after a fixed prompt, decoded many times: n-grams by Pearson's test against
the enumerated law, the accepted among the examined proposals against the sum of beta at their prefixes, and
the identities that counters must keep. Shapes: N texts, L tokens of each, V vocabulary.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import islice, product

import numpy as np
import torch
from scipy import stats

from specledger.decoding.counts import Generated
from specledger.decoding.drafter import Drafter
from specledger.decoding.loops import speculative
from specledger.experiments.bundle import ModelBundle
from specledger.experiments.exact_laws import ExactLaws, near_a_cut
from specledger.experiments.reference import TARGET, Reference, alphabet, tree_logits
from specledger.experiments.remembered import Remembered
from specledger.foundation.drafters import base_of, branched
from specledger.models.llama import Llama
from specledger.sampling.distributions import Sampling, distribution
from specledger.sampling.uniforms import Uniforms
from specledger.sampling.verify import acceptance_probability
from specledger.statistics.goodness import pooled_chisquare
from specledger.theory.trees import Tree

DEPTH = 2  # pairs and triples are tested
SHAPE = Tree.of((-1, -1, 0, 0, 1))  # of the trees: siblings at two depths


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One test of one sample: its statistic, degrees of freedom (None where it has none) and p-value."""

    test: str
    statistic: float | None
    df: int | None
    p_value: float


def ngram_test(tokens_NL: np.ndarray, law: np.ndarray) -> Finding:
    """Pearson's test that the first n tokens of each text follow `law` [V] * n, small cells pooled."""
    n = law.ndim
    cells = np.ravel_multi_index(tuple(tokens_NL[:, :n].T), law.shape)
    chi2, df, p_value = pooled_chisquare(np.bincount(cells, minlength=law.size), law.ravel())
    return Finding(test=f"{n}-gram", statistic=chi2, df=df, p_value=p_value)


def acceptance_test(accepted_E: np.ndarray, beta_E: np.ndarray) -> Finding:
    """Two-sided z of the accepted among the examined proposals [E] against the sum of their beta.

    Given its prefix a proposal is accepted with probability beta, whatever came before, so that the
    differences are a martingale's and their sum over its standard deviation tends to N(0, 1).
    """
    spread = float(np.sqrt((beta_E * (1 - beta_E)).sum()))
    excess = float((accepted_E - beta_E).sum())
    if spread < 1e-9:  # beta is 0 or 1 everywhere: any difference settles the matter
        return Finding(test="acceptance", statistic=None, df=None, p_value=1.0 if abs(excess) < 1e-6 else 0.0)
    z = excess / spread
    return Finding(test="acceptance", statistic=z, df=None, p_value=float(2 * stats.norm.sf(abs(z))))


@dataclass(frozen=True, kw_only=True)
class Examined:
    """A proposal that the rule looked at: what it followed, how much of that its round had proposed, and its fate."""

    prefix: tuple[int, ...]
    proposed: int
    accepted: bool


def examined_proposals(prompt: Sequence[int], text: Generated) -> list[Examined]:
    """Every proposal of a text's chains that the rule looked at."""
    found, known = [], list(prompt)
    tokens = iter(text.tokens)
    for done in text.rounds:
        emitted = list(islice(tokens, done.accept_len + 1))
        for place in range(min(done.accept_len + 1, done.drafted, len(emitted))):
            prefix = (*known, *emitted[:place])
            found.append(Examined(prefix=prefix, proposed=place, accepted=place < done.accept_len))
        known += emitted
    return found


def violations(text: Generated, *, count: int, gamma: int, vocabulary: int) -> int:
    """How many of the identities that a text and its counters must keep are broken."""
    accepted = [done.accept_len for done in text.rounds]
    kept = (
        len(text.tokens) == count,
        sum(accepted) + len(text.rounds) == len(text.tokens),
        all(0 <= done.accept_len <= done.drafted <= gamma for done in text.rounds),
        text.examined == sum(min(done.accept_len + 1, done.drafted, done.examined) for done in text.rounds),
        all(0 <= token < vocabulary for token in text.tokens),
    )
    return sum(not holds for holds in kept)


def accounting_test(texts: Sequence[Generated], **limits: int) -> Finding:
    """Identities that no chance can break: p is 1 or 0."""
    broken = sum(violations(text, **limits) for text in texts)
    return Finding(test="accounting", statistic=broken, df=None, p_value=0.0 if broken else 1.0)


def judge_texts(
    texts: Sequence[Generated],
    reference: Reference,
    drafter: str,
    prompt: list[int],
    exact: ExactLaws,
    *,
    count: int,
    gamma: int,
    branched: bool = False,
) -> list[Finding]:
    """Every test of a sample of texts of one decoder; of trees' siblings no acceptance is known from prefixes alone."""
    V, sampling = exact.vocabulary, exact.sampling
    limits = {"count": count, "gamma": gamma, "vocabulary": V}
    whole = [text for text in texts if len(text.tokens) >= count and max(text.tokens) < V]
    tokens_NL = np.array([text.tokens[:count] for text in whole], dtype=np.int64).reshape(-1, count)
    findings = ngram_tests(tokens_NL, exact) if whole else []
    if whole and not any(text.examined for text in whole):
        raise ValueError(f"{drafter} made no proposal in {len(whole)} texts of {count} tokens at gamma {gamma}")
    if not branched:
        examined = [one for text in whole for one in examined_proposals(prompt, text)]
        clear = examined_clearly(examined, reference, drafter, sampling)
        if clear:
            accepted = np.array([one.accepted for one in clear])
            findings.append(acceptance_test(accepted, betas(reference, drafter, clear, sampling)))
    return [*findings, accounting_test(texts, **limits)]


def examined_clearly(examined: list, reference: Reference, drafter: str, sampling: Sampling) -> list[Examined]:
    """The examined proposals at which no cut of target or drafter hangs on a rounding."""
    distinct = list(dict.fromkeys((one.prefix, one.proposed) for one in examined))
    if not distinct:
        return []
    prefixes, proposed = zip(*distinct, strict=True)
    doubtful = near_a_cut(reference.logits(TARGET, prefixes), sampling)
    if runs_a_network(reference.bundle.drafters[drafter]):  # else its rows are the same bits on both sides
        doubtful = doubtful | near_a_cut(reference.logits(drafter, prefixes, proposed), sampling)
    clear = {pair for pair, near in zip(distinct, doubtful, strict=True) if not near}
    return [one for one in examined if (one.prefix, one.proposed) in clear]


def runs_a_network(drafter: Drafter) -> bool:
    return any(isinstance(part, torch.nn.Module) for part in drafter.parts)


def ngram_tests(tokens_NL: np.ndarray, exact: ExactLaws) -> list[Finding]:
    """The tests of 2-grams and longer ones, as far as the laws and the texts go."""
    findings = []
    for n, law in exact.laws.items():
        cells = exact.clear_cells(tokens_NL, n) if n <= tokens_NL.shape[1] else []
        if len(cells):
            findings.append(ngram_test(cells, law / law.sum()))
    return findings


def sequence_rows(
    known: "Laws",
    drafters: Sequence[str],
    samplings: Sequence[Sampling],
    engine: Remembered,
    *,
    gamma: int,
    count: int,
    texts: int,
    seed: int,
    after_each: Callable[[], None],
) -> Iterator[dict]:
    """One row per drafter, sampling and test, of texts of their own; trees are of one small shape."""
    bundle, prompt = known.bundle, known.prompt
    for name, (place, sampling) in product(drafters, enumerate(samplings)):
        drafter, target = bundle.drafters[base_of(name)], bundle.target_of(name)
        tree = SHAPE.down_to(drafter.max_gamma or SHAPE.depth) if branched(name) else None
        used = min(gamma, drafter.max_gamma or gamma) if tree is None else len(tree.parents)
        limits = {"gamma": used, "count": count}
        uniforms = Uniforms("sequences", seed, engine.name, name, place)
        shared = {"engine": engine, "sampling": sampling, "uniforms": uniforms, **limits}
        decoding = drafter if tree is None else drafter.in_tree(tree)
        found = [speculative(target, decoding, prompt, **shared) for _ in range(texts)]
        about = {"seed": seed, "engine": engine.name, "context_rule": engine.context_rule, "drafter": name}
        about |= {"gamma": used, **asdict(sampling), "texts": texts, "tokens": count}
        reference, exact = known.of(target, sampling)
        for finding in judge_texts(found, reference, drafter.name, prompt, exact, branched=tree is not None, **limits):
            yield {**about, **asdict(finding)}
        after_each()


class Laws:
    """The exact laws after one prompt, of each target that drafters draft for, computed once for all engines."""

    def __init__(self, bundle: ModelBundle, prompt: list[int]):
        self.bundle, self.prompt = bundle, prompt
        self.references: dict[int, tuple[Reference, np.ndarray, list[np.ndarray]]] = {}
        self.laws: dict[tuple[int, Sampling], ExactLaws] = {}

    def of(self, target: Llama, sampling: Sampling) -> tuple[Reference, ExactLaws]:
        if id(target) not in self.references:
            symbols_K = alphabet(target, self.prompt)
            tree = tree_logits(target, self.prompt, DEPTH, symbols_K)
            self.references[id(target)] = Reference(bundle=replace(self.bundle, target=target)), symbols_K, tree
        reference, symbols_K, tree = self.references[id(target)]
        if (id(target), sampling) not in self.laws:
            self.laws[id(target), sampling] = ExactLaws.of(tree, symbols_K, sampling)
        return reference, self.laws[id(target), sampling]


def betas(reference: Reference, drafter: str, examined: Sequence[Examined], sampling: Sampling) -> np.ndarray:
    """beta of each proposal, from plain forwards."""
    distinct = list(dict.fromkeys((one.prefix, one.proposed) for one in examined))
    prefixes, proposed = zip(*distinct, strict=True)
    p_NV = distribution(reference.logits(TARGET, prefixes), sampling)
    q_NV = distribution(reference.logits(drafter, prefixes, proposed), sampling)
    found = dict(zip(distinct, acceptance_probability(p_NV, q_NV), strict=True))
    return np.array([found[one.prefix, one.proposed] for one in examined])
