"""The configuration, checked whole before anything runs."""

import json
import math
import os
from pathlib import Path

import yaml
from jsonschema import Draft202012Validator

from specledger.foundation.drafters import DEPTHS, EAGER, HEADS, SPECS, TREE, branched
from specledger.foundation.errors import UserError

UNQUOTED = "write it without quotes, in a file for --configfile, since --config makes text of it"
SCHEMA = Path(__file__).resolve().parents[2] / "schemas" / "config.schema.yaml"


def schema() -> dict:
    """The schema of a configuration: the file's, with what follows from the drafters that there are."""
    found = yaml.safe_load(SCHEMA.read_text(encoding="utf-8"))

    def fill(part: dict, kinds: dict[str, str], required: list[str]) -> None:
        part |= {
            "required": required,
            "properties": {name: {"$ref": f"#/$defs/{kind}"} for name, kind in kinds.items()},
        }

    sweep, required = found["properties"]["sweep"]["properties"], [name for name, one in SPECS.items() if one.required]
    fill(found["$defs"]["heads"]["properties"]["steps"], dict.fromkeys(HEADS, "steps"), list(HEADS))
    gammas = dict.fromkeys(SPECS, "gammas")
    fill(sweep["gammas"], gammas, required)
    trees = [name for one in SPECS.values() for name in one.titles if branched(name)]
    fill(sweep["trees"], dict.fromkeys((name.removesuffix(TREE) for name in trees), "tree_sizes"), [])
    return found


def _path(parts) -> str:
    """sweep.gammas.draft[0] of ("sweep", "gammas", "draft", 0)."""
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in parts)
    return text.lstrip(".") or "(top)"


def _show(value) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)[:80]


def refuse(key: str, value, allowed: str) -> None:
    raise UserError(f"config {key}: {_show(value)} — {allowed}")


def _allowed(error) -> str:
    """What a value may be, from the part of the schema that it fails."""
    schema, value = error.schema, error.instance
    match error.validator:
        case "enum":
            return "allowed: " + ", ".join(_show(choice).strip('"') for choice in error.validator_value)
        case "type" if error.validator_value == "object":
            return "must hold the keys " + ", ".join(schema["properties"])
        case "type":
            return (
                f"must be {schema.get('description', error.validator_value)}{_yaml_hint(value, error.validator_value)}"
            )
        case "minItems" if not value:
            return "must not be empty"
        case "uniqueItems":
            return "must not hold anything twice"
        case _:
            return f"must be {schema.get('description', error.message)}"


def _yaml_hint(value, wanted: str | list) -> str:
    """How to write what YAML, or the command line, made something else of; empty where neither did."""
    if isinstance(value, str):
        try:
            read = yaml.safe_load(value)
        except yaml.YAMLError:
            return ""
        if not isinstance(read, str | None):
            return f"; it came as text: {UNQUOTED}"
        try:
            float(value)
        except ValueError:
            return ""
        return f"; YAML reads {value} as text, write it with a point, as in 1.0e-5"
    if "string" in wanted and not isinstance(value, dict | list | None):
        what = {bool: "true or false", int: "a number", float: "a number"}.get(type(value), "a date")
        return f"; YAML reads that as {what}, write it in quotes, in a file"
    return ""


class _Strict(yaml.SafeLoader):
    """Refuses a key that stands twice in one mapping, of which YAML would keep the last without a word."""

    def construct_mapping(self, node, deep=False):
        seen = {}
        for key, _ in node.value:
            name = self.construct_object(key, deep=True)
            if key.tag != "tag:yaml.org,2002:merge" and str(name) in seen:
                lines = f"lines {seen[str(name)]} and {key.start_mark.line + 1}"
                raise UserError(
                    f"{self.name}: the key {name} stands there twice, in {lines}; one of them has no effect"
                )
            seen[str(name)] = key.start_mark.line + 1
        return super().construct_mapping(node, deep)


def check_file(path: Path) -> None:
    """UserError where a configuration says a key twice; what else is wrong with a file, Snakemake says."""
    try:
        with Path(path).open(encoding="utf-8") as file:
            yaml.load(file, _Strict)
    except (OSError, UnicodeDecodeError, yaml.YAMLError, TypeError, ValueError) as error:
        if isinstance(error, UserError):
            raise


def _refuse_by_schema(error) -> None:
    where = list(error.absolute_path)
    if error.validator == "additionalProperties":
        known = error.schema["properties"]
        unknown = sorted(set(map(str, error.instance)) - set(known))[0]
        raise UserError(f"config {_path([*where, _show(unknown)[1:-1]])}: unknown key — allowed: {', '.join(known)}")
    if error.validator == "required":
        lacking = next(key for key in error.validator_value if key not in error.instance)
        shown = where[0] if where[:1] in (["audit"], ["pair"]) else "config"
        raise UserError(f"config {_path([*where, lacking])}: missing — config/{shown}.yaml shows every key")
    refuse(_path(where), error.instance, _allowed(error))


def validate(config: dict) -> None:
    """UserError in one line, with key, value and what is allowed, for the first thing that is wrong."""
    _check_finite(config)
    errors = Draft202012Validator(schema()).iter_errors(config)
    errors = sorted(errors, key=lambda e: (list(map(str, e.path)), e.message))
    if errors:
        _refuse_by_schema(errors[0])
    _check_seeds(config)
    _check_models(config["model"])
    _check_training(config["training"])
    _check_engines(config["sweep"])
    _check_gammas(config)
    _check_lookup(config["drafting"])
    if config.get("pair"):
        _check_pair(config["pair"])
    _check_checks(config)
    _check_sequences(config)


def asked_of_text(config: dict) -> dict:
    """What the text must be long and plain enough for, as `corpus.text.check_fits` takes it."""
    return {
        "context": config["model"]["context"],
        "validation_fraction": config["corpus"]["validation_fraction"],
        "prompt": config["corpus"]["prompt"],
        "positions": config["acceptance"]["positions"] + 1,
        "order": config["ngram"]["order"],
    }


def check_place(folder: Path) -> None:
    """UserError where no result can be written into `folder`, which need not be there yet."""
    there = next(path for path in (folder.absolute(), *folder.absolute().parents) if os.path.lexists(path))
    if not there.is_dir():
        what = "a link to nothing" if there.is_symlink() and not there.exists() else "a file"
        raise UserError(f"{there}: is {what}, and results go into a folder of that name; move it away")
    if not os.access(there, os.W_OK | os.X_OK):
        raise UserError(f"{there}: not writable; run in a folder of yours, or with snakemake --directory FOLDER")


def _check_finite(value, path=()) -> None:
    """NaN passes every comparison of a schema, and nothing here may be without end."""
    if isinstance(value, dict | list):
        for key, item in value.items() if isinstance(value, dict) else enumerate(value):
            _check_finite(item, (*path, key))
    elif isinstance(value, float) and not math.isfinite(value):
        refuse(_path(path), value, "must be a finite number")


def _check_seeds(config: dict) -> None:
    seeds = config["seeds"]
    for index, seed in enumerate(seeds):
        if seed in seeds[:index]:
            refuse(f"seeds[{index}]", seed, "each seed may stand there once")


def _check_models(model: dict) -> None:
    for name in ("target", "draft"):
        sizes = model[name]
        if sizes["width"] % (2 * sizes["heads"]):
            refuse(f"model.{name}.width", sizes["width"], f"must be a multiple of 2 × heads = {2 * sizes['heads']}")
        if sizes["heads"] % sizes["kv_heads"]:
            refuse(f"model.{name}.kv_heads", sizes["kv_heads"], f"must divide heads = {sizes['heads']}")


def _check_training(training: dict) -> None:
    for name in ("target", "draft"):
        steps, warmup = training[name]["steps"], training[name]["warmup_steps"]
        if warmup >= steps:
            refuse(f"training.{name}.warmup_steps", warmup, f"must be less than steps = {steps}")
    warmup, steps = training["heads"]["warmup_steps"], training["heads"]["steps"]
    fewest = min(steps, key=steps.get)
    if warmup >= steps[fewest]:
        refuse("training.heads.warmup_steps", warmup, f"must be less than steps.{fewest} = {steps[fewest]}")


def _check_engines(sweep: dict) -> None:
    engines = sweep["engines"]
    if not set(engines) & set(EAGER):
        refuse("sweep.engines", engines, f"must hold {' or '.join(EAGER)}, which the checks are made with")
    trees = [f"sweep.trees.{name}" for name, found in sweep["trees"].items() if found]
    if "cached" not in engines and trees:
        refuse("sweep.engines", engines, f"must hold cached, the engine of {trees[0]} ([] leaves that out)")


def _check_lookup(drafting: dict, key: str = "drafting") -> None:
    shortest, longest = drafting["lookup_shortest"], drafting["lookup_longest"]
    if shortest > longest:
        refuse(f"{key}.lookup_shortest", shortest, f"must be at most {key}.lookup_longest = {longest}")


def _check_pair(pair: dict) -> None:
    """Each drafter has what it is made of, and a file that comes out of a wheel is a name and no path."""
    _check_lookup(pair, "pair")
    gammas = pair["gammas"]
    if not any(gammas.values()):
        refuse("pair.gammas", gammas, "at least one drafter must have a gamma")
    for drafter, part in {"ngram": "text", "early_exit": "early_exit", "draft": "draft"}.items():
        if gammas[drafter] and pair[part] is None:
            refuse(f"pair.{part}", None, f"pair.gammas.{drafter} needs it; [] there leaves the drafter out")
    if pair["wheel"] and Path(pair["target"]).name != pair["target"]:
        refuse("pair.target", pair["target"], "must be the name of a file in pair.wheel, or pair.wheel must be null")


def _check_gammas(config: dict) -> None:
    if not any(config["sweep"]["gammas"].values()):
        refuse("sweep.gammas", config["sweep"]["gammas"], "at least one drafter must have a gamma")
    largest = config["model"]["context"] - 1
    for drafter, gammas in config["sweep"]["gammas"].items():
        limit = DEPTHS.get(drafter, largest)
        why = f"the depth of {drafter} is {limit}" if drafter in DEPTHS else f"model.context {largest + 1} - 1"
        for index, gamma in enumerate(gammas):
            if not 1 <= gamma <= limit:
                must = f"must be {limit}" if limit == 1 else f"must be a whole number from 1 to {limit}"
                refuse(f"sweep.gammas.{drafter}[{index}]", gamma, f"{must} ({why})")


def _check_checks(config: dict) -> None:
    checks, context = config["checks"], config["model"]["context"]
    if checks["prefix_short"] >= context:
        refuse("checks.prefix_short", checks["prefix_short"], f"must be less than model.context {context}")
    if not checks["prefix_short"] < checks["prefix_long"] <= context:
        allowed = f"must be more than checks.prefix_short {checks['prefix_short']} and at most model.context {context}"
        refuse("checks.prefix_long", checks["prefix_long"], allowed)
    longest = max((gamma for gammas in config["sweep"]["gammas"].values() for gamma in gammas), default=0)
    if longest > context - 2:
        allowed = f"must leave room for a character of checks.greedy_prompt and a token in model.context {context}"
        refuse("sweep.gammas", longest, allowed)
    room = context - checks["greedy_prompt"] - longest
    if room < 1:
        allowed = f"must leave room for a token and the largest gamma {longest} in model.context {context}"
        refuse("checks.greedy_prompt", checks["greedy_prompt"], allowed)
    if checks["greedy_tokens"] > room:
        allowed = (
            f"must be at most {room} (model.context {context} - checks.greedy_prompt - the largest gamma {longest})"
        )
        refuse("checks.greedy_tokens", checks["greedy_tokens"], allowed)


def _check_sequences(config: dict) -> None:
    gamma, context = config["sequences"]["gamma"], config["model"]["context"]
    prompt, least = len(config["corpus"]["prompt"]), max(gamma + 1, 3)
    most = context - least - gamma
    if most < 2:
        allowed = f"leaves no room for a prompt of 2 characters and {least} tokens in model.context {context}"
        refuse("sequences.gamma", gamma, allowed)
    if prompt > most:
        room = f"model.context {context} less {least} tokens and sequences.gamma {gamma}"
        allowed = f"must have at most {most} characters ({room})"
        refuse("corpus.prompt", config["corpus"]["prompt"], allowed)
    for key in ("sequences", "controls"):
        tokens = config[key]["tokens"]
        if tokens < least:
            why = "to show the bonus token, and to let an MTP module draft"
            refuse(f"{key}.tokens", tokens, f"must be at least {least} (sequences.gamma {gamma} + 1, and 3), {why}")
        room = context - prompt - gamma
        if tokens > room:
            refuse(f"{key}.tokens", tokens, f"must be at most {room} (model.context {context} - prompt - gamma)")
