"""What each stage depends on of the configuration."""

import json

from specledger.foundation.drafters import (
    CHOOSERS,
    JOINT,
    SPEAKING,
    SPECS,
    TYPICAL,
    base_of,
    branched,
    heads_of,
    methods,
    trees_of,
)


def _plain(value):
    """The value with whole floats as ints, so that 1 and 1.0 are the same setting."""
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value


def _set(sampling: dict) -> dict:
    """What is set of a sampling: an option more, at its default in every configuration there is, changes nothing."""
    return {name: value for name, value in sampling.items() if value is not None}


def _bundle_of(config: dict) -> dict:
    """Drafters that are followed along a text, and with their gammas those that decode texts of their own."""
    gammas = methods(config)
    apart = {name: choices for name, choices in gammas.items() if name not in SPEAKING}
    heads = sorted(name for name in apart if name not in CHOOSERS and not branched(name))
    # The rule is drawn at real positions whatever decodes: with the draft model, where no other drafter says its q.
    return {"drafters": sorted(set(gammas) - set(apart)) or ["draft"], "choosers": apart, "heads": heads} | {
        "drafting": config["drafting"]
    }


def _training_of_model(config: dict, model: str) -> dict:
    """What plain, mtp or draft depends on besides the text and the machine."""
    kind = "draft" if model == "draft" else "target"
    sizes = {"model": config["model"][kind], "context": config["model"]["context"]}
    weight = {"mtp_weight": config["training"]["mtp_weight"]} if model == "mtp" else {}
    return {"training": config["training"][kind], **sizes, **weight}


def _training_of_head(config: dict, head: str) -> dict:
    """What a head depends on besides the target; only a joint one on how its trunk learns."""
    training = {**config["training"]["heads"], "steps": config["training"]["heads"]["steps"][head]}
    share = training.pop("trunk_learning_rate_fraction")
    return {"training": training} | ({"trunk_learning_rate_fraction": share} if head in JOINT else {})


MEASURING = ("trees", "checks", "acceptance", "sequences", "controls", "sweep")


def _measured_by(config: dict, stage: str) -> dict:
    """What a stage that plays with the models of a seed depends on."""
    sweep, sampling = config["sweep"], {"sampling": _set(config["sampling"])}
    shared = {"prompt": config["corpus"]["prompt"], "device": config["device"], "threads": config["threads"]}
    drafting, engines = {"drafting": config["drafting"]}, sweep["engines"]
    match stage:
        case "trees":
            slice_ = {**config["trees"], "sizes": trees_of(config), **sampling}
        case "checks":
            slice_ = {**config["checks"], "engines": engines, "gammas": methods(config), **drafting}
        case "acceptance":
            slice_ = {**config["acceptance"], **_bundle_of(config), **sampling}
        case "sequences":
            # In a few tokens a search finds nothing; typical acceptance is lossy by design.
            asked = [name for name in sorted(methods(config)) if not name.endswith(TYPICAL)]
            drafters = [name for name in asked if not SPECS[base_of(name)].searches]
            samplings = {"samplings": [_set(sampling) for sampling in config["sequences"]["samplings"]]}
            slice_ = {
                **config["sequences"],
                **samplings,
                "engines": engines,
                "drafters": drafters or ["draft"],
                **drafting,
            }
        case "controls":
            slice_ = {**config["controls"], "gamma": config["sequences"]["gamma"]}
        case "sweep":
            timed = {key: value for key, value in sweep.items() if key != "trees"}
            slice_ = {**timed, "gammas": methods(config), **drafting, **sampling}
    return slice_ | shared


def stage_settings(config: dict, stage: str, *, model: str | None = None, corpus_identity: str = "") -> str:
    """What `stage` depends on, as canonical JSON: sorted keys, 1 and 1.0 the same.

    Args:
        model: plain, mtp or draft, for the stage `train`; one of `HEADS` for the stage `head`.
        corpus_identity: the text's sha256, which stands for where it comes from.
    """
    machine = {"device": config["device"], "threads": config["threads"]}
    match stage:
        case "corpus":
            slice_ = {"identity": corpus_identity, "validation_fraction": config["corpus"]["validation_fraction"]}
        case "train":
            slice_ = {**_training_of_model(config, model), **machine}
        case "head":
            slice_ = {**_training_of_head(config, model), **machine}
        case "ngram":
            slice_ = config["ngram"]
        case _ if stage in MEASURING:
            slice_ = _measured_by(config, stage)
        case "analysis":
            has = {"heads": heads_of(config), "trees": bool(trees_of(config))}
            slice_ = {"seeds": config["seeds"], "quick": config["quick"], **has, **config["analysis"]}
        case "figures":
            slice_ = {"report": config["report"]}  # all else that is drawn stands in the tables
        case "compare":
            slice_ = config["compare"]
        case "report":
            slice_ = config  # it is printed there
        case _:
            raise ValueError(f"stage must be one of the workflow's, got {stage}")
    return json.dumps(_plain(slice_), sort_keys=True, ensure_ascii=False)
