"""What the benchmarks share: the study they belong to, one-line errors, and intervals of paired times."""

import argparse
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import yaml
from specledger.corpus.text import Corpus
from specledger.foundation import config as configuration
from specledger.foundation.errors import UserError
from specledger.foundation.records import read_json

ROOT = Path(__file__).resolve().parents[1]
LEVEL, RESAMPLES = 0.95, 9999
METHOD = "median over blocks; 95% percentile bootstrap over blocks (ratios: log ratios of the pairs of a block)"


def arguments(description: str, **defaults) -> argparse.ArgumentParser:
    """The arguments that every benchmark takes."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--configfile", type=Path, help="laid over config/config.yaml, as for snakemake")
    parser.add_argument("--results", type=Path, help="the study's results; results/<study> if left out")
    parser.add_argument("--seed", type=int, help="whose models; the study's first if left out")
    parser.add_argument("--blocks", type=int, default=defaults["blocks"], help="times that each method is measured")
    return parser


def _over(below: dict, above: dict) -> dict:
    """`below` with the keys of `above` laid over it, mappings key by key."""
    both = {key: value for key, value in below.items() if isinstance(value, dict) and isinstance(above.get(key), dict)}
    return {**below, **above, **{key: _over(value, above[key]) for key, value in both.items()}}


def _read_yaml(path: Path) -> dict:
    try:
        return yaml.safe_load(path.read_text(encoding="utf-8")) or {}
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise UserError(f"{path}: can't be read as YAML ({' '.join(str(error).split())})") from None


@dataclass(frozen=True, kw_only=True)
class Study:
    """A study's settings and where its results lie."""

    config: dict
    results: Path
    seed: int

    @classmethod
    def of(cls, options) -> "Study":
        """The study that the arguments name; UserError where it, or its corpus, isn't there."""
        config = _read_yaml(ROOT / "config" / "config.yaml")
        if options.configfile is not None:
            config = _over(config, _read_yaml(options.configfile))
        configuration.validate(config)
        if options.blocks < 2:
            raise UserError(f"--blocks: {options.blocks}; must be at least 2, else nothing has an interval")
        results = options.results or Path("results") / config["study"]
        if not results.is_dir():
            raise UserError(f"{results}: no such folder; run the study first, or name its results with --results")
        seed = config["seeds"][0] if options.seed is None else options.seed
        return cls(config=config, results=results, seed=seed)

    def corpus(self) -> Corpus:
        record = read_json(self.results / "corpus" / "corpus.json")
        return Corpus.load(self.results / "corpus" / "text.txt", record, self.config["corpus"]["prompt"])

    def settings(self, **more) -> str:
        """What a certificate says of how a benchmark was run."""
        return json.dumps({"study": self.config["study"], "seed": self.seed, **more}, sort_keys=True)


def _bootstrap(values_N: np.ndarray) -> tuple[float, float, float]:
    """The median of values [N] and its interval."""
    generator = np.random.default_rng(0)
    medians_R = np.median(generator.choice(values_N, size=(RESAMPLES, len(values_N))), axis=1)
    lo, hi = np.quantile(medians_R, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return float(np.median(values_N)), float(lo), float(hi)


def median(values: list[float]) -> tuple[float, float, float]:
    return _bootstrap(np.array(values))


def paired_ratio(numerators: list[float], denominators: list[float]) -> tuple[float, float, float]:
    """exp of the median log ratio of pairs, and its interval."""
    middle, lo, hi = np.exp(_bootstrap(np.log(np.array(numerators) / np.array(denominators))))
    return float(middle), float(lo), float(hi)


def spread(name: str, three: tuple[float, float, float]) -> dict:
    """The columns `name`, `name_lo`, `name_hi`."""
    return dict(zip((name, f"{name}_lo", f"{name}_hi"), three, strict=True))


def shuffled_blocks(methods: list, blocks: int, run: Callable, seed: int = 0) -> list[list[float]]:
    """Seconds [methods][blocks]: in each block every method runs once, in an order of its own."""
    generator, seconds = np.random.default_rng(seed), [[] for _ in methods]
    for block in range(blocks):
        for index in generator.permutation(len(methods)):
            seconds[index].append(run(methods[index], block))
    return seconds


def say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def one_line(name: str, run: Callable[[list[str]], None]) -> None:
    """Run a benchmark; what the user can mend ends it in one line."""
    try:
        run(sys.argv[1:])
    except UserError as error:
        sys.exit(f"{name}: {error}")
    except KeyboardInterrupt:
        sys.exit(f"{name}: interrupted")
