"""The code that a stage runs, as one hash that only its logic changes.

Comments, formatting and docstrings don't count; a change in any module that the stage imports does, unless
the module only speaks to the user.
"""

import ast
import hashlib
from functools import cache
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent.parent
SPEAKING = ("foundation.errors", "foundation.progress")  # no result depends on how its progress is told


def entry_of(stage: str) -> str:
    """The module of a stage: `python -m specledger train-head` runs specledger.commands.train_head."""
    return f"{PACKAGE.name}.commands.{stage.replace('-', '_')}"


def module_path(name: str) -> Path | None:
    """The file of a module of this package, or None for everything else."""
    parts = name.split(".")
    if parts[0] != PACKAGE.name:
        return None
    stem = PACKAGE.joinpath(*parts[1:])
    for path in (stem.with_suffix(".py"), stem / "__init__.py"):
        if path.is_file():
            return path
    return None


def imported_names(tree: ast.AST) -> set[str]:
    """Every name that could be a module: `import a.b`, and both a and a.b of `from a import b`."""
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "the package imports by absolute names"
            names.add(node.module)
            names.update(f"{node.module}.{alias.name}" for alias in node.names)
    return names


def _without_docstrings(tree: ast.AST) -> ast.AST:
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if not isinstance(body, list) or not body:
            continue
        first = body[0]
        if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str):
            node.body = body[1:] or [ast.Pass()]
    return tree


@cache
def _parsed(text: str) -> tuple[bytes, frozenset[str]]:
    """Of a module's text a hash of its logic, and what it imports; by its text, so that an edit is seen."""
    tree = ast.parse(text)
    dump = ast.dump(_without_docstrings(tree))
    return hashlib.sha256(dump.encode()).digest(), frozenset(imported_names(tree))


def _of(path: Path) -> tuple[bytes, frozenset[str]]:
    return _parsed(path.read_text(encoding="utf-8"))


def modules_of(entry: str) -> dict[str, Path]:
    """The modules of the package that `entry` reaches through imports, itself included."""
    found: dict[str, Path] = {}
    waiting = [entry]
    while waiting:
        name = waiting.pop()
        path = module_path(name)
        if path is None or name in found:
            continue
        found[name] = path
        waiting.extend(_of(path)[1])
    return found


def code_hash(stage: str, extra: tuple[Path, ...] = ()) -> str:
    """Hash of what `python -m specledger STAGE` runs, and of the `extra` files (templates) as bytes."""
    digest = hashlib.sha256()
    for name, path in sorted(modules_of(entry_of(stage)).items()):
        if name.partition(".")[2] not in SPEAKING:
            digest.update(name.encode() + b"\0" + _of(path)[0])
    for path in sorted(extra):
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:16]
