"""The made-up observations of the rule: raw files as the stages write them, and the tables that follow from them."""

from pathlib import Path

import numpy as np
import pandas as pd
from specledger.analysis import raw, tables
from specledger.analysis.differences import differences_table
from specledger.statistics.goodness import monte_carlo_fit, pooled_chisquare, total_variation
from specledger.statistics.power import detectable_leak, tv_bound
from specledger.statistics.rates import clopper_pearson, wilson
from synthetic_files import ALPHAS, ENGINES, SYMBOLS, write_csv, write_json

DRAWS = 200_000
PUBLISHED_TV = 0.0005
CONTEXTS, CONTEXT_DRAWS = 25, 5000
SAMPLINGS = ((1.0, None, None), (0.7, None, None), (1.0, 10, None), (1.0, None, 0.9))
# rule | source | kind | the tests that see it | power
CONTROLS = """
correct | Leviathan 2023, section 2.3 | rule | | 0.001
correct | Leviathan 2023, section 2.3 | decoder | | 0.001
resample from p | recipe | rule | 1-gram | 1
accept always | recipe | rule | 1-gram, acceptance | 1
resample from q | recipe | rule | 1-gram | 1
residual of absolute values | recipe | rule | 1-gram | 1
ratio upside down | recipe | rule | 1-gram, acceptance | 1
drafted at 0.9, declared at 1 | z-lab/dflash #74 | rule | 1-gram | 1
drafted from the top 10, declared whole | transformers #47932 | rule | 1-gram | 1
lenience of 5% | recipe | rule | 1-gram | 0.93
one noise for drafting and accepting | vLLM PR #54282 | rule | 1-gram, acceptance | 1
accepted if the samples agree | recipe | rule | acceptance | 1
bonus token drawn from q | recipe | decoder | 3-gram | 1
residual of the row after | recipe | decoder | 2-gram, 3-gram | 1
tokens after the end counted | vLLM #56101 | decoder | accounting | 1
one rejection in 100 accepted | recipe | rule | | 0.04
draft logits in bf16 | DeepSpec #31 | rule | | 0.001
"""


def _distributions(rng: np.random.Generator, sharpness: float) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    logits = rng.normal(0, 2.0, len(SYMBOLS)) * sharpness
    target = np.exp(logits - logits.max())
    target /= target.sum()
    drafts = {}
    for name, noise in (("draft", 0.9), ("mtp", 0.35), ("ngram", 1.2)):
        draft = target * np.exp(rng.normal(0, noise, len(SYMBOLS)))
        drafts[name] = draft / draft.sum()
    return target, drafts


def _drawn(target: np.ndarray, draft: np.ndarray, lenience: float) -> tuple[np.ndarray, float]:
    """What the rule that accepts by lenience * p/q gives: its distribution and its acceptance. 1 is the right one."""
    if lenience == 1:
        return target, float(np.minimum(target, draft).sum())
    kept, residual = np.minimum(draft, lenience * target), np.maximum(target - draft, 0)
    return kept + (1 - kept.sum()) * residual / residual.sum(), float(kept.sum())


def _draw_cells(target: np.ndarray, draft: np.ndarray, counts: np.ndarray, accepted: int, rng) -> dict:
    fit, pooled = monte_carlo_fit(counts, target, rng, resamples=199), pooled_chisquare(counts, target)
    rate, leak = wilson(accepted, DRAWS), detectable_leak(target, draft, DRAWS)
    distance = total_variation(target, draft)
    return {
        "temperature": 1.0, "draws": DRAWS, "accepted": accepted, "acceptance": accepted / DRAWS,
        "acceptance_lo": rate.lo, "acceptance_hi": rate.hi, "beta": float(np.minimum(target, draft).sum()),
        "tv_output": fit.tv, "tv_expected": fit.tv_expected, "tv_q999": fit.tv_q999, "tv_p_value": fit.tv_p_value,
        "tv_draft": distance, "chi2": pooled.chi2, "df": pooled.df, "p_value": pooled.p_value,
        "chi2_p_value": fit.chi2_p_value, "detectable_leak": leak,
        "detectable_tv": None if leak is None else leak * distance,
        "tv_bound": tv_bound(pooled.chi2, pooled.df, DRAWS), "resamples": 199,
    }  # fmt: skip


def write_positions(
    folder: Path, seeds: tuple[int, ...], rng: np.random.Generator, corpus_tail: str, lenience: float = 1.0
) -> None:
    """acceptance/…/draws.csv and position.json: four positions a seed, drawn many times."""
    for seed in seeds:
        rows, positions = [], []
        for index in range(4):
            cells = {"position": 1000 * index + seed, "context": f"{corpus_tail}{'abcd'[index]} noble lord, and "}
            target, drafts = _distributions(rng, 0.6 + 0.4 * index)
            found = {}
            for name, draft in drafts.items():
                output, rate = _drawn(target, draft, lenience)
                counts, accepted = rng.multinomial(DRAWS, output), int(rng.binomial(DRAWS, rate))
                measured = _draw_cells(target, draft, counts, accepted, rng)
                rows.append({"seed": seed, "drafter": name, **cells, **measured})
                found[name] = {"p": target.tolist(), "q": draft.tolist(), "counts": counts.tolist()}
                found[name] |= {"draws": DRAWS, "accepted": accepted}
            positions.append({**cells, "drafters": found})
        record = {"context": corpus_tail, "positions": positions, "symbols": SYMBOLS}
        write_json(folder / "acceptance" / str(seed) / "position.json", record)
        write_csv(folder / "acceptance" / str(seed) / "draws.csv", rows)


def _contexts(seed: int, rng: np.random.Generator) -> list[dict]:
    rows = []
    for position in range(CONTEXTS):
        target, drafts = _distributions(rng, rng.uniform(0.5, 4.0))
        null = 0.5 * np.abs(rng.multinomial(DRAWS, target, size=200) / DRAWS - target).sum(axis=1)
        lo, hi = (float(end) for end in np.quantile(null, (0.005, 0.995)))
        for name, draft in drafts.items():
            counts, beta = rng.multinomial(CONTEXT_DRAWS, target), float(np.minimum(target, draft).sum())
            fit = pooled_chisquare(counts, target)
            rows.append(
                {
                    "seed": seed, "drafter": name, "position": 70 + 9 * position, "draws": CONTEXT_DRAWS,
                    "accepted": int(rng.binomial(CONTEXT_DRAWS, beta)), "beta": beta,
                    "tv_output": total_variation(counts / CONTEXT_DRAWS, target),
                    "tv_draft": total_variation(draft, target), "chi2": fit.chi2, "df": fit.df,
                    "p_value": None if np.isnan(fit.p_value) else fit.p_value, "null_draws": DRAWS,
                    "null_tv_lo": lo, "null_tv_hi": hi,
                }
            )  # fmt: skip
    return rows


def _oracle(seed: int, rng: np.random.Generator) -> list[dict]:
    rows = []
    for drafter in ALPHAS:
        sizes = [("random", gamma, 4) for gamma in (1, 2, 3)] + [("trained", 2, len(SYMBOLS))]
        for model, gamma, vocabulary in sizes if drafter != "mtp" else [("random", 1, 4), ("trained", 1, len(SYMBOLS))]:
            size = {"model": model, "blocks": vocabulary ** (gamma + 1), "max_abs_deviation": rng.uniform(1, 4) * 1e-16}
            rows.append(
                {"seed": seed, "drafter": drafter, "gamma": gamma, "tree": "", "vocabulary": vocabulary, **size}
            )
    return rows


def _sequences(seed: int, rng: np.random.Generator) -> list[dict]:
    rows = []
    for engine, rule in ENGINES.items():
        for drafter in ALPHAS:
            for temperature, top_k, top_p in SAMPLINGS:
                keys = {"seed": seed, "engine": engine, "context_rule": rule, "drafter": drafter}
                keys |= {"gamma": 1 if drafter == "mtp" else 2, "temperature": temperature, "top_k": top_k}
                keys |= {"top_p": top_p, "min_p": None, "texts": 5000, "tokens": 4}
                for test, df in (("2-gram", 160), ("3-gram", 420), ("acceptance", None), ("accounting", None)):
                    # The quantile of one uniform is the statistic, so that it and its p-value belong together.
                    p_value = 1.0 if test == "accounting" else float(rng.uniform(0.01, 1))
                    statistic = 0 if test == "accounting" else _statistic(p_value, df, (-1) ** seed)
                    rows.append(keys | {"test": test, "statistic": statistic, "df": df, "p_value": p_value})
    return rows


def _statistic(p_value: float, df: int | None, sign: int) -> float:
    from scipy import stats

    return float(sign * stats.norm.isf(p_value / 2) if df is None else stats.chi2.isf(p_value, df))


def _controls(seed: int, rng: np.random.Generator) -> list[dict]:
    rows = []
    for line in CONTROLS.strip().splitlines():
        rule, source, kind, seen, power = (part.strip() for part in line.split("|"))
        tests = ("1-gram", "acceptance") if kind == "rule" else ("2-gram", "3-gram", "acceptance", "accounting")
        for test in tests:
            caught = test in seen.split(", ")
            rows.append(
                {
                    "seed": seed, "rule": rule, "source": source, "kind": kind, "drafter": "draft",
                    "gamma": 1 if kind == "rule" else 2, "temperature": 1.0,
                    "n": DRAWS if kind == "rule" else 2000, "test": test,
                    "statistic": 900.0 if caught else 50.0, "df": 52 if test.endswith("gram") else None,
                    "p_value": 1e-30 if caught else float(rng.uniform(0.05, 1)),
                    "power": float(power) if caught or not seen else None, "expected": caught, "caught": caught,
                }
            )  # fmt: skip
    return rows


def _false_alarms(seed: int) -> list[dict]:
    rows = []
    for test, rejected in (("1-gram", 9), ("acceptance", 12)):
        share = clopper_pearson(rejected, 200, 0.999)
        cells = {"seed": seed, "test": test, "repeats": 200, "n": 5000, "level": 0.05, "rejected": rejected}
        rows.append(cells | {"rate": rejected / 200, "lo": share.lo, "hi": share.hi})
    return rows


def write_evidence(
    folder: Path, seeds: tuple[int, ...], trainings: list[dict], rng: np.random.Generator, corpus_tail: str
) -> dict:
    """Write the raw files of the rule and their tables; returns their part of summary.json.

    The sweep's files are there already. trainings: the rows of seeds.csv, of which differences.csv takes the losses.
    """
    write_positions(folder, seeds, rng, corpus_tail)
    for seed in seeds:
        write_csv(folder / "checks" / str(seed) / "oracle.csv", _oracle(seed, rng))
        write_csv(folder / "acceptance" / str(seed) / "contexts.csv", _contexts(seed, rng))
        write_csv(folder / "acceptance" / str(seed) / "typical.csv", [], raw.TYPICAL_COLUMNS)
        write_csv(folder / "sequences" / str(seed) / "sequences.csv", _sequences(seed, rng))
    write_csv(folder / "controls" / str(seeds[0]) / "controls.csv", _controls(seeds[0], rng))
    write_csv(folder / "controls" / str(seeds[0]) / "false_alarms.csv", _false_alarms(seeds[0]))
    frames = tables.rule_tables(raw.read_rule(folder, list(seeds)), PUBLISHED_TV)
    frames["differences"] = differences_table(pd.DataFrame(trainings), margin=0.01)
    for name, frame in frames.items():
        tables.write_csv(frame, folder / "tables" / f"{name}.csv")
    return tables.jsonable(tables.rule_summary(frames))
