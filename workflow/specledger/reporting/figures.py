"""The figures of a study, drawn from its result files: theory is a line, a measurement a marker with its interval."""

from pathlib import Path

import matplotlib
from matplotlib.figure import Figure

from specledger.reporting import fonts
from specledger.reporting.extras import extra
from specledger.reporting.gamma import figure as gamma_figure
from specledger.reporting.ledger import figure as ledger_figure
from specledger.reporting.mtp.figure import draw_learning_curves, draw_seeds
from specledger.reporting.proof.figure import draw_p_values
from specledger.reporting.rule.figure import draw_acceptance_rule
from specledger.reporting.study import first_seed, read_positions
from specledger.reporting.style import RC, save, with_font
from specledger.reporting.tables import read_object, read_table, read_tables
from specledger.reporting.time import figure as time_figure
from specledger.reporting.trees import figure as trees_figure
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
            "acceptance_by_position": gamma_figure.draw_acceptance_by_position(
                tables["rates"], tables["independence"], words
            ),
            "gap": gamma_figure.draw_gap(tables["gap"], words),
            "tokens_per_round": ledger_figure.draw_tokens_per_round(tables["ledger"], words),
            "wall_clock": ledger_figure.draw_wall_clock(tables["ledger"], words),
            "time_parts": ledger_figure.draw_time_parts(tables["time"], words),
            "theory": time_figure.draw_theory(tables["cost_model"], words),
            "waterfall": time_figure.draw_waterfall(tables["waterfall"], words),
            "trees": trees_figure.draw_yield(tables["ledger"], words),
            "trees_speed": trees_figure.draw_speed(tables["ledger"], words),
            "ranks": trees_figure.draw_ranks(tables["ranks"], words),
            "learning_curves": draw_learning_curves(histories, words),
            "seeds": draw_seeds(tables["seeds"], summary["paired_difference"], words),
        }
        peers = extra(results, "peers")
        if peers is not None:
            drawn["peers"] = time_figure.draw_peers(peers, words)
        for name, figure in drawn.items():
            save(figure, figures / f"{name}.svg", language)
    return language
