"""Stage `checks`: prefix invariance, greedy identity and the exact oracle, of one seed."""

from specledger.commands import measuring
from specledger.commands.folders import add_folder
from specledger.decoding.engines import usable
from specledger.experiments.checks import greedy_rows, prefix_rows
from specledger.experiments.oracle import SIBLINGS, SMALL_TREES, oracle_rows, random_bundle
from specledger.foundation.records import write_rows
from specledger.models.storage import load_model, of_one_vocabulary
from specledger.sampling.distributions import Sampling

SMALL = 4  # symbols of the random models' vocabulary


def add_arguments(parser) -> None:
    measuring.add_arguments(parser)
    add_folder(parser, "--plain", "files of the target without MTP")


def run(options, log) -> None:
    settings, corpus, bundle = measuring.begin(options)
    engines, _ = usable(settings["engines"], bundle.target.lm_head.weight.device, log.say)
    prompt = corpus.validation[: settings["greedy_prompt"]].tolist()
    greedy = list(
        greedy_rows(bundle, engines, settings["gammas"], prompt, count=settings["greedy_tokens"], seed=options.seed)
    )
    plain = load_model(options.plain, bundle.target.lm_head.weight.device)
    of_one_vocabulary(len(corpus.vocabulary), {options.plain: plain.config})
    models = {
        "plain": plain,
        "mtp": bundle.target,
        "draft": load_model(options.draft, bundle.target.lm_head.weight.device),
    }
    tokens = corpus.validation[: settings["prefix_long"]]
    prefix = list(prefix_rows(models, engines, tokens, short=settings["prefix_short"], seed=options.seed))
    write_rows(options.output / "prefix.csv", prefix)
    write_rows(options.output / "greedy.csv", greedy)
    write_rows(options.output / "oracle.csv", oracle(options.seed, corpus.prompt.tolist(), bundle))
    measuring.certify(options, settings, bundle)
    same = sum(row["identical"] for row in greedy)
    log.say(f"checks seed {options.seed}: greedy identical in {same} of {len(greedy)} runs")


def oracle(seed: int, prompt: list[int], bundle) -> list[dict]:
    """Exact laws of blocks: every drafter and tree with small random models, and this seed's at the prompt.

    Of this seed's those that cost least: gamma 2 of drafters that say q anywhere, gamma 1 of heads, siblings of one.
    """
    sampling, speaking = Sampling(), list(bundle.speaking)
    shared = {"model": "trained", "sampling": sampling}
    heads = [name for name in bundle.lossless if name not in speaking]
    rows = oracle_rows(random_bundle(SMALL, seed), [0, 1, 2], [1, 2, 3], SMALL_TREES, model="random", sampling=sampling)
    rows += oracle_rows(bundle, prompt, [2], [], drafters=speaking, **shared)
    rows += oracle_rows(bundle, prompt, [1], [], drafters=heads, **shared)
    rows += oracle_rows(bundle, prompt, [], [SIBLINGS], drafters=["ngram"], **shared)
    return [{"seed": seed, **row} for row in rows]
