"""The observations, which lie beside the tables: one file a seed, one row an observation."""

from specledger.foundation.drafters import IN_ORDER
from specledger.tables.columns import Column, Table

ENGINES = ("recompute", "cached", "compiled", "target")
CHOICES = {  # of names that a table holds few of: another one would make a row that nothing is compared with
    "engine": ENGINES,
    "reference": ENGINES,
    "context_rule": ("window", "sliding"),
    "drafter": IN_ORDER,
    "precision": ("float32", "float64"),
}
NO_MORE_THAN = (("accepted", "examined"), ("accepted", "draws"), ("examined", "drafted"), ("accept_len", "examined"))
SAMPLING = "temperature top_k top_p min_p"


def _raw(folder: str, names: str, **options: bool | str) -> Table:
    return Table(title="", columns=(Column(names, ""),), folder=folder, **options)


CHOSEN_ROUNDS = "seed text context_rule drafter gamma round drafted accept_len examined"
RAW = {
    "draws": _raw(
        "acceptance/{seed}",
        "seed drafter position context temperature draws accepted acceptance acceptance_lo acceptance_hi beta "
        "tv_output tv_expected tv_q999 tv_p_value tv_draft chi2 df p_value chi2_p_value detectable_leak detectable_tv "
        "tv_bound resamples",
    ),
    "contexts": _raw(
        "acceptance/{seed}",
        "seed drafter position draws accepted beta tv_output tv_draft chi2 df p_value null_draws null_tv_lo null_tv_hi",
    ),
    "texts": _raw("acceptance/{seed}", "seed text position drafter beta kept"),
    "rounds_apart": _raw("acceptance/{seed}", CHOSEN_ROUNDS, file="rounds", may_be_empty=True),
    "apart": _raw("sweep/{seed}", CHOSEN_ROUNDS, may_be_empty=True),
    "typical": _raw("acceptance/{seed}", "seed drafter gamma position accept_len tv", may_be_empty=True),
    "ranks": _raw("trees/{seed}", "seed drafter depth rank examined acceptance"),
    "shapes": _raw("trees/{seed}", "seed drafter nodes used depth parents expected_tokens"),
    "oracle": _raw("checks/{seed}", "seed drafter gamma tree vocabulary model blocks max_abs_deviation"),
    "prefix": _raw("checks/{seed}", "seed model engine precision fed_short fed_long rows max_abs_difference"),
    "greedy": _raw(
        "checks/{seed}",
        "seed engine context_rule drafter gamma prompt_tokens generated_tokens identical first_divergence top2_margin",
    ),
    "runs": _raw(
        "sweep/{seed}",
        "seed repeat engine context_rule drafter gamma tree_nodes copy clocked temperature rounds target_forwards "
        "draft_forwards tokens drafted examined accepted wall_s draft_s catch_up_s verify_s accept_s sync_s other_s",
    ),
    "forwards": _raw("sweep/{seed}", "seed engine part drafter gamma positions seconds"),
    "engines": _raw("sweep/{seed}", "seed engine available why compile_s"),
    "agreement": _raw(
        "sweep/{seed}",
        "seed repeat engine reference drafter gamma tokens identical first_divergence margin",
        may_be_empty=True,
    ),
    "rounds": _raw("sweep/{seed}", "seed repeat engine drafter gamma round drafted accept_len examined accept_probs"),
    "sequences": _raw(
        "sequences/{seed}",
        f"seed engine context_rule drafter gamma {SAMPLING} texts tokens test statistic df p_value",
    ),
    "controls": _raw(
        "controls/{seed}",
        "seed rule source kind drafter gamma temperature n test statistic df p_value power expected caught",
    ),
    "false_alarms": _raw("controls/{seed}", "seed test repeats n level rejected rate lo hi"),
}
