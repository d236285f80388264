"""What says that nothing was changed: the oracle, many contexts, whole texts, and the broken rules that were caught."""

import numpy as np
import pandas as pd
from scipy import stats

from specledger.analysis.frames import is_true, ordered
from specledger.analysis.summary import REJECTION_LEVEL, rejected, tested
from specledger.sampling.distributions import SETTINGS
from specledger.statistics.families import benjamini_hochberg, fisher, holm, summed_chisquare, uniformity
from specledger.statistics.rates import clopper_pearson

BINS = 20
RIGHT_RULE = "correct"

ORACLE_TABLE = "drafter gamma tree vocabulary model blocks max_abs_deviation seeds".split()
CONTEXT_TABLE = (
    "drafter contexts tested draws seeds fisher_p sum_chi2 sum_df sum_p holm_rejected bh_rejected ks_p "
    "below_05 below_05_lo below_05_hi plausible_share"
).split()
P_VALUE_TABLE = "drafter bin_lo bin_hi count expected".split()
SEQUENCE_KEYS = ["engine", "context_rule", "drafter", "gamma", *SETTINGS, "test"]
SEQUENCE_TABLE = [*SEQUENCE_KEYS, *"texts tokens seeds statistic df p_value least_p holm_p".split()]
CONTROL_KEYS = "rule source kind drafter gamma temperature".split()
CONTROL_TABLE = [*CONTROL_KEYS, *"n caught_by p_value power expected_caught caught tests".split()]
FALSE_ALARM_TABLE = "test repeats n level rejected rate lo hi inside".split()


def oracle_table(oracle: pd.DataFrame) -> pd.DataFrame:
    """The largest deviation of an enumerated block from the target, over seeds; blocks are cells a seed."""
    keys = ["drafter", "gamma", "tree", "vocabulary", "model"]  # a chain's tree is an empty cell
    groups = oracle.assign(tree=oracle["tree"].astype(object).fillna("")).groupby(keys, sort=True)
    table = groups.agg(
        blocks=("blocks", "max"), max_abs_deviation=("max_abs_deviation", "max"), seeds=("seed", "nunique")
    )
    return ordered(table.reset_index(), ["vocabulary", "drafter", "gamma", "tree", "model"])[ORACLE_TABLE]


def plausible(contexts: pd.DataFrame, distance: float) -> pd.Series:
    """Whether `distance` lies in the central 99% of what `null_draws` draws of the right rule give, by context."""
    return (contexts["null_tv_lo"] <= distance) & (distance <= contexts["null_tv_hi"])


def _families(contexts: pd.DataFrame) -> list[tuple[str, pd.DataFrame]]:
    """The contexts of each drafter, then those of all."""
    known = ordered(contexts[["drafter"]].drop_duplicates(), ["drafter"])["drafter"]
    return [*((name, contexts[contexts["drafter"] == name]) for name in known), ("all", contexts)]


def _context_row(drafter: str, rows: pd.DataFrame, distance: float | None) -> dict:
    judged = rows.dropna(subset=["p_value"])  # a context with one cell has nothing to test
    row = {"drafter": drafter, "contexts": len(rows), "draws": rows["draws"].max(), "seeds": rows["seed"].nunique()}
    share = np.nan if distance is None else plausible(rows, distance).mean()
    row |= {"plausible_share": share, "tested": len(judged)}
    if judged.empty:
        return row
    p_values = judged["p_value"].to_numpy()
    chi2, df, p_value = summed_chisquare(judged["chi2"].to_numpy(), judged["df"].to_numpy())
    below = int((p_values < 0.05).sum())
    share = clopper_pearson(below, len(p_values))
    return row | {
        "fisher_p": fisher(p_values), "sum_chi2": chi2, "sum_df": df, "sum_p": p_value,
        "holm_rejected": rejected(judged["p_value"]),
        "bh_rejected": int((benjamini_hochberg(p_values) < REJECTION_LEVEL).sum()),
        "ks_p": uniformity(p_values),
        "below_05": below / len(p_values), "below_05_lo": share.lo, "below_05_hi": share.hi,
    }  # fmt: skip


def contexts_table(contexts: pd.DataFrame, distance: float | None) -> pd.DataFrame:
    """One row a drafter and one for all: combined p-values, which see a small bias that is everywhere,
    and corrected ones, which see a large bias at a few contexts.

    distance: the published TV that plausible_share is about; None where no claim names one.
    """
    return pd.DataFrame([_context_row(*family, distance) for family in _families(contexts)], columns=CONTEXT_TABLE)


def p_values_table(contexts: pd.DataFrame) -> pd.DataFrame:
    """The histogram of the contexts' p-values, which is flat where the rule is right."""
    edges = np.linspace(0.0, 1.0, BINS + 1)
    rows = []
    for drafter, family in _families(contexts):
        counts, _ = np.histogram(family["p_value"].dropna(), bins=edges)
        cells = {"drafter": drafter, "bin_lo": edges[:-1], "bin_hi": edges[1:], "count": counts}
        rows.append(pd.DataFrame(cells | {"expected": counts.sum() / BINS}))
    return pd.concat(rows, ignore_index=True)[P_VALUE_TABLE]


def _over_seeds(test: str, rows: pd.DataFrame) -> dict:
    """One test over all seeds: chi-squares and their df add up, z-scores average, violations are counted.

    A seed without a z (acceptance is certain wherever it was examined) adds nothing to the z's or to their number.
    """
    if test == "accounting":
        violations = rows["statistic"].sum()
        return {"statistic": violations, "df": np.nan, "p_value": float(violations == 0)}
    if test == "acceptance":
        z = rows["statistic"].dropna()
        statistic = z.sum() / np.sqrt(len(z)) if len(z) else np.nan
        # Where acceptance is certain a single rejection has settled the matter.
        p_value = 0.0 if (rows["p_value"] == 0).any() else 2 * stats.norm.sf(abs(statistic))
        return {"statistic": statistic, "df": np.nan, "p_value": p_value}
    chi2, df, p_value = summed_chisquare(rows["statistic"].to_numpy(), rows["df"].to_numpy())
    return {"statistic": chi2, "df": df, "p_value": p_value}


def sequences_table(sequences: pd.DataFrame) -> pd.DataFrame:
    """One row per complete decoder and test over all seeds, with the family's p-value by Holm."""
    rows = []
    for key, group in sequences.groupby(SEQUENCE_KEYS, sort=True, dropna=False):
        row = dict(zip(SEQUENCE_KEYS, key, strict=True))
        sizes = {"texts": group["texts"].sum(), "tokens": group["tokens"].max(), "seeds": group["seed"].nunique()}
        rows.append(row | sizes | _over_seeds(row["test"], group) | {"least_p": group["p_value"].min()})
    table = pd.DataFrame(rows)
    table["holm_p"] = holm(table["p_value"])
    by = [*SETTINGS, "engine", "drafter", "gamma", "test"]
    return ordered(table, by)[SEQUENCE_TABLE]


def _caught(controls: pd.DataFrame) -> pd.Series:
    """By row and test, whether it counts against the rule.

    Of a rule that some test should see, only such a test does; of the right rule, one that is still below
    the level after Holm over all tests of the right rule, since one in a thousand falls below it by chance.
    """
    right = controls["rule"] == RIGHT_RULE
    should = controls.groupby(CONTROL_KEYS, dropna=False)["expected"].transform("any")
    found = controls["caught"] & (controls["expected"] | ~should)
    found[right] = holm(controls.loc[right, "p_value"]) < REJECTION_LEVEL
    return found


def controls_table(controls: pd.DataFrame) -> pd.DataFrame:
    """One row a rule in the order in which they were run, the right one first: which tests caught it."""
    controls = controls.assign(expected=is_true(controls["expected"]), caught=is_true(controls["caught"]))
    controls = controls.assign(counts=_caught(controls))
    rows = []
    for key, group in controls.groupby(CONTROL_KEYS, sort=False, dropna=False):
        row = dict(zip(CONTROL_KEYS, key, strict=True)) | {"n": group["n"].max(), "tests": len(group)}
        row |= {"p_value": group["p_value"].min(), "power": group["power"].max()}
        row["caught_by"] = ", ".join(group.loc[group["caught"], "test"]) or None
        rows.append(row | {"expected_caught": group["expected"].any(), "caught": group["counts"].any()})
    rows.sort(key=lambda row: row["rule"] != RIGHT_RULE)
    return pd.DataFrame(rows, columns=CONTROL_TABLE)


def false_alarms_table(false_alarms: pd.DataFrame) -> pd.DataFrame:
    """How often the right rule is rejected, with its interval and whether the level lies inside."""
    inside = false_alarms["level"].between(false_alarms["lo"], false_alarms["hi"])
    return false_alarms.assign(inside=inside)[FALSE_ALARM_TABLE].reset_index(drop=True)


def evidence_summary(
    *,
    oracle: pd.DataFrame,
    contexts: pd.DataFrame,
    sequences: pd.DataFrame,
    controls: pd.DataFrame,
    false_alarms: pd.DataFrame,
) -> dict:
    """The counts that the report's text quotes, from these tables of the study."""
    family = contexts[contexts["drafter"] == "all"].iloc[0]
    broken = controls[controls["rule"] != RIGHT_RULE]
    drawn = sequences[sequences["test"] != "accounting"]  # counters alone say nothing of the distribution
    expected = broken[broken["expected_caught"].astype(bool)]
    return {
        "oracle_max": float(oracle["max_abs_deviation"].max()),
        "oracle_blocks": int((oracle["blocks"] * oracle["seeds"]).sum()),
        "contexts": int(family["contexts"]),
        "contexts_tested": int(family["tested"]),
        "contexts_holm_rejected": int(family["holm_rejected"]) if family["tested"] else None,
        "sequences_rows": len(sequences),
        "sequences_tested": tested(sequences["p_value"]) if tested(drawn["p_value"]) else 0,
        "sequences_rejected": rejected(sequences["p_value"]),
        "controls_total": len(broken),
        "controls_expected": len(expected),
        "controls_caught_of_expected": int(expected["caught"].sum()),
        "controls_unseen": list(broken.loc[~broken["expected_caught"].astype(bool), "rule"]),
        "false_alarms_inside": bool(false_alarms["inside"].all()),
    }
