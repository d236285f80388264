"""What the benchmarks share: the study they belong to, one-line errors, and intervals of paired times."""

import argparse
import json
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import yaml
from specledger.corpus.text import Corpus
from specledger.foundation import config as configuration
from specledger.foundation.errors import UserError
from specledger.foundation.records import read_json, sum_of, weights_of
from specledger.statistics.paired import paired_log_interval

ROOT = Path(__file__).resolve().parents[1]
METHOD = "median of logs over blocks (ratios: of pairs); 95% t interval with the bootstrap's standard deviation"


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
        found = yaml.safe_load(path.read_text(encoding="utf-8")) or {}
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise UserError(f"{path}: can't be read as YAML ({' '.join(str(error).split())})") from None
    if not isinstance(found, dict):
        raise UserError(f"{path}: holds no keys; config/config.yaml shows what a configuration looks like")
    return found


def configured(files: Iterable[Path]) -> dict:
    """The study's configuration with `files` laid over it in turn; UserError in one line for the first fault."""
    config = _read_yaml(ROOT / "config" / "config.yaml")
    for path in files:
        config = _over(config, _read_yaml(path))
    configuration.validate(config)
    return config


@dataclass(frozen=True, kw_only=True)
class Study:
    """A study's settings and where its results lie."""

    config: dict
    results: Path
    seed: int

    @classmethod
    def of(cls, options) -> "Study":
        """The study that the arguments name; UserError where it, or its corpus, isn't there."""
        config = configured([] if options.configfile is None else [options.configfile])
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

    def weights(self) -> dict[str, str]:
        """The sums of what the models of the seed are made of, for a certificate."""
        folders = {model: self.results / "models" / model / str(self.seed) for model in ("mtp", "draft")}
        sums = {model: sum_of(*weights_of(folder)) for model, folder in folders.items()}
        return sums | {"ngram": sum_of(self.results / "ngram" / "ngram.safetensors")}

    def settings(self, **more) -> str:
        """What a certificate says of how a benchmark was run."""
        return json.dumps({"study": self.config["study"], "seed": self.seed, **more}, sort_keys=True)


def what_next(options) -> str:
    """How tables, figures and pages take in what was measured beside the study."""
    laid_over = "" if options.configfile is None else f" --configfile {options.configfile}"
    return f"the report takes this in with: snakemake{laid_over} (and then Snakemake's own --report, if you use it)"


def median(values: list[float]) -> tuple[float, float, float]:
    """exp of the median log of positive values, and its interval."""
    found = paired_log_interval([np.log(values)])
    return found.mean, found.lo, found.hi


def paired_ratio(numerators: list[float], denominators: list[float]) -> tuple[float, float, float]:
    """exp of the median log ratio of pairs, and its interval."""
    return median(np.divide(numerators, denominators).tolist())


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
