"""All tables by name, found by their modules: adding a table is adding a file."""

import pkgutil
from importlib import import_module
from pathlib import Path

from specledger.tables.columns import Table

APART = {"registry", "columns", "document", "raw"}  # what is no table of the study


def _found() -> dict[str, Table]:
    names = {module.name for module in pkgutil.iter_modules([str(Path(__file__).parent)])} - APART
    return {name: import_module(f"{__package__}.{name}").TABLE for name in sorted(names)}


TABLES = _found()
