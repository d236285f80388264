"""The code that a stage runs, as one hash that only its logic changes.

Comments, formatting and docstrings don't count; a change in any module that the stage imports does, unless
the module only speaks to the user.
"""

import ast
import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent.parent
DRAFTERS, REGISTRY = f"{PACKAGE.name}.drafters", f"{PACKAGE.name}.drafters.registry"
# What of a drafter's spec no result depends on.
SHOWN = "order title tree_title typical_title colour dark marker group training_cost uses costs_of".split()
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


def imports_of(tree: ast.AST) -> dict[str, tuple[str, str]]:
    """What a tree imports, by the name that it has there: the module, and the name of `from module import name`."""
    found = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found.update({alias.asname or alias.name: (alias.name, "") for alias in node.names})
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "the package imports by absolute names"
            found.update({alias.asname or alias.name: (node.module, alias.name) for alias in node.names})
    return found


def _without_docstrings(tree: ast.AST) -> ast.AST:
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if not isinstance(body, list) or not body:
            continue
        first = body[0]
        if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str):
            node.body = body[1:] or [ast.Pass()]
    return tree


@dataclass(frozen=True)
class Parsed:
    """A module without its docstrings: the whole, its definitions by name, and what it imports."""

    dump: str
    definitions: dict[str, ast.AST]
    imports: dict[str, tuple[str, str]]

    def needed_by(self, names: Iterable[str]) -> set[str]:
        """The definitions and imports that these names rest on, themselves included."""
        found, waiting = set(), list(names)
        while waiting:
            name = waiting.pop()
            if name not in found and (name in self.definitions or name in self.imports):
                found.add(name)
                node = self.definitions.get(name, ast.Pass())
                waiting.extend(one.id for one in ast.walk(node) if isinstance(one, ast.Name))
        return found

    def attributes(self, names: Iterable[str]) -> set[str]:
        """The names of all attributes that these definitions read."""
        nodes = (node for name in names for node in ast.walk(self.definitions.get(name, ast.Pass())))
        return {node.attr for node in nodes if isinstance(node, ast.Attribute)}


@cache
def _parsed(text: str) -> Parsed:
    """A module by its text, so that an edit is seen."""
    tree = _without_docstrings(ast.parse(text))
    definitions = {}
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            definitions[node.name] = node
        elif isinstance(node, ast.Assign):
            definitions.update({to.id: node for to in node.targets if isinstance(to, ast.Name)})
    return Parsed(dump=ast.dump(tree), definitions=definitions, imports=imports_of(tree))


def _of(path: Path) -> Parsed:
    return _parsed(path.read_text(encoding="utf-8"))


def modules_of(entry: str) -> dict[str, set[str] | None]:
    """The modules of the package that `entry` reaches through imports, itself included.

    Of a module of drafters, which holds network, training and proposer, only the definitions that are reached: an
    edit of a proposer trains nothing anew. The registry reaches in each of them what it reads of a module. Of all
    other modules None, which is the whole.
    """
    found: dict[str, set[str] | None] = {}
    waiting: list[tuple[str, str]] = [(entry, "")]
    while waiting:
        name, wanted = waiting.pop()
        path = module_path(name)
        if path is None or (name in found and (found[name] is None or wanted in found[name])):
            continue
        parsed = _of(path)
        if name.startswith(f"{DRAFTERS}.") and wanted:
            found.setdefault(name, set())
            new = parsed.needed_by([wanted]) - found[name]
            found[name] |= new
            if name == REGISTRY and "module_of" in found[name]:
                waiting += _in_every_module(parsed.attributes(new))
        else:
            found[name], new = None, set(parsed.imports)
        for module, part in (parsed.imports[one] for one in new if one in parsed.imports):
            waiting += [(module, part), (f"{module}.{part}", "")]
    return found


def _in_every_module(names: set[str]) -> list[tuple[str, str]]:
    """What of these names each module of drafters defines."""
    paths = sorted((PACKAGE / "drafters").glob("*.py"))
    return [(f"{DRAFTERS}.{path.stem}", name) for path in paths for name in names & set(_of(path).definitions)]


def _specs(shown: bool, trained: bool) -> str:
    """What is declared of the drafters, or of the trained ones alone; without what is only shown, unless `shown`."""
    found = []
    for path in sorted((PACKAGE / "drafters").glob("*.py")):
        node = _of(path).definitions.get("SPECS")
        for call in ast.walk(node) if node is not None else ():
            if isinstance(call, ast.Call) and (not trained or any(one.arg == "trained" for one in call.keywords)):
                found.append([ast.dump(one) for one in call.keywords if shown or one.arg not in SHOWN])
    return repr(found)


def code_hash(stage: str, extra: tuple[Path, ...] = ()) -> str:
    """Hash of what `python -m specledger STAGE` runs, and of the `extra` files (templates) as bytes."""
    digest = hashlib.sha256()
    modules = modules_of(entry_of(stage))
    for name, wanted in sorted(modules.items()):
        if name.partition(".")[2] not in SPEAKING:
            parsed = _of(module_path(name))
            dumps = [ast.dump(parsed.definitions[one]) for one in sorted((wanted or set()) & set(parsed.definitions))]
            digest.update(f"{name}\0{parsed.dump if wanted is None else dumps}\0".encode())
    if f"{PACKAGE.name}.foundation.drafters" in modules:
        shown = any(name.startswith(f"{PACKAGE.name}.reporting") for name in modules)
        digest.update(_specs(shown=shown, trained=stage == "train-head").encode())
    if f"{PACKAGE.name}.decoding.building" in modules:
        extra = (*extra, PACKAGE / "decoding" / "kernels.cpp")
    for path in sorted(extra):
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:16]
