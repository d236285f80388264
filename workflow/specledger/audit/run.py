"""A whole audit as the command line asks for it: arms, rows, controls, verdicts, and the page."""

import csv
import io
import json
import sys
import time
from argparse import Namespace
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from specledger.audit import greedy as greedy_texts
from specledger.audit.controls import Spoilt
from specledger.audit.evidence import Black, Together, White
from specledger.audit.exact import exact_cells
from specledger.audit.measure import Measured, Plan, measure
from specledger.audit.page import record, sentence, settings_fact, write_page
from specledger.audit.repeats import all_the_same, repeated
from specledger.audit.settings import Batch, SamplingSettings
from specledger.audit.systems.http import Kept
from specledger.audit.systems.openai import OpenAIServer, agree, api_key
from specledger.audit.systems.python_file import PythonFile, loaded
from specledger.audit.systems.reading import LOGPROBS, Reading
from specledger.audit.together import AllPrompts
from specledger.audit.verdicts import COLUMNS, EXIT, Judged, judge, table, trusted, whole
from specledger.foundation.errors import UserError
from specledger.foundation.records import write_json, write_text

TICK_S = 10.0
PROMPTS = ("Once upon a time", "The capital of", "def main(")
TOP = 5  # log-probabilities at each place of a greedy text


def say(line: str) -> None:
    print(f"specledger: {line}", file=sys.stderr, flush=True)


class Ticker:
    """A line every ten seconds while texts come in."""

    def __init__(self):
        self.texts, self.start, self.last = 0, time.monotonic(), time.monotonic()

    def __call__(self, texts: int) -> None:
        self.texts += texts
        now = time.monotonic()
        if now - self.last >= TICK_S:
            self.last = now
            say(f"{self.texts:,} texts so far, {self.texts / (now - self.start):.0f} a second")


def run(options: Namespace, command: str) -> int:
    """Audit, write page and tables into `options.out`, and give the exit code."""
    rows = with_server(options) if options.url else with_file(options)
    rows = [replace(row, command=command) for row in rows]
    judged = judge(rows, level=options.level)
    write_results(judged, options)
    for one in judged:
        label = f"{one.row.mode}{f' ({one.row.prompt[:40]})' if one.row.prompt else ''}"
        print(f"{label}: {sentence(one)}")
    for line in trusted(judged):
        print(f"this run can't be trusted: {line}")
    print(f"{whole(judged)}: {options.out / 'index.html'}")
    return EXIT[whole(judged)]


def settings_of(options: Namespace) -> SamplingSettings:
    try:
        return SamplingSettings(
            temperature=0.0 if options.greedy else options.temperature,
            **{name: getattr(options, name) for name in ("top_k", "top_p", "min_p", "repetition_penalty")},
            tokens=options.tokens,
            seed=options.seed,
        )
    except ValueError as error:
        raise UserError(f"--{str(error).replace('_', '-', 1)}") from None


def plan_of(options: Namespace, tests: int) -> Plan:
    try:
        return Plan(texts=options.texts, level=options.level, family=tests, wanted_tv=options.tv)
    except ValueError as error:
        raise UserError(f"--{str(error).replace('wanted_tv', 'tv')}") from None


def prompts_of(options: Namespace) -> list:
    """The prompts of --prompt, --prompt-ids and --prompts; a text, ids, or the messages of a chat."""
    found = [*(options.prompt or []), *(options.prompt_ids or [])]
    if options.prompts is not None:
        found += read_prompts(options.prompts)
    if not found and options.url:
        say(f"no prompt named: {len(PROMPTS)} short ones are taken; your own say more about your use")
        found = list(PROMPTS)
    return found


def read_prompts(path: Path) -> list:
    """A prompt a line; of a .jsonl file the `prompt`, `prompt_ids` or `messages` of each line."""
    try:
        lines = [line for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    except OSError as error:
        raise UserError(f"--prompts {path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise UserError(f"--prompts {path}: not a text in UTF-8") from None
    if not lines:
        raise UserError(f"--prompts {path}: it holds no prompt")
    if path.suffix != ".jsonl":
        return lines
    found = []
    for place, line in enumerate(lines, 1):
        try:
            value = json.loads(line)
            found.append(next(value[key] for key in ("messages", "prompt_ids", "prompt") if key in value))
        except (ValueError, TypeError, StopIteration):
            raise UserError(
                f"--prompts {path}:{place}: must be an object with prompt, prompt_ids or messages"
            ) from None
    return found


def named(prompt) -> str:
    """A prompt as tables show it."""
    if isinstance(prompt, str):
        return prompt
    if prompt and isinstance(prompt[0], dict):
        return str(prompt[-1].get("content", ""))
    return " ".join(map(str, prompt))


# ---- a server


def with_server(options: Namespace) -> list[Measured]:
    """The rows of an audit of two arms over HTTP."""
    settings, prompts = settings_of(options), prompts_of(options)
    plan_of(options, 1)
    kept = Kept(options.out / "unfinished.jsonl")
    if kept.before:
        say(f"going on with {kept.before:,} texts of a run that did not finish")
    plain, audited = arms_of(options, kept)
    for server in (plain, audited):
        say(f"{server.name}: {server.model} at {server.http.url}, version {server.version}")
    if options.greedy:
        rows = [greedy_row(plain, audited, prompts, settings, options)]
    else:
        rows = sampled_rows(plain, audited, prompts, settings, options)
    if kept.path.exists():  # done: a later run asks anew
        kept.path.replace(kept.path.with_name("texts.jsonl"))
    return rows


def arms_of(options: Namespace, kept: Kept) -> tuple[OpenAIServer, OpenAIServer]:
    same = {
        "timeout": options.timeout,
        "key": api_key(options.key_env),
        "parallel": options.parallel,
        "per_request": options.per_request,
        "chat": options.chat,
        "kept": kept,
        "advance": Ticker(),
    }
    plain_body = {**options.body, **(options.baseline_body or {})}
    plain_model = options.baseline_model or options.model
    plain = OpenAIServer(options.baseline_url or options.url, plain_model, name="plain", body=plain_body, **same)
    audited = OpenAIServer(options.url, options.model, name="speculative", body=options.body, **same)
    return plain, audited


def sampled_rows(plain, audited, prompts: list, settings: SamplingSettings, options: Namespace) -> list[Measured]:
    if settings.temperature == 0:
        raise UserError("--temperature 0 draws nothing to test; --greedy compares the texts of temperature 0")
    reading = agree([plain, audited], prompts[0], options.tokenizer)
    say(f"tokens are read by {reading.kind}, {plain.per_request} texts a request")
    if reading.kind == LOGPROBS:
        say("log-probabilities are asked for to learn the tokens: some servers decode otherwise when they are")
    together = options.together and len(prompts) > 1
    asked = [(f"{len(prompts)} prompts together", None)] if together else [(named(one), one) for one in prompts]
    controls = 0 if options.no_controls else 2
    plan = plan_of(options, (len(asked) + controls) * len(Black.names))
    row = partial(_row, settings=settings, decode=partial(_decoded, reading, plain))

    def check(batches: Sequence[Batch]) -> str:
        return checked_arms(batches, plain, audited)

    rows = []
    for name, prompt in asked:
        arms = [AllPrompts(one, prompts) if together else one for one in (plain, audited)]
        instrument = Together() if together else Black()
        rows.append(
            row(arms, instrument, prompt, plan, mode="speculative", name=name, check=_unchecked if together else check)
        )
    if controls:
        half = replace(plan, texts=max(options.texts // 2, 1), wanted_tv=None)
        name, first = named(prompts[0]), prompts[0]
        rows.append(row([plain, plain], Black(), first, half, mode="plain against itself", name=name, control="null"))
        spoilt = [plain, Spoilt(plain)]
        rows.append(row(spoilt, Black(), first, half, mode="spoilt texts", name=name, control="lossy"))
    return [replace(one, system=f"{audited.model} at {audited.http.url}") for one in rows]


def _unchecked(batches: Sequence[Batch]) -> str:
    """Texts of many prompts are not compared with those of the request before."""
    return ""


def _row(arms, instrument, prompt, plan, *, settings, decode, mode, name, control="", check=_unchecked):
    def told(line: str) -> None:
        say(f"{mode}, {name[:30]!r}: {line}")

    return measure(
        arms,
        instrument,
        prompt,
        settings,
        plan,
        mode=mode,
        prompt=name,
        control=control,
        told=told,
        check=check,
        decode=decode,
    )


def _decoded(reading: Reading, plain: OpenAIServer, found: Sequence[int]) -> str:
    """Token ids as a text: by names of ours, by the server's own route, or as numbers."""
    ours, told = reading.names(), plain.detokenized(found)
    return "".join(ours.get(one, f"[{one}]") for one in found) if told is None else told


def checked_arms(batches: Sequence[Batch], plain: OpenAIServer, audited: OpenAIServer) -> str:
    """What is wrong with the speculative texts themselves; UserError where it is the plain ones."""
    one, two = (batch.ids for batch in batches)
    wrong = repeated(one, plain.per_request) or all_the_same(one, two)
    if wrong:
        raise UserError(f"{plain.http.url}, the plain server: {wrong}; nothing can be compared with it")
    return repeated(two, audited.per_request) or all_the_same(two, one)


def greedy_row(plain, audited, prompts: list, settings: SamplingSettings, options: Namespace) -> Measured:
    """The texts of temperature 0 of all prompts, the plain ones twice."""

    def texts(server: OpenAIServer, top: int, seed: int = 0) -> list:
        return server.greedy_all(prompts, settings.tokens, top=top, run=seed)

    say(f"greedy texts of {len(prompts)} prompts, plain")
    first = texts(plain, TOP)
    if all(one.top is None for one in first):
        say("the plain server tells no log-probabilities: rounding can't be told from a fault")
    say("plain, once more")
    again = None if options.no_controls else texts(plain, TOP, seed=1)
    say("speculative")
    found = greedy_texts.compare(
        first, texts(audited, 0), allowed_rate=options.allowed_rate, margin=options.margin, again=again
    )
    return Measured(
        system=f"{audited.model} at {audited.http.url}",
        version=audited.version,
        mode="speculative, greedy",
        prompt="",
        settings=settings,
        n=len(prompts),
        box="black",
        greedy=found,
    )


# ---- a Python file


def with_file(options: Namespace) -> list[Measured]:
    """The rows of an audit of a Python file, exact where it has next_logits, else of two samples."""
    settings = settings_of(options)
    if settings.temperature == 0:
        raise UserError("--temperature 0 draws nothing to test")
    module = loaded(options.system)
    prompts = file_prompts(module, options)
    audited = PythonFile(options.system, module)
    exact = callable(getattr(module, "next_logits", None))
    tests = len(prompts) * len(Black.names)
    plan = plan_of(options, tests)
    encode_name = getattr(module, "decode", None)
    rows = []
    for prompt in prompts:
        if exact:
            arms, instrument = [audited], White(tree_of(module, prompt, settings, options.system))
        else:
            arms, instrument = [PythonFile(options.system, module, "baseline"), audited], Black()

        def told(line: str, prompt=prompt) -> None:
            say(f"{audited.name}, {named(prompt)[:30]!r}: {line}")

        made = measure(
            arms,
            instrument,
            prompt,
            settings,
            plan,
            mode="sample()",
            prompt=named(prompt),
            told=told,
            check=lambda batches: repeated(batches[-1].ids, 1),
            decode=encode_name,
        )
        rows.append(made)
    return rows


def file_prompts(module, options: Namespace) -> list[list[int]]:
    found = list(options.prompt_ids or [])
    if options.prompt:
        if not callable(getattr(module, "encode", None)):
            raise UserError(f"--prompt wants encode(text) in {options.system}; or name token ids with --prompt-ids")
        found += [list(module.encode(text)) for text in options.prompt]
    found += [] if found else [list(one) for one in getattr(module, "PROMPTS", [])]
    if not found:
        raise UserError(f"name prompts: --prompt-ids 1,15,7, or PROMPTS = [[1, 15, 7]] in {options.system}")
    return found


def tree_of(module, prompt: list[int], settings: SamplingSettings, path: Path):
    try:
        tree = exact_cells(
            module.next_logits,
            prompt,
            settings,
            draft_logits=getattr(module, "draft_logits", None),
            order=getattr(module, "WARPERS", "transformers"),
            end_ids=getattr(module, "END_IDS", ()),
        )
    except Exception as error:
        line = " ".join(str(error).split())
        raise UserError(f"{path}: next_logits() fails: {type(error).__name__}: {line}") from error
    say(f"exact distribution after {named(prompt)!r}: {tree.forwards:,} rows of the model")
    return tree


# ---- results


def write_results(judged: Sequence[Judged], options: Namespace) -> None:
    """index.html, audit.csv and audit.json in the folder of the result."""
    row = judged[0].row
    title = "greedy texts" if row.greedy else "sampled texts against the exact distribution"
    title = title if row.greedy or row.box == "white" else "sampled texts, speculative against plain"
    facts = [("System", row.system), ("Version", row.version), settings_fact(row.settings)]
    if options.url:
        facts.insert(1, ("Plain", options.baseline_url or f"{options.url} with {json.dumps(options.baseline_body)}"))
    write_page(options.out / "index.html", judged, title=title, level=options.level, facts=facts)
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(table(judged))
    write_text(options.out / "audit.csv", text.getvalue())
    write_json(options.out / "audit.json", record(judged, level=options.level))
