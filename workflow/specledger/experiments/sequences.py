"""Short texts through the complete decoder, held against the target's exact joint law.

The first gamma + 1 tokens or more after a fixed prompt, decoded many times: n-grams by Pearson's test against
the enumerated law, the accepted among the examined proposals against the sum of beta at their prefixes, and
the identities that counters must keep. Shapes: N texts, L tokens of each, V vocabulary.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import islice, product

import numpy as np
from scipy import stats

from specledger.decoding.counted import NGramDrafter
from specledger.decoding.counts import Generated
from specledger.decoding.loops import speculative
from specledger.experiments.exact_laws import ExactLaws, near_a_cut
from specledger.experiments.reference import TARGET, Reference
from specledger.experiments.remembered import Remembered
from specledger.sampling.distributions import Sampling, distribution
from specledger.sampling.uniforms import Uniforms
from specledger.sampling.verify import acceptance_probability
from specledger.statistics.goodness import pooled_chisquare


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


def examined_proposals(prompt: Sequence[int], text: Generated) -> list[tuple[tuple[int, ...], bool]]:
    """The prefix of each proposal that the rule looked at, and whether it was accepted."""
    found, known = [], list(prompt)
    tokens = iter(text.tokens)
    for done in text.rounds:
        emitted = list(islice(tokens, done.accept_len + 1))
        for place in range(min(done.accept_len + 1, done.drafted, len(emitted))):
            found.append(((*known, *emitted[:place]), place < done.accept_len))
        known += emitted
    return found


def violations(text: Generated, *, count: int, gamma: int, vocabulary: int) -> int:
    """How many of the identities that a text and its counters must keep are broken."""
    accepted = [done.accept_len for done in text.rounds]
    kept = (
        len(text.tokens) == count,
        sum(accepted) + len(text.rounds) == len(text.tokens),
        all(0 <= done.accept_len <= done.drafted <= gamma for done in text.rounds),
        text.examined == sum(min(done.accept_len + 1, done.drafted) for done in text.rounds),
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
) -> list[Finding]:
    """Every test of a sample of texts of one decoder."""
    V, sampling = exact.vocabulary, exact.sampling
    limits = {"count": count, "gamma": gamma, "vocabulary": V}
    whole = [text for text in texts if len(text.tokens) >= count and max(text.tokens) < V]
    tokens_NL = np.array([text.tokens[:count] for text in whole], dtype=np.int64).reshape(-1, count)
    findings = ngram_tests(tokens_NL, exact) if whole else []
    examined = [pair for text in whole for pair in examined_proposals(prompt, text)]
    if whole and not examined:
        raise ValueError(f"{drafter} made no proposal in {len(whole)} texts of {count} tokens at gamma {gamma}")
    clear = examined_clearly(examined, reference, drafter, sampling)
    if clear:
        prefixes, accepted = zip(*clear, strict=True)
        findings.append(acceptance_test(np.array(accepted), betas(reference, drafter, prefixes, sampling)))
    return [*findings, accounting_test(texts, **limits)]


def examined_clearly(examined: list, reference: Reference, drafter: str, sampling: Sampling) -> list:
    """The examined proposals after prefixes at which no cut of target or drafter hangs on a rounding."""
    distinct = list(dict.fromkeys(prefix for prefix, _ in examined))
    if not distinct:
        return []
    doubtful = near_a_cut(reference.logits(TARGET, distinct), sampling)
    if not isinstance(reference.cast.drafters[drafter], NGramDrafter):  # whose rows are the same bits on both sides
        doubtful = doubtful | near_a_cut(reference.logits(drafter, distinct), sampling)
    clear = {prefix for prefix, near in zip(distinct, doubtful, strict=True) if not near}
    return [pair for pair in examined if pair[0] in clear]


def ngram_tests(tokens_NL: np.ndarray, exact: ExactLaws) -> list[Finding]:
    """The tests of 2-grams and longer ones, as far as the laws and the texts go."""
    findings = []
    for n, law in exact.laws.items():
        cells = exact.clear_cells(tokens_NL, n) if n <= tokens_NL.shape[1] else []
        if len(cells):
            findings.append(ngram_test(cells, law / law.sum()))
    return findings


def sequence_rows(
    reference: Reference,
    drafters: Sequence[str],
    prompt: list[int],
    exacts: Sequence[ExactLaws],
    engine: Remembered,
    *,
    gamma: int,
    count: int,
    texts: int,
    seed: int,
    after_each: Callable[[], None],
) -> Iterator[dict]:
    """One row per drafter, sampling and test, of texts of their own."""
    target = reference.cast.target
    for index, (name, exact) in enumerate(product(drafters, exacts)):
        drafter = reference.cast.drafters[name]
        used = min(gamma, drafter.max_gamma or gamma)
        limits, sampling = {"gamma": used, "count": count}, exact.sampling
        uniforms = Uniforms("sequences", seed, engine.name, index)
        shared = {"engine": engine, "sampling": sampling, "uniforms": uniforms, **limits}
        found = [speculative(target, drafter, prompt, **shared) for _ in range(texts)]
        about = {"seed": seed, "engine": engine.name, "context_rule": engine.context_rule, "drafter": name}
        about |= {"gamma": used, **asdict(sampling), "texts": texts, "tokens": count}
        for finding in judge_texts(found, reference, name, prompt, exact, **limits):
            yield {**about, **asdict(finding)}
        after_each()


def betas(reference: Reference, drafter: str, prefixes: Sequence[tuple[int, ...]], sampling: Sampling) -> np.ndarray:
    """beta after each prefix, from plain forwards."""
    distinct = list(dict.fromkeys(prefixes))
    p_NV, q_NV = (distribution(reference.logits(name, distinct), sampling) for name in (TARGET, drafter))
    found = dict(zip(distinct, acceptance_probability(p_NV, q_NV), strict=True))
    return np.array([found[prefix] for prefix in prefixes])
