"""Tables of the systems, of trees, of siblings, and of what was trained on top of the target."""

from collections.abc import Mapping

from specledger.reporting import formats
from specledger.reporting.document import Cell, Column, View, cell
from specledger.reporting.formats import MISSING, known, number, percent, times
from specledger.reporting.study import Study
from specledger.reporting.tables import Row
from specledger.reporting.views import columns, count, grouped, named, num, view, with_interval, yes_no
from specledger.reporting.views_bounds import spread_of
from specledger.reporting.wording import Wording

TREE_MARKS = {"reached": "reproduced", "inconclusive": "inconclusive"}  # the looks of the other two are a refusal's
MOST_RANK = 3  # that the table of siblings shows; the CSV has them all


def told(words: Wording, row: Row, part: str) -> str:
    """A system's title, reading or setting; one that has no translation stays as the claims file says it."""
    return words.raw("claims.systems").get(row["system"], {}).get(part, row[part] or "")


def _band(words: Wording, row: Row) -> tuple[Cell, ...]:
    """What the paper says, over the rows of ours that stand for it."""
    parts = {part: told(words, row, part) for part in ("published", "source", "setting", "comparable")}
    lines = [words.say(f"systems.{key}", **parts) for key in ("reports", "in_setting", "compare")]
    return (cell(told(words, row, "title"), note="\n".join(lines)),)


def _lossless(words: Wording, row: Row) -> Cell:
    if row["lossless"] or not known(row["tv"]):
        return yes_no(words, row["lossless"])
    return Cell(
        text=words.say("systems.tv", tv=formats.small(row["tv"])), note=spread_of(row, "tv"), sort=row["tv"], mark="no"
    )


def _positions(row: Row) -> Cell:
    """α by position to two decimals, as far as the drafter goes."""
    rates = [number(float(rate), 2) for rate in str(row["alpha_by_position"] or "").split()]
    return cell(" ".join(rates))


def _ours(study: Study, words: Wording, row: Row) -> tuple[Cell, ...]:
    target = next((one["parameters"] for one in study.tables["models"].rows if one["model"] == "mtp"), None)
    share = percent(row["parameters"] / target) if known(row["parameters"]) and known(target) else ""
    parameters = words.say("systems.of_target", share=share) if share and row["parameters"] else ""
    drafter = named(words, "drafter", row["drafter"])
    return (
        Cell(text=drafter.text, mark=drafter.mark, note=words.size(row["drafter"], row["gamma"])),
        with_interval(row, "tokens_per_round", 2),
        with_interval(row, "speedup", 2, times),
        _positions(row),
        _lossless(words, row),
        num(row["parameters"], 0, note=parameters),
        num(row["train_share"], 0, percent),
    )


def systems(study: Study, words: Wording) -> View:
    """System by system: the paper's reading in a band, and below it each drafter of ours, chains and trees apart."""
    rows: list[tuple[Cell, ...]] = []
    for found in grouped(study.tables["systems"].rows, "system").values():
        rows.append(_band(words, found[0]))
        rows += [_ours(study, words, row) for row in found]
    heads = columns(words, "ours tokens_per_round speedup by_position keeps added trained")
    return view(words, "systems", heads, rows, source="systems", cards=True)


def _note(words: Wording, size: str, tokens: float | None) -> str:
    """What a chain or a tree consists of, and what its round yields."""
    return f"{size}\n{words.say('systems.yields', tokens=number(tokens, 2))}"


def trees(study: Study, words: Wording) -> View:
    """The best chain against the best tree, and what v(N) leaves to be won."""
    rows = []
    for row in study.tables["trees"].rows:
        name = words.name("tree_verdict", row["verdict"])
        sizes = {"nodes": formats.whole(row["nodes"]), "depth": formats.whole(row["depth"])}
        chain = _note(words, words.size(row["drafter"], row["chain_gamma"]), row["chain_tokens"])
        shape = "tree_line" if 1 < row["nodes"] == row["depth"] else "tree"
        tree = _note(words, words.say(f"systems.{shape}", **sizes), row["tree_tokens"])
        rows.append(
            (
                named(words, "drafter", row["drafter"]),
                num(row["chain_speedup"], 2, times, note=chain),
                num(row["tree_speedup"], 2, times, note=tree),
                with_interval(row, "ratio", 2, times),
                num(row["v_chain"], 2),
                num(row["v_tree"], 2),
                with_interval(row, "most_ratio", 2, times),
                count(row["nodes_predicted"]),
                Cell(text=name, sort=name, mark=TREE_MARKS.get(row["verdict"], "not-reproduced")),
            )
        )
    heads = columns(words, "drafter best_chain best_tree tree_ratio v_chain v_tree most predicted tree_verdict")
    return view(words, "trees", heads, rows, source="trees", cards=True)


def ranks(study: Study, words: Wording) -> View:
    """Acceptance of siblings by depth, the first few ranks beside each other."""
    rows = []
    for (drafter, depth), found in grouped(study.tables["ranks"].rows, "drafter", "depth").items():
        by_rank: Mapping[int, Row] = {row["rank"]: row for row in found}
        shown = [by_rank.get(rank) for rank in range(MOST_RANK)]
        cells = [with_interval(row, "acceptance", 2) if row else cell(MISSING) for row in shown]
        rows.append((named(words, "drafter", drafter), count(depth), *cells))
    heads = columns(words, "drafter depth first_sibling second_sibling third_sibling")
    return view(words, "ranks", heads, rows, source="ranks")


def heads(study: Study, words: Wording) -> View | None:
    """What was trained on top of the target: its losses ahead, and its cost; None where nothing was."""
    table = study.tables["heads"]
    if not table.rows:
        return None
    losses = sorted(table.values("loss"))
    rows = []
    for found in grouped(table.rows, "head").values():
        row, by_loss = found[0], {one["loss"]: one for one in found}
        cells = [with_interval(by_loss[loss], "value", 3) if loss in by_loss else cell(MISSING) for loss in losses]
        share = with_interval(row, "train_share", 2)
        about = (named(words, "drafter", row["head"]), cell(words.name("trunk", row["trunk"])))
        rows.append((*about, *(count(row[key]) for key in ("head_parameters", "steps", "n")), share, *cells))
    ahead = tuple(
        Column(label=words.say("systems.ahead", k=loss.removeprefix("ahead")), numeric=True) for loss in losses
    )
    return view(words, "heads", columns(words, "head_name trunk added steps n trained") + ahead, rows, source="heads")
