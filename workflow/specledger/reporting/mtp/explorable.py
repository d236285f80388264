"""Multi-token prediction: the module part by part, a text it drafted, and it beside the draft model."""

import math
from collections.abc import Mapping

from specledger.foundation.errors import UserError
from specledger.reporting import explorables
from specledger.reporting.document import Explorable
from specledger.reporting.formats import number, percent, whole, written
from specledger.reporting.study import Study
from specledger.reporting.views_bounds import ends_of
from specledger.reporting.wording import Wording

# The parts of the diagram, by how the names of their tensors begin; of what is shared, whose it is does not matter.
MODULE = {
    "hidden_norm": ("mtp.hidden_norm.",),
    "embedding_norm": ("mtp.embedding_norm.",),
    "projection": ("mtp.projection.",),
    "block_norms": ("mtp.block.input_layernorm.", "mtp.block.post_attention_layernorm."),
    "attention": ("mtp.block.self_attn.",),
    "mlp": ("mtp.block.mlp.",),
    "norm": ("mtp.norm.",),
}
SHARED = {"trunk": ("model.layers.", "model.norm."), "embedding": ("model.embed_tokens.",), "head": ("lm_head.",)}
SIDES = ("mtp", "draft")
METRICS = ("alpha", "tokens_per_round", "c", "theorem38", "speedup")
SAMPLE_LENGTH = 240


def parts_of(shapes: Mapping[str, tuple[int, ...]]) -> dict[str, int]:
    """Parameters of each part; UserError where a tensor belongs to none, since the sum would then be wrong."""
    groups = {**MODULE, **SHARED}
    counts = dict.fromkeys(groups, 0)
    for name, shape in shapes.items():
        part = next((part for part, starts in groups.items() if name.startswith(starts)), None)
        if part is None:
            raise UserError(f"heads.safetensors of the model mtp: tensor {name} is not one that the report knows")
        counts[part] += math.prod(shape)
    return counts


def _versus(study: Study) -> list[dict]:
    """Both drafters at γ = 1, by engine; an engine needs both."""
    rows = {(row["engine"], row["drafter"]): row for row in study.tables["ledger"].where(gamma=1)}
    found = []
    for engine in dict.fromkeys(engine for engine, _ in rows):
        sides = [rows.get((engine, side)) for side in SIDES]
        if all(sides):
            cells = [{metric: _measured(side, metric) for metric in METRICS} for side in sides]
            found.append({"engine": engine, "sides": dict(zip(SIDES, cells, strict=True))})
    return found


def _measured(row: Mapping, metric: str) -> list:
    """[value, lower end, upper end, mark of a cut]."""
    lo, hi, mark = ends_of(row, metric)
    return [*map(explorables.rounded, (row.get(metric), lo, hi)), mark]


def _is_cut(versus: list[dict]) -> bool:
    return any(cells[-1] for one in versus for side in one["sides"].values() for cells in side.values())


def module(study: Study, words: Wording) -> Explorable:
    """The projection stands open: it is what joins the two inputs."""
    counts = parts_of(study.played.shapes)
    own, shared = sum(counts[part] for part in MODULE), sum(counts[part] for part in SHARED)
    versus = _versus(study)
    engines = [one["engine"] for one in versus]
    best = study.summary["best"] or {}
    chosen = engines.index(best.get("engine")) if best.get("engine") in engines else 0
    return explorables.block(
        "module",
        words,
        {"parts": counts, "open": "projection", "versus": versus, "engine": chosen, "sides": list(SIDES)}
        | {"bounded": words.say("page.bounded") if _is_cut(versus) else ""}
        | {"metrics": list(METRICS), "context": study.played.rounds.get("gamma")},
        names={"engine": engines, "drafter": SIDES},
        outcomes={"own": whole(own), "target": whole(shared), "share": percent(own / shared if shared else None, 1)},
    )


def sample(study: Study, words: Wording) -> Explorable:
    """The opening of a self-drafted text, forward by forward; it stands at the last one."""
    record = study.sample
    tokens = record["tokens"][:SAMPLE_LENGTH]
    rounds: dict[int, list[dict]] = {}
    for token in tokens:
        rounds.setdefault(token["round"], []).append({"text": written(token["text"]), "kind": token["kind"]})
    steps = list(rounds.values())
    kinds = [token["kind"] for token in tokens]
    judged = kinds.count("accepted") + kinds.count("resampled")
    return explorables.block(
        "sample",
        words,
        {"prompt": written(record["prompt"]), "steps": steps},
        names={"kind": ("accepted", "sampled", "resampled"), "engine": (record["engine"],)},
        outcomes={
            "forwards": whole(len(steps)),
            "characters": whole(len(tokens)),
            "yielded": number(len(tokens) / len(steps) if steps else None, 2),
            "accepted": percent(kinds.count("accepted") / judged if judged else None, 1),
        },
    )
