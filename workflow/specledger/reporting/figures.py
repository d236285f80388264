"""The figures of a study, drawn from its result files: theory is a line, a measurement a marker with its interval."""

from pathlib import Path

import matplotlib
from matplotlib.figure import Figure

from specledger.reporting import drawing_ledger, drawing_rates, drawing_time, drawing_trees, fonts
from specledger.reporting.drawing_models import draw_learning_curves, draw_seeds
from specledger.reporting.drawing_proof import draw_p_values
from specledger.reporting.drawing_rule import draw_acceptance_rule
from specledger.reporting.extras import extra
from specledger.reporting.study import first_seed, read_positions
from specledger.reporting.style import RC, save, with_font
from specledger.reporting.tables import read_object, read_table, read_tables
from specledger.reporting.wording import FIGURE_TEXTS, read_wording

MODELS = ("plain", "mtp", "draft")
HISTORY = "step validation_loss"


def _histories(results: Path, seeds: tuple[int, ...]) -> dict[str, dict[int, tuple]]:
    """Rows of history.csv by model and seed, for exactly the seeds of the tables."""
    return {
        model: {
            seed: read_table(results / "models" / model / str(seed) / "history.csv", HISTORY).rows for seed in seeds
        }
        for model in MODELS
    }


def draw_all(results: Path, figures: Path, language: str = "en") -> str:
    """Draw every figure of results/<study> into `figures`; UserError names the first result file that is missing.

    Returns the language of the figures: English where the machine has no font for `language`.
    """
    results, figures = Path(results), Path(figures)
    tables = read_tables(results)
    summary = read_object(results / "tables" / "summary.json")
    seeds = tables["seeds"].values("seed")
    positions = read_positions(results, first_seed(tables))
    histories = _histories(results, seeds)
    font = fonts.for_figures(language)
    language = language if font or language in fonts.NEEDS_NONE else "en"
    words = read_wording(language, {}, FIGURE_TEXTS)
    with matplotlib.rc_context(RC | with_font(font)):
        drawn: dict[str, Figure] = {
            "acceptance_rule": draw_acceptance_rule(positions, words),
            "p_values": draw_p_values(tables["p_values"], words),
            "acceptance_by_position": drawing_rates.draw_acceptance_by_position(
                tables["rates"], tables["independence"], words
            ),
            "gap": drawing_rates.draw_gap(tables["gap"], words),
            "tokens_per_round": drawing_ledger.draw_tokens_per_round(tables["ledger"], words),
            "wall_clock": drawing_ledger.draw_wall_clock(tables["ledger"], words),
            "time_parts": drawing_ledger.draw_time_parts(tables["time"], words),
            "theory": drawing_time.draw_theory(tables["cost_model"], words),
            "waterfall": drawing_time.draw_waterfall(tables["waterfall"], words),
            "trees": drawing_trees.draw_yield(tables["ledger"], words),
            "trees_speed": drawing_trees.draw_speed(tables["ledger"], words),
            "ranks": drawing_trees.draw_ranks(tables["ranks"], words),
            "learning_curves": draw_learning_curves(histories, words),
            "seeds": draw_seeds(tables["seeds"], summary["paired_difference"], words),
        }
        peers = extra(results, "peers")
        if peers is not None:
            drawn["peers"] = drawing_time.draw_peers(peers, words)
        for name, figure in drawn.items():
            save(figure, figures / f"{name}.svg", language)
    return language
