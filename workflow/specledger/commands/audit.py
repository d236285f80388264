"""`specledger audit`: does the speculative decoding of a server, or of a Python file, keep the distribution?

Exit code 0 kept, 1 departs, 2 undecided, 3 where nothing could be judged.
"""

import argparse
import json
import sys
import traceback
from pathlib import Path

from specledger.foundation.errors import UserError

FAILED = 3
EPILOG = """exit code: 0 kept, 1 departs, 2 undecided, 3 nothing could be judged (bad input, a server that is gone)

examples:
  specledger audit --url http://127.0.0.1:8001/v1 --baseline-url http://127.0.0.1:8000/v1 --model NAME
  specledger audit --url http://127.0.0.1:8000/v1 --baseline-body '{"speculative.n_max": 0}' --model NAME
  specledger audit --url ... --baseline-url ... --greedy --prompts prompts.txt --tokens 128
  specledger audit --system my_adapter.py --prompt-ids 1,15,7
docs/audit.md says how to read a verdict and how many texts are needed for which distance.
"""


class Parser(argparse.ArgumentParser):
    def error(self, message: str):
        """One line and exit code 3: 2, argparse's own, means undecided here."""
        print(f"specledger audit: {message}; specledger audit --help says what is allowed", file=sys.stderr)
        raise SystemExit(FAILED)


def whole_number(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1, got {value}")
    return value


def json_object(text: str) -> dict:
    try:
        value = json.loads(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"not JSON ({error})") from None
    if not isinstance(value, dict):
        raise argparse.ArgumentTypeError(f"must be a JSON object, got {text}")
    return value


def ids(text: str) -> list[int]:
    try:
        return [int(part) for part in text.replace(",", " ").split()]
    except ValueError:
        raise argparse.ArgumentTypeError(f"must be whole numbers with commas, got {text}") from None


def parser() -> Parser:
    made = Parser(
        prog="specledger audit",
        description="Does speculative decoding keep the distribution of plain decoding?",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = made.add_argument_group("what is audited").add_argument
    add("--url", help="an OpenAI-compatible server with speculation on, such as http://127.0.0.1:8001/v1")
    add("--baseline-url", help="the same model with speculation off (default: --url with --baseline-body)")
    add("--model", help="the model's name (default: the only one that the server has)")
    add("--baseline-model", help="its name at the plain server (default: --model)")
    add("--body", type=json_object, default={}, metavar="JSON", help="fields that each request adds")
    add("--baseline-body", type=json_object, metavar="JSON", help="fields that each plain request adds besides")
    add("--chat", action="store_true", help="ask /chat/completions, not /completions")
    add("--system", type=Path, metavar="FILE", help="a Python file with sample(prompt_ids, count, settings)")
    add("--config", type=Path, metavar="FILE", help="a YAML file with these options by name (prompts as a list)")
    add = made.add_argument_group("prompts and sampling").add_argument
    add("--prompt", action="append", metavar="TEXT", help="a prompt; again for more")
    add("--prompts", type=Path, metavar="FILE", help="a prompt a line, or .jsonl with prompt or messages a line")
    add("--prompt-ids", type=ids, action="append", metavar="IDS", help="a prompt as token ids, with commas")
    add("--temperature", type=float, default=1.0)
    add("--top-k", type=int, help="of both arms (default: the server's own; --body '{\"top_k\": 0}' for none)")
    add("--top-p", type=float)
    add("--min-p", type=float)
    add("--repetition-penalty", type=float)
    add("--tokens", type=whole_number, help="tokens of a text (default 6, with --greedy 128)")
    add("--seed", type=int, default=0, help="another seed gives an audit of its own (default 0)")
    add = made.add_argument_group("how it decides").add_argument
    add("--texts", type=whole_number, default=3000, help="at most, of each prompt and arm (default 3000)")
    add("--level", type=float, default=0.01, help="chance of a false alarm in the whole run (default .01)")
    add("--tv", type=float, help="done when so small a distance would be seen, undecided if it never is")
    add(
        "--together", action="store_true", help="one row over all prompts, which share --texts: many prompts, few texts"
    )
    add("--greedy", action="store_true", help="compare texts of temperature 0, prompt by prompt, instead")
    add("--allowed-rate", type=float, default=0.0, help="of greedy texts that may part by more than rounding")
    add("--margin", type=float, default=0.25, help="nats between two tokens that count as rounding (default .25)")
    add("--no-controls", action="store_true", help="leave out the plain arm against itself, and spoilt texts")
    add = made.add_argument_group("how it asks").add_argument
    add("--per-request", type=whole_number, default=32, help="texts of one request (default 32)")
    add("--parallel", type=whole_number, default=4, help="requests at a time (default 4)")
    add("--timeout", type=float, default=60.0, help="seconds that a request may take (default 60)")
    add("--key-env", metavar="NAME", help="environment variable that holds the API key")
    add("--tokenizer", metavar="FILE", help="tokenizer.json, or the word characters, where a server tells no ids")
    add("--out", type=Path, default=Path("specledger-audit"), help="folder of the result (default specledger-audit)")
    return made


def main(arguments: list[str]) -> int:
    """Run the audit; whatever goes wrong is one line, and its traceback lies in the folder of the result."""
    options = None
    try:
        options = read_options(arguments)
        from specledger.audit.run import run  # numpy only from here on, so that --help is quick

        return run(options, command_of(arguments))
    except KeyboardInterrupt:
        kept = "; what was sampled is kept, the same command goes on" if options is not None and options.url else ""
        print(f"specledger audit: interrupted{kept}", file=sys.stderr)
        return 130
    except Exception as error:
        log = None
        if options is not None and not isinstance(error, UserError):
            log = options.out / "error.log"
            log.parent.mkdir(parents=True, exist_ok=True)
            log.write_text(traceback.format_exc(), encoding="utf-8")
        from specledger.commands.run import one_line

        print(f"specledger audit: {one_line(error, log)}", file=sys.stderr)
        return FAILED


def read_options(arguments: list[str]) -> argparse.Namespace:
    """Options from the command line, over those of --config; UserError where they don't fit together."""
    made = parser()
    config = made.parse_args(arguments).config
    if config is not None:
        made.set_defaults(**from_config(made, config))
    options = made.parse_args(arguments)
    if (options.url is None) == (options.system is None):
        raise UserError("name what is audited: either --url of a server or --system of a Python file")
    if options.url and options.baseline_url is None and options.baseline_body is None:
        raise UserError("a server wants its plain decoding beside it: --baseline-url, or --baseline-body with the same")
    if options.system and (options.greedy or options.prompts):
        raise UserError("--system goes with --prompt-ids (or --prompt where the file has encode), not with --greedy")
    if options.tokens is None:
        options.tokens = 128 if options.greedy else 6
    if not 0 <= options.allowed_rate < 1:
        raise UserError(f"--allowed-rate must lie in [0, 1), got {options.allowed_rate}")
    if options.margin < 0:
        raise UserError(f"--margin must be at least 0, got {options.margin}")
    if not options.timeout > 0:
        raise UserError(f"--timeout must be above 0, got {options.timeout}")
    return options


def from_config(made: Parser, path: Path) -> dict:
    """The options of a YAML file, by their long names; UserError for what there is not."""
    import yaml

    try:
        value = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UserError(f"--config {path}: {error.strerror}") from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise UserError(f"--config {path}: not YAML ({' '.join(str(error).split())})") from None
    if not isinstance(value, dict):
        raise UserError(f"--config {path}: must hold options by name, such as url: http://127.0.0.1:8001/v1")
    known = {action.dest: action for action in made._actions if action.dest not in ("help", "config")}
    found = {}
    for key, given in value.items():
        name = str(key).replace("-", "_")
        if name not in known:
            raise UserError(f"--config {path}: no option {key}; allowed: {', '.join(sorted(known))}")
        found[name] = _as_option(path, key, known[name], given)
    return found


def _as_option(path: Path, key: str, action: argparse.Action, given):
    """A value of the file as the command line would have it."""
    if isinstance(action, argparse._StoreTrueAction):
        if not isinstance(given, bool):
            raise UserError(f"--config {path}: {key} must be true or false, got {given}")
        return given
    many = isinstance(action, argparse._AppendAction)
    values = given if many and isinstance(given, list) and not _numbers(given) else [given]
    read = []
    for one in values:
        if isinstance(one, bool) or one is None:
            raise UserError(
                f"--config {path}: {key} reads as {one}; write a text in quotes, and leave out what is unset"
            )
        text = (
            json.dumps(one) if isinstance(one, dict) else ",".join(map(str, one)) if isinstance(one, list) else str(one)
        )
        try:
            read.append(action.type(text) if action.type else text)
        except (ValueError, argparse.ArgumentTypeError) as error:
            raise UserError(f"--config {path}: {key}: {error}") from None
    return read if many else read[0]


def _numbers(values: list) -> bool:
    return bool(values) and all(type(one) is int for one in values)


def command_of(arguments: list[str]) -> str:
    import shlex

    return shlex.join(["specledger", "audit", *arguments])
