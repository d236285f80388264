"""Power of the audit's two-sample tests on the stand-in's six faults, beside the MMD of Model Equality Testing.

    python benchmarks/audit_power.py [--audits 100] [--cases 0 1]

Prints the table of docs/audit.md. Each number is the share of audits in which the test rejects at level .01,
with equally many plain and speculative texts. A fault that shows in a share of the texts only is a fault of
some requests. "Default" is what `specledger audit` does: the four chi-squares at a quarter of the level each.
Each audit has a prompt of its own.
"""

import argparse

import numpy as np
from specledger.audit.evidence import Black
from specledger.audit.settings import SamplingSettings
from specledger.audit.standin import FAULTS, TinyDecoder, TinyModel
from specledger.statistics.two_samples import hamming_mmd

LEVEL = 0.01
CASES = [(16, 400, 1.0), (16, 3000, 0.25), (80, 1000, 1.0), (80, 3000, 0.25)]  # vocabulary, texts an arm, share


def rejections(model: TinyModel, fault: str | None, n: int, share: float, audits: int) -> dict[str, float]:
    """For each test the share of audits that reject."""
    plain, wrong = TinyDecoder(model, gamma=0), TinyDecoder(model, fault=fault, per_request=max(n // 8, 1))
    right, random = TinyDecoder(model), np.random.default_rng(5)
    found = []
    for audit in range(audits):
        prompt = np.random.default_rng(audit).integers(len(model.target_VVV), size=2).tolist()
        one, two = (
            system.sample(prompt, n, SamplingSettings(tokens=6, seed=2 * audit + i)).ids
            for i, system in enumerate((plain, right))
        )
        bad = max(round(share * n), 1)
        two[:bad] = wrong.sample(prompt, bad, SamplingSettings(tokens=6, seed=10**6 + audit)).ids
        tests = {test.test: test.p_value for test in Black().tests([one, two])}
        mmd = hamming_mmd(one, two, random, resamples=399).p_value
        least = np.nanmin([*tests.values(), 1.0])
        found.append({**tests, "default": least * 4, "MMD": mmd})
    return {test: float(np.mean([one.get(test, 1.0) < LEVEL for one in found])) for test in found[0]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--audits", type=int, default=100)
    parser.add_argument("--cases", type=int, nargs="+", default=range(len(CASES)), help="of CASES, by number from 0")
    options = parser.parse_args()
    for vocabulary, n, share in (CASES[case] for case in options.cases):
        model = TinyModel.made(0, vocabulary=vocabulary)
        print(
            f"\nvocabulary {vocabulary}, {n} texts an arm, fault in {share:.0%} of the texts, {options.audits} audits\n"
        )
        names = None
        for fault in (*FAULTS, None):
            power = rejections(model, fault, n, share, options.audits)
            if names is None:
                names = list(power)
                print(f"| fault | {' | '.join(names)} |\n|{' --- |' * (len(names) + 1)}")
            print(f"| {fault or 'none (right)'} | {' | '.join(f'{power[name]:.2f}' for name in names)} |", flush=True)


if __name__ == "__main__":
    main()
