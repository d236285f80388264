"""What a pair study is given, checked before any weight is read: models' files, tokenizers, prompts, memory."""

import json
from dataclasses import dataclass
from pathlib import Path

from specledger.foundation.errors import UserError

PICKLED = (".bin", ".pt", ".pth", ".pkl", ".ckpt")
TOKENIZERS = ("tokenizer.json", "tokenizer.model", "vocab.json", "tokenizer_config.json")
BYTES = {"float32": 4, "bfloat16": 2}
GGUF_BITS = 4.5  # of a weight, where a quantised file keeps least
OVERHEAD = 1.25  # of the weights: logits, caches, the libraries


@dataclass(frozen=True, kw_only=True)
class Prompt:
    """One prompt and the task that it stands for."""

    task: str
    text: str


def prompts_of(path: Path) -> list[Prompt]:
    """The prompts of a file: one a line, or JSON lines with `prompt` and, if wanted, `task`."""
    lines = text_of(path, "prompts").splitlines()
    found = []
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        if path.suffix != ".jsonl":
            found.append(Prompt(task="prompts", text=line))
            continue
        try:
            row = json.loads(line)
            task, text = row.get("task", "prompts"), row["prompt"]
        except (ValueError, KeyError, AttributeError):
            raise UserError(
                f'{path}, line {number}: a line must be JSON like {{"task": "code", "prompt": "…"}}'
            ) from None
        if not isinstance(task, str) or not isinstance(text, str) or not text.strip():
            raise UserError(f"{path}, line {number}: task and prompt must be text, and the prompt not empty")
        found.append(Prompt(task=task, text=text))
    if not found:
        raise UserError(f"{path}: holds no prompt; one a line is needed")
    return found


def text_of(path: Path, key: str) -> str:
    """A UTF-8 file's text; UserError for one that is missing or no text."""
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise UserError(f"config pair.{key}: {path} — {error.strerror}; name a UTF-8 text file") from None
    except UnicodeDecodeError as error:
        raise UserError(f"{path}: not UTF-8 (byte {error.start}); convert it to UTF-8") from None


def check_model(path: Path, key: str) -> None:
    """UserError unless `path` is a GGUF file, or a folder in Hugging Face layout with safetensors and a tokenizer."""
    if path.suffix == ".gguf":
        if not path.is_file():
            raise UserError(f"config pair.{key}: {path} — no such file")
        with path.open("rb") as file:
            if file.read(4) != b"GGUF":
                raise UserError(f"{path}: no GGUF file; its first four bytes must be GGUF")
        return
    if path.suffix in PICKLED:
        raise UserError(f"{path}: pickled weights are refused, since opening them runs code; safetensors or GGUF")
    if not path.is_dir():
        raise UserError(f"config pair.{key}: {path} — no such folder; a folder in Hugging Face layout or a .gguf file")
    names = {one.name for one in path.iterdir()}
    if "config.json" not in names:
        raise UserError(f"{path}: no config.json; a folder in Hugging Face layout or a .gguf file is needed")
    if not any(name.endswith(".safetensors") for name in names):
        if any(name.endswith(PICKLED) for name in names):
            raise UserError(f"{path}: pickled weights are refused, since opening them runs code; safetensors or GGUF")
        raise UserError(f"{path}: no weights; model.safetensors is missing")
    if not names & set(TOKENIZERS):
        raise UserError(f"{path}: no tokenizer; {TOKENIZERS[0]} or one of {', '.join(TOKENIZERS[1:3])} is needed")


def needed_bytes(path: Path, dtype: str) -> int:
    """About how much memory the weights take once they are open, from the sizes of their files."""
    if path.suffix == ".gguf":  # opened in float32, then turned
        return round(path.stat().st_size * 8 / GGUF_BITS * BYTES["float32"])
    return round(sum(_weights_of(one) for one in path.glob("*.safetensors")) * BYTES[dtype])


def _weights_of(path: Path) -> int:
    """How many numbers a safetensors file holds, from its header."""
    try:
        with path.open("rb") as file:
            header = json.loads(file.read(int.from_bytes(file.read(8), "little")))
        sizes = [entry["shape"] for name, entry in header.items() if name != "__metadata__"]
    except (OSError, ValueError, KeyError, TypeError, OverflowError, MemoryError):
        raise UserError(f"{path}: damaged; its header can't be read") from None
    count = 0
    for shape in sizes:
        size = 1
        for side in shape:
            size *= side
        count += size
    return count


def available_bytes() -> int | None:
    """Memory that a process can have now; None where the system doesn't say."""
    try:
        for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    except (OSError, ValueError):
        pass
    return None


def check_memory(paths: list[Path], dtype: str, available: int | None = None) -> None:
    """UserError where the weights of these models together want more than there is."""
    available = available_bytes() if available is None else available
    wanted = round(OVERHEAD * sum(needed_bytes(path, dtype) for path in paths))
    if available is not None and wanted > available:
        gib = 1 << 30
        names = " and ".join(map(str, paths))
        raise UserError(
            f"{names}: about {wanted / gib:.1f} GiB of memory are needed as {dtype}, "
            f"{available / gib:.1f} GiB are free; a smaller model, or pair.dtype: bfloat16"
        )


def check_vocabularies(target: dict[str, int], draft: dict[str, int], target_size: int, draft_size: int) -> None:
    """UserError where two tokenizers give a token different numbers, or the models have rows for unequally many."""
    out_of_scope = (
        "the draft must share the target's vocabulary (assisted decoding across vocabularies isn't done here)"
    )
    if target_size != draft_size:
        raise UserError(f"config pair.draft: {draft_size} symbols where the target has {target_size}; {out_of_scope}")
    for token, number in sorted(target.items(), key=lambda item: item[1]):
        if draft.get(token) != number:
            raise UserError(
                f"config pair.draft: token {token!r} is {number} for the target and {draft.get(token, 'none')} for the "
                f"draft; {out_of_scope}"
            )


def check_lengths(prompts: list[Prompt], tokens: list[list[int]], count: int, context: int) -> None:
    """UserError for the first prompt that leaves no room for `count` tokens in the context."""
    for number, (prompt, found) in enumerate(zip(prompts, tokens, strict=True), start=1):
        if len(found) + count + 1 > context:
            raise UserError(
                f"prompt {number} ({prompt.text[:40]!r}): {len(found)} tokens and {count} more don't fit into the "
                f"target's context of {context}; a shorter prompt or fewer pair.tokens"
            )
