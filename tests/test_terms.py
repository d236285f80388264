"""Plain English in what people read: the list of tests/terms.toml, and where it is looked for."""

import ast
import io
import re
import tokenize
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
TERMS = tomllib.loads((Path(__file__).parent / "terms.toml").read_text(encoding="utf-8"))
PROSE = sorted([ROOT / "README.md", *(ROOT / "docs").glob("*.md"), *(ROOT / "config").glob("*.md")])
PAGE = sorted((ROOT / "workflow" / "report" / "text" / "en").glob("*.toml"))
CODE = sorted((ROOT / "workflow" / "specledger" / "reporting").rglob("*.py"))


def _strings(value: object) -> list[str]:
    if isinstance(value, dict):
        return [text for inner in value.values() for text in _strings(inner)]
    return [text for inner in value for text in _strings(inner)] if isinstance(value, list) else [str(value)]


def words_of(path: Path) -> str:
    """What a reader reads of a file: prose without its code, texts of the page, docstrings and comments."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".toml":
        return re.sub(r"\{[^}]*\}", "N", "\n".join(_strings(tomllib.loads(text))))
    if path.suffix == ".md":
        return re.sub(r"```.*?```|`[^`]*`|\]\([^)]*\)", "`code`", text, flags=re.DOTALL)
    named = (ast.Module, ast.ClassDef, ast.FunctionDef)
    found = [ast.get_docstring(node) or "" for node in ast.walk(ast.parse(text)) if isinstance(node, named)]
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    return "\n".join([*found, *(token.string for token in tokens if token.type == tokenize.COMMENT)])


def findings(text: str, lists: tuple[str, ...]) -> list[str]:
    terms = {pattern: better for name in lists for pattern, better in TERMS[name].items()}
    return [
        f"“{' '.join(match[0].split())}” — write: {better}"
        for pattern, better in terms.items()
        for match in re.finditer(pattern, text, re.IGNORECASE if "(?m)" not in pattern else 0)
    ]


@pytest.mark.parametrize("path", [*PROSE, *PAGE, *CODE], ids=lambda path: str(path.relative_to(ROOT)))
def test_it_is_plain_english(path):
    lists = ("everywhere",) if path.suffix == ".py" else ("everywhere", "prose")
    assert findings(words_of(path), lists) == []


def test_the_list_finds_what_it_names():
    text = "# What it says\nThe drafter guesses two tokens a round; it knows the law of each forwards."
    assert len(findings(text, ("everywhere", "prose"))) >= 6
