"""The battery: right and wrong rounds and decoders, each put through the same tests."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from specledger.decoding.counts import Generated
from specledger.decoding.engines import engine
from specledger.decoding.loops import speculative
from specledger.experiments.bundle import ModelBundle
from specledger.experiments.exact_laws import ExactLaws
from specledger.experiments.one_round import Place, Rows, decide_rounds, judge_rounds, powers, round_law
from specledger.experiments.reference import Reference, alphabet, tree_logits, within
from specledger.experiments.remembered import Remembered
from specledger.experiments.sequences import Finding, acceptance_test, judge_texts, ngram_test
from specledger.experiments.wrong_branches import wrong_branches
from specledger.experiments.wrong_decoders import WrongDecoder, wrong_decoders
from specledger.experiments.wrong_rules import RoundRule, wrong_rules
from specledger.experiments.wrong_siblings import wrong_siblings
from specledger.foundation.drafters import TREE
from specledger.models.llama import Llama
from specledger.sampling.distributions import Sampling, distribution
from specledger.sampling.uniforms import Uniforms, stream
from specledger.statistics.rates import clopper_pearson

LEVEL = 0.001
SURE = 0.95  # a test is expected to see a fault where its power is at least this
REPEATS = 5
BEYOND_DOUBT = 1e-6  # four samples below it leave a power of .95 at LEVEL beyond doubt, which four below LEVEL don't
FALSE_ALARM_LEVELS = (0.05, 0.01)
FALSE_ALARM_CONFIDENCE = 0.999
RESAMPLES = 9_999


@dataclass(frozen=True, kw_only=True)
class Stage:
    """Where the battery plays: the models, a prompt, the target's tree of logits after it, and the seed."""

    bundle: ModelBundle
    prompt: list[int]
    symbols_K: np.ndarray
    tree: list[np.ndarray]
    seed: int

    @classmethod
    def at(cls, bundle: ModelBundle, prompt: list[int], seed: int) -> "Stage":
        symbols_K = alphabet(bundle.target, prompt)
        tree = tree_logits(bundle.target, prompt, 2, symbols_K)
        return cls(bundle=bundle, prompt=prompt, symbols_K=symbols_K, tree=tree, seed=seed)

    def draft_tree(self) -> list[np.ndarray]:
        """Logits of the draft model, of the alphabet alone."""
        return within(tree_logits(self.bundle.drafters["draft"], self.prompt, 1, self.symbols_K), self.symbols_K)

    def place(self) -> Place:
        """The round after the prompt, of the alphabet alone."""
        target_V, target_VV = within(self.tree[:2], self.symbols_K)
        return Place(target_V=target_V, target_VV=target_VV, draft_V=self.draft_tree()[0])


def _row(finding: Finding, *, power: float | None, expected: bool, **about: object) -> dict:
    return {
        **about,
        "test": finding.test,
        "statistic": finding.statistic,
        "df": finding.df,
        "p_value": finding.p_value,
        "power": power,
        "expected": expected,
        "caught": finding.p_value < LEVEL,
    }


def round_rules(draft_after_VV: np.ndarray) -> list[RoundRule]:
    """The battery of rounds: of one proposal, and of siblings; `draft_after_VV` is q after each first token."""
    return [*wrong_rules(draft_after_VV), *wrong_siblings()]


def decoders(target: Llama) -> list[WrongDecoder]:
    """The battery of complete decoders: of chains, and of trees."""
    return [*wrong_decoders(target), *wrong_branches(target)]


def rule_rows(stage: Stage, *, draws: int, after_each: Callable[[], None]) -> Iterator[dict]:
    """One row per wrong rule and test, each with its exact power, with the draft model as drafter."""
    place = stage.place()
    for index, rule in enumerate(round_rules(distribution(stage.draft_tree()[1], Sampling()))):
        rows = Rows.of(rule, place)
        rounds = decide_rounds(rule, rows, draws, Uniforms("rules", stage.seed, index))
        power = powers(*round_law(rule, rows), rows, draws, level=LEVEL)
        drafter = "draft" if rule.tree.is_chain else "draft" + TREE
        about = {"rule": rule.name, "source": rule.source, "kind": "rule"}
        about |= {"drafter": drafter, "gamma": rule.siblings}
        about |= {"temperature": rule.sampling.temperature, "n": draws}
        for finding in judge_rounds(rounds, rows, stream("rules", stage.seed, index, "null"), resamples=RESAMPLES):
            known = power.get(finding.test)
            yield _row(finding, power=known, expected=known is not None and known >= SURE, **about)
        after_each()


@dataclass(frozen=True, kw_only=True)
class Texts:
    """How texts of complete decoders are made: at most gamma proposals a round, tokens of each, and how many."""

    gamma: int
    tokens: int
    texts: int


def decode_texts(stage: Stage, fault: WrongDecoder, asked: Texts, uniforms: Uniforms, executed) -> list[Generated]:
    """Texts of a decoder with a fault, through the complete loop."""
    drafter = fault.drafter(stage.bundle.drafters[fault.uses])
    if fault.tree is not None:
        drafter = drafter.in_tree(fault.tree)
    asked_for = {"gamma": asked.gamma, "count": asked.tokens + fault.beyond(asked.gamma)}
    shared = {"engine": fault.engine(executed), "sampling": Sampling(), "uniforms": uniforms}
    texts = (speculative(stage.bundle.target, drafter, stage.prompt, **asked_for, **shared) for _ in range(asked.texts))
    return [fault.report(text, asked.tokens) for text in texts]


def decoder_rows(stage: Stage, asked: Texts, *, after_each: Callable[[], None]) -> Iterator[dict]:
    """One row per wrong decoder and test: a first sample is judged, the others of `REPEATS` say the test's power.

    All decoders use the same uniforms, so that they differ by their faults alone. A declared test is
    expected to see a fault where it did so beyond doubt in every sample but the first.
    """
    engines = {name: Remembered(engine=engine(name)) for name in ("recompute", "cached")}
    reference = Reference(bundle=stage.bundle)
    exact = ExactLaws.of(stage.tree, stage.symbols_K, Sampling())
    for fault in decoders(stage.bundle.target):
        limit, branched = stage.bundle.drafters[fault.uses].max_gamma or asked.gamma, fault.tree is not None
        used = replace(asked, gamma=len(fault.tree.parents) if branched else min(asked.gamma, limit))
        executed = engines["cached" if branched else "recompute"]
        limits = {"count": used.tokens, "gamma": used.gamma}
        samples = []
        for repeat in range(REPEATS):
            texts = decode_texts(stage, fault, used, Uniforms("decoders", stage.seed, repeat), executed)
            judged = judge_texts(texts, reference, fault.uses, stage.prompt, exact, branched=branched, **limits)
            samples.append(judged)
        about = {"rule": fault.name, "source": fault.source, "kind": "decoder"}
        about |= {"drafter": fault.uses + TREE * branched, "gamma": used.gamma, "temperature": 1.0, "n": used.texts}
        for findings in zip(*samples, strict=True):
            p_values = np.array([finding.p_value for finding in findings[1:]])
            expected = findings[0].test in fault.sees and bool((p_values < BEYOND_DOUBT).all())
            yield _row(findings[0], power=float((p_values < LEVEL).mean()), expected=expected, **about)
        after_each()


def false_alarm_rows(stage: Stage, *, repeats: int, draws: int) -> list[dict]:
    """How often the tests reject the right rule, one row per test and level."""
    rule = RoundRule(name="correct", source="")
    rows = Rows.of(rule, stage.place())
    rounds = decide_rounds(rule, rows, repeats * draws, Uniforms("false alarms", stage.seed))
    found: dict[str, list[float]] = {}
    for repeat in range(repeats):
        part = slice(repeat * draws, (repeat + 1) * draws)
        tokens_N2, accepted_N = rounds.tokens_N2[part], rounds.accepted_N[part]
        for finding in (
            ngram_test(tokens_N2[:, :1], rows.p_V),
            ngram_test(tokens_N2, rows.p_V[:, None] * rows.p_VV),
            acceptance_test(accepted_N, np.full(draws, rows.beta)),
        ):
            found.setdefault(finding.test, []).append(finding.p_value)
    return [
        _false_alarms(test, np.array(p_values), level, draws)
        for test, p_values in found.items()
        for level in FALSE_ALARM_LEVELS
    ]


def _false_alarms(test: str, p_values: np.ndarray, level: float, draws: int) -> dict:
    rejected = int((p_values < level).sum())
    interval = clopper_pearson(rejected, len(p_values), FALSE_ALARM_CONFIDENCE)
    return {
        "test": test,
        "repeats": len(p_values),
        "n": draws,
        "level": level,
        "rejected": rejected,
        "rate": rejected / len(p_values),
        "lo": interval.lo,
        "hi": interval.hi,
    }
