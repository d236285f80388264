"""Our prompt lookup beside transformers' `prompt_lookup_num_tokens`, on one model, in one run.

Greedy texts of the pair's prompts, four ways in shuffled order within each block: plain and with prompt lookup, ours
and theirs; ratios are medians over blocks of paired seconds, with a bootstrap interval. Run by hand:
`python benchmarks/pair_peers.py --target FILE [--tasks copying] [--tokens 96] [--threads 1] [--dtype bfloat16]`.
"""

import argparse
import time
from pathlib import Path

import numpy as np
import torch
from specledger.decoding.drafter import Drafter
from specledger.drafters.lookup import LookupProposer
from specledger.models import huggingface
from specledger.pair.files import prompts_of
from specledger.pair.opened import Pair, TransformersEngine
from specledger.pair.texts import PLAIN, Method, decode
from specledger.sampling.distributions import GREEDY
from specledger.sampling.uniforms import stream
from specledger.statistics.paired import paired_log_interval

PAIRS = (("our lookup", "our plain"), ("their lookup", "their plain"), ("our lookup", "their lookup"))
PAIRS += (("our plain", "their plain"),)


def ways(pair: Pair, gamma: int, count: int) -> dict:
    """What is timed, by name: a function of a prompt that returns its tokens."""

    def ours(method: Method):
        return lambda prompt: decode(pair, method, prompt, count=count, sampling=GREEDY, key=("peers",)).tokens

    def theirs(**more):
        ends = {"max_new_tokens": count, "min_new_tokens": count, "do_sample": False, "eos_token_id": None}

        def generate(prompt: list[int]) -> list[int]:
            ids = torch.tensor([prompt])
            asked = {"attention_mask": torch.ones_like(ids), "pad_token_id": 0, **ends, **more}
            return pair.target.network.generate(ids, **asked)[0, len(prompt) :].tolist()

        return generate

    return {
        "our plain": ours(Method(drafter=PLAIN, gamma=0)),
        "our lookup": ours(Method(drafter="lookup", gamma=gamma)),
        "their plain": theirs(),
        "their lookup": theirs(prompt_lookup_num_tokens=gamma, max_matching_ngram_size=3),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--target", type=Path, required=True)
    parser.add_argument("--prompts", type=Path, default=Path("config/pair_prompts.jsonl"))
    parser.add_argument("--tasks", nargs="*", default=["copying"])
    parser.add_argument("--tokens", type=int, default=96)
    parser.add_argument("--gamma", type=int, default=8)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--dtype", default="bfloat16")
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--plain-text", dest="chat", action="store_false", help="prompts without a chat template")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    huggingface.quiet()
    target = huggingface.load(options.target, dtype=options.dtype, device=torch.device("cpu"))
    tokenizer = huggingface.tokenizer_of(options.target)
    prompts = [prompt for prompt in prompts_of(options.prompts) if prompt.task in options.tasks]
    tokens = huggingface.tokens_of([prompt.text for prompt in prompts], tokenizer, chat=options.chat)
    V = target.config.vocabulary
    lookup = Drafter(name="lookup", proposer=LookupProposer, parts=(3, 1), vocabulary=V, branches=False)
    shared = {"engine": TransformersEngine(), "decode": tokenizer.decode}
    pair = Pair(target=target, drafters={"lookup": lookup}, prompts=prompts, tokens=tokens, **shared)
    timed = ways(pair, options.gamma, options.tokens)
    with torch.inference_mode():
        for way in timed.values():
            way(tokens[0])
        seconds = {name: [] for name in timed}
        for repeat in range(options.repeats):
            for number, prompt in enumerate(tokens):
                for place in stream("pair-peers", repeat, number).permutation(len(timed)):
                    name = list(timed)[place]
                    begun = time.perf_counter()
                    timed[name](prompt)
                    seconds[name].append(time.perf_counter() - begun)
                last = ", ".join(f"{name} {found[-1]:.2f} s" for name, found in seconds.items())
                print(f"block {repeat * len(tokens) + number + 1}: {last}", flush=True)
    for one, other in PAIRS:
        found = paired_log_interval([np.log(np.array(seconds[other]) / np.array(seconds[one]))])
        ends = "" if found.lo is None else f", 95% interval {found.lo:.2f} to {found.hi:.2f}"
        print(f"{one} over {other}: {found.mean:.2f} times as fast{ends} ({len(seconds[one])} blocks)")


if __name__ == "__main__":
    main()
