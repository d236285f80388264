"""Two studies side by side: every figure of either, what is not compared and why, and the weights by their sums."""

from collections import Counter

from specledger.compare.figures import Figure, figures
from specledger.compare.judging import AGREES, APART, DIFFERS, UNDECIDED, Pair, Rules, judge
from specledger.compare.side import Made, Side, changed, other_text

COLUMNS = (
    "topic quantity engine name gamma setting yours yours_lo yours_hi yours_n reference reference_lo reference_hi "
    "reference_n difference difference_lo difference_hi margin p_value p_holm verdict why"
).split()
WEIGHTS = ("model.safetensors", "heads.safetensors")


def pairs_of(yours: Side, reference: Side, *, despite_settings: bool) -> list[Pair]:
    """Every figure of either side; those that are not compared say why."""
    ours, theirs = figures(yours), figures(reference)
    text, (blocked, _) = other_text(yours, reference), changed(yours, reference)
    elsewhere = yours.machines() != reference.machines() or not yours.machines()
    found = []
    for key in dict.fromkeys([*theirs, *ours]):
        pair = Pair(yours=ours.get(key), reference=theirs.get(key))
        settings = [] if despite_settings else [blocked[one] for one in pair.figure.needs if one in blocked]
        if text:
            pair.why = text
        elif pair.yours is None or pair.reference is None:
            pair.why = f"only in {'the reference' if pair.yours is None else 'yours'}"
        elif settings:
            pair.why = f"other settings: {settings[0]}"
        elif pair.figure.kind == "ratio" and elsewhere:
            pair.why = "another machine, whose ratios are its own"
        found.append(pair)
    return found


def _other_making(yours: Made, reference: Made) -> str | None:
    """In what two trainings were made differently, so that their bits may differ."""
    for name in ("device", "threads", "torch", "settings_hash", "code", "inputs"):
        ours, theirs = getattr(yours, name), getattr(reference, name)
        if ours != theirs:
            if name in ("device", "threads", "torch"):
                return f"{name} is {ours}, in the reference {theirs}"
            return {"settings_hash": "other settings", "code": "other code", "inputs": "made from other files"}[name]
    return None


def weights(yours: Side, reference: Side) -> list[Pair]:
    """Of each model and head of both: are the weights of a seed equal to the bit, where they should be?"""
    found = []
    for name in sorted(yours.made.keys() & reference.made.keys()):
        seeds = [seed for seed in reference.made[name] if seed in yours.made[name]]
        sums = {seed: [side.made[name][seed] for side in (yours, reference)] for seed in seeds}
        sums = {seed: pair for seed, pair in sums.items() if any(file in pair[1].files for file in WEIGHTS)}
        if not sums:
            continue
        others = {seed: why for seed, pair in sums.items() if (why := _other_making(*pair))}
        alike = [seed for seed in sums if seed not in others]
        equal = sum(
            all(sums[seed][0].files.get(file) == sums[seed][1].files.get(file) for file in WEIGHTS) for seed in alike
        )
        cells = {"topic": "weights", "quantity": "seeds equal to the bit", "name": name, "kind": "bits"}
        pair = Pair(yours=Figure(**cells, value=equal, n=len(sums)), reference=Figure(**cells, value=len(alike)))
        if not alike:
            pair.why = f"made differently: {next(iter(others.values()))}"
        elif equal == len(alike):
            pair.say(AGREES, f"equal for each of {len(alike)} seed(s) made alike")
        else:
            pair.say(DIFFERS, f"equal for {equal} of {len(alike)} seed(s) made alike")
        found.append(pair)
    return found


def compared(yours: Side, reference: Side, rules: Rules, *, despite_settings: bool = False) -> list[Pair]:
    """All figures of two studies with their verdicts."""
    pairs = pairs_of(yours, reference, despite_settings=despite_settings)
    judge(pairs, rules)
    return pairs + ([] if other_text(yours, reference) else weights(yours, reference))


def whole(pairs: list[Pair]) -> str:
    """The verdict on the comparison: differs where anything does, agrees where all that is compared does."""
    verdicts = {pair.verdict for pair in pairs}
    if DIFFERS in verdicts:
        return DIFFERS
    if verdicts <= {APART}:
        return APART
    return UNDECIDED if UNDECIDED in verdicts else AGREES


def counts(pairs: list[Pair]) -> dict[str, Counter]:
    """How many figures of each topic have which verdict."""
    found: dict[str, Counter] = {}
    for pair in pairs:
        found.setdefault(pair.figure.topic, Counter())[pair.verdict] += 1
    return found


def row(pair: Pair) -> dict:
    """A pair as a row of compare.csv."""
    figure, cells = pair.figure, {}
    for side in ("yours", "reference"):
        one = getattr(pair, side)
        cells |= {side: one and one.value, f"{side}_lo": one and one.lo, f"{side}_hi": one and one.hi}
        cells[f"{side}_n"] = one and one.n
    return {
        **{name: getattr(figure, name) for name in COLUMNS[:6]},
        **cells,
        "difference": pair.difference,
        "difference_lo": pair.lo,
        "difference_hi": pair.hi,
        "margin": pair.margin,
        "p_value": pair.p_value,
        "p_holm": pair.p_holm,
        "verdict": pair.verdict,
        "why": pair.why,
    }
