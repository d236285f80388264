"""The made-up observations of the clock: raw files as the sweep writes them, from known costs, and their tables.

A round of k proposals takes propose(k) + forward(k + 1) + overhead(k), a plain token forward(1) + overhead(0); a
block has a speed of its own, which pairs cancel, and a run a noise of its own.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from specledger.analysis import costs, ledger, raw, summary, tables, timing
from synthetic_files import ALPHAS, APART, ENGINES, GAMMAS, SWEPT, TREES, gammas_of, write_csv

TEXTS, TEXT_TOKENS = 3, 60  # decoded without a drafter, or by drafters that choose how much they propose
REPEATS, SWEEP_TOKENS = 3, 60
CLAIMS = Path(__file__).parents[1] / "config" / "claims.yaml"
MACHINE = {"device": "NVIDIA GeForce RTX 4090", "threads": 2}
CLOCKS = 0.006  # what reading the clocks adds to a run


@dataclass(frozen=True)
class Truth:
    """Seconds of an engine: a one-position forward, its growth a position, c by drafter, overheads."""

    one: float
    slope: float
    c: dict[str, float]
    plain_overhead: float
    overhead: float

    def forward(self, positions: int) -> float:
        return self.one * (1 + self.slope * (positions - 1))

    def propose(self, drafter: str, proposals: int) -> float:
        if drafter in APART:  # heads run together, a tree level by level: dearer with its size, by less than a chain
            return self.one * 0.12 * (1 + 0.4 * proposals**0.5)
        return self.one * self.c[drafter] * (1 if drafter == "lookup" else proposals)

    def spent(self, proposals: int) -> float:
        return self.overhead if proposals else self.plain_overhead

    def parts(self, drafter: str, proposals: int, gamma: int = 0) -> dict[str, float]:
        """Seconds of one round by part; plain decoding is drafter none with no proposal."""
        spent = self.spent(proposals)
        draft = 0.0 if drafter == "none" else self.propose(drafter, proposals)
        return {
            "draft": 0.9 * draft, "catch_up": 0.1 * draft, "verify": self.forward(proposals + 1),
            "accept": 0.7 * spent, "sync": 0.1 * spent, "other": 0.2 * spent,
        }  # fmt: skip


def _c(draft: float, mtp: float, ngram: float, lookup: float) -> dict[str, float]:
    return {"draft": draft, "draft_dynamic": draft, "mtp": mtp, "ngram": ngram, "lookup": lookup}


TRUTH = {
    "recompute": Truth(2.05e-3, 0.01, _c(0.31, 0.34, 0.006, 0.005), 1e-4, 1.6e-4),
    "cached": Truth(1.22e-3, 0.06, _c(0.29, 0.33, 0.011, 0.009), 9e-5, 1.5e-4),
    "compiled": Truth(0.56e-3, 0.05, _c(0.17, 0.3, 0.02, 0.018), 3e-5, 6e-5),
}


def methods(*, heads: bool = False) -> list[tuple[str, str, int]]:
    """Every engine, drafter and gamma of the sweep, plain decoding first; heads and trees on the engine cached."""
    pairs = [("none", 0), *((drafter, gamma) for drafter in SWEPT for gamma in gammas_of(drafter))]
    apart = [("cached", drafter, gamma) for drafter in APART for gamma in gammas_of(drafter)]
    return [*((engine, *pair) for engine in ENGINES for pair in pairs), *(apart if heads else [])]


def difficulty(drafter: str, count: int, rng: np.random.Generator) -> np.ndarray:
    """Acceptance by position of a text: hard characters come in clusters (an autoregressive difficulty)."""
    found = np.zeros(count)
    for place in range(1, count):
        found[place] = 0.6 * found[place - 1] + rng.normal()
    return np.clip((SWEPT | APART)[drafter] + 0.1 * found, 0.5, 1.0)


def ratios(betas: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """min(1, p/q) of a proposal, or min(1, q/p) of a text's symbol: 1 or a half, with mean beta."""
    return np.where(rng.random(len(betas)) < 2 * betas - 1, 1.0, 0.5)


def _depth(drafter: str, gamma: int) -> int:
    """How many proposals can be accepted: all of a chain's, a path of a tree's."""
    return gamma.bit_length() if drafter in TREES else gamma


def rounds_of_a_text(drafter: str, gamma: int, rng: np.random.Generator, tokens: int = SWEEP_TOKENS) -> list[dict]:
    """The rounds of one text; of drafters that choose, some propose less than gamma, or nothing."""
    betas, rows, done = difficulty(drafter, tokens, rng), [], 0
    while done < tokens:
        drafted = min(_depth(drafter, gamma), tokens - done - 1)
        if drafter in SWEPT and drafter not in ALPHAS:
            drafted = min(drafted, int(rng.geometric(0.35)) - (drafter == "lookup"))
        probs = ratios(betas[done : done + drafted], rng)
        refused = np.flatnonzero(rng.random(drafted) >= probs)
        accept_len = int(refused[0]) if refused.size else drafted
        cells = {"round": len(rows) + 1, "drafted": drafted, "accept_len": accept_len}
        cells["examined"] = min(accept_len + 1, drafted)
        rows.append(cells | {"accept_probs": " ".join(f"{value:.6g}" for value in probs)})
        done += accept_len + 1
    return rows


def _plain_rounds() -> list[dict]:
    return [{"drafted": 0, "accept_len": 0}] * SWEEP_TOKENS


def run_row(engine: str, drafter: str, gamma: int, rounds: list[dict], factor: float, *, clocked: bool) -> dict:
    """One run: the counts of its rounds, and their seconds times `factor`."""
    truth, examined = TRUTH[engine], sum(min(r["accept_len"] + 1, r["drafted"]) for r in rounds)
    grown = (lambda r: gamma) if drafter in TREES else (lambda r: r["drafted"])
    spent = [truth.parts(drafter, grown(r), gamma) for r in rounds]
    parts = {part: factor * sum(one[part] for one in spent) for part in spent[0]}
    drafted = sum(r["drafted"] for r in rounds)
    nodes = gamma if drafter in TREES else None
    return {
        "engine": engine, "context_rule": ENGINES[engine], "drafter": drafter, "gamma": gamma,
        "tree_nodes": nodes, "copy": 0,
        "clocked": int(clocked), "temperature": 1.0, "rounds": len(rounds), "target_forwards": len(rounds),
        "draft_forwards": drafted, "tokens": SWEEP_TOKENS, "drafted": drafted, "examined": examined,
        "accepted": sum(r["accept_len"] for r in rounds),
        "full_rounds": sum(r["accept_len"] == gamma for r in rounds) if gamma else 0,
        "wall_s": sum(parts.values()), **{f"{part}_s": value if clocked else None for part, value in parts.items()},
        **MACHINE,
    }  # fmt: skip


def _block(seed: int, repeat: int, rng: np.random.Generator, heads: bool) -> tuple[list[dict], list[dict]]:
    """Runs and rounds of one block: each method, the second plain runs, and the twins without clocks."""
    speed, runs, rounds = float(np.exp(rng.normal(0, 0.05))), [], []

    def run(engine: str, drafter: str, gamma: int, found: list[dict], **changes: object) -> None:
        clocked = bool(changes.get("clocked", 1))
        factor = speed * float(np.exp(rng.normal(0, 0.004))) * (1 + CLOCKS if clocked else 1)
        runs.append(run_row(engine, drafter, gamma, found, factor, clocked=clocked) | changes)

    for engine, drafter, gamma in methods(heads=heads):
        found = _plain_rounds() if drafter == "none" else rounds_of_a_text(drafter, gamma, rng)
        run(engine, drafter, gamma, found)
        if drafter == "none":
            run(engine, drafter, gamma, found, copy=1)
            run(engine, drafter, gamma, found, clocked=0)
            continue
        if (drafter, gamma) == ("ngram", max(GAMMAS)):
            run(engine, drafter, gamma, found, clocked=0)
        where = {"seed": seed, "repeat": repeat, "engine": engine, "drafter": drafter, "gamma": gamma}
        rounds += [where | cells for cells in found]
    order = rng.permutation(len(runs)) + 1
    return [{"seed": seed, "repeat": repeat, "order": int(at)} | r for at, r in zip(order, runs, strict=True)], rounds


def forward_rows(seed: int, factor: float = 1.0, *, heads: bool = False) -> list[dict]:
    """What the single timings say of the truth, a seed's speed included."""
    rows = []

    def timed(engine: str, part: str, drafter: str, gamma: int, positions: int, seconds: float) -> None:
        seconds *= factor
        cells = {"seed": seed, "engine": engine, "part": part, "drafter": drafter, "gamma": gamma}
        spread = {"seconds": seconds, "seconds_lo": 0.98 * seconds, "seconds_hi": 1.03 * seconds}
        rows.append(cells | {"positions": positions, **spread, **MACHINE})

    for engine, truth in TRUTH.items():
        for positions in (1, *(gamma + 1 for gamma in (*GAMMAS, *([16] if heads else [])))):
            timed(engine, "forward", "none", positions - 1, positions, truth.forward(positions))
        timed(engine, "round", "none", 0, 1, truth.forward(1) + truth.plain_overhead)
        for _, drafter, gamma in (one for one in methods(heads=heads) if one[0] == engine and one[1] != "none"):
            timed(engine, "propose", drafter, gamma, 1, truth.propose(drafter, gamma))
            whole = truth.propose(drafter, gamma) + truth.forward(gamma + 1) + truth.spent(gamma)
            timed(engine, "round", drafter, gamma, gamma + 1, whole)
    return rows


def _engines(seed: int) -> list[dict]:
    seconds = {"recompute": None, "cached": None, "compiled": 21.4 + seed}
    return [
        {"seed": seed, "engine": engine, "available": True, "why": None, "compile_s": seconds[engine]}
        for engine in ENGINES
    ]


def _agreement(seed: int) -> list[dict]:
    """Texts of the compiled engine against those of the cached one; one of them parts at a tie."""
    rows = []
    for repeat in range(1, REPEATS + 1):
        for engine, drafter, gamma in (one for one in methods() if one[0] == "compiled"):
            parts = (seed, repeat, drafter, gamma) == (1, 2, "draft", 4)
            where = {"seed": seed, "repeat": repeat, "engine": engine, "reference": "cached", "drafter": drafter}
            apart = {"identical": not parts, "first_divergence": 37 if parts else None}
            rows.append(where | {"gamma": gamma, "tokens": SWEEP_TOKENS, **apart, "margin": 3e-7 if parts else None})
    return rows


def plain_texts(seed: int, rng: np.random.Generator) -> list[dict]:
    """Texts of the target along which drafters were followed."""
    rows = []
    for text in range(1, TEXTS + 1):
        for drafter in ALPHAS:
            betas = difficulty(drafter, TEXT_TOKENS, rng)
            pairs = enumerate(zip(betas.tolist(), ratios(betas, rng).tolist(), strict=True))
            keys = {"seed": seed, "text": text, "drafter": drafter}
            rows += [{**keys, "position": at, "beta": beta, "kept": kept} for at, (beta, kept) in pairs]
    return rows


def rounds_apart(seed: int, rule: str, rng: np.random.Generator) -> list[dict]:
    """Rounds of texts of their own: of drafters that choose how much they propose, and of all under the window."""
    return [
        {"seed": seed, "text": text, "context_rule": rule, "drafter": drafter, "gamma": gamma, **cells}
        for text in range(1, TEXTS + 1)
        for drafter in SWEPT
        if rule == "window" or drafter not in ALPHAS
        for gamma in gammas_of(drafter)
        for cells in rounds_of_a_text(drafter, gamma, rng, TEXT_TOKENS)
    ]


def write_sweep(folder: Path, seeds: tuple[int, ...], rng: np.random.Generator, *, heads: bool = False) -> None:
    """sweep/…/ and the texts of acceptance/… that belong to it."""
    for seed in seeds:
        blocks = [_block(seed, repeat, rng, heads) for repeat in range(1, REPEATS + 1)]
        place = folder / "sweep" / str(seed)
        write_csv(place / "runs.csv", [row for runs, _ in blocks for row in runs])
        write_csv(place / "rounds.csv", [row for _, rounds in blocks for row in rounds])
        write_csv(place / "forwards.csv", forward_rows(seed, float(np.exp(rng.normal(0, 0.05))), heads=heads))
        write_csv(place / "engines.csv", _engines(seed))
        write_csv(place / "agreement.csv", _agreement(seed))
        write_csv(folder / "acceptance" / str(seed) / "texts.csv", plain_texts(seed, rng))
        write_csv(folder / "acceptance" / str(seed) / "rounds.csv", rounds_apart(seed, "sliding", rng))
        write_csv(folder / "sweep" / str(seed) / "apart.csv", rounds_apart(seed, "window", rng))


def write_time_tables(folder: Path, seeds: tuple[int, ...]) -> tuple[dict[str, pd.DataFrame], dict]:
    """The tables of the clock from the raw files, as the workflow makes them.

    Returns what claims are judged on, and their part of summary.json.
    """
    observed, rule = raw.read_sweep(folder, list(seeds)), raw.read_rule(folder, list(seeds))
    texts = timing.with_ratios(observed.runs)
    by_seed = ledger.methods_by_seed(texts, observed.forwards)
    found = tables.time_tables(observed, rule, texts, by_seed)
    for name, frame in found.items():
        tables.write_csv(tables.declared(name, frame), folder / "tables" / f"{name}.csv")
    quoted = summary.clock_summary(found["ledger"], found["forwards"]) | tables.time_summary(found)
    seen = {name: found[name] for name in ("ledger", "time", "noise", "cost_model")}
    seen |= {"texts": texts, "by_seed": by_seed, "forwards": costs.with_ratios(observed.forwards)}
    return seen, tables.jsonable(quoted)
