"""All tables by name. Adding one is adding its file, and its name here, so that the fingerprints of stages see it."""

from types import ModuleType

from specledger.tables import (
    acceptance,
    agreement,
    best_gamma,
    claims,
    contexts,
    controls,
    cost_model,
    differences,
    engines,
    false_alarms,
    forwards,
    gap,
    greedy,
    heads,
    independence,
    ledger,
    models,
    noise,
    oracle,
    p_values,
    prefix,
    ranks,
    rates,
    seeds,
    sequences,
    systems,
    time,
    trees,
    typical,
    waterfall,
)
from specledger.tables.columns import Table

TABLES: dict[str, Table] = {
    name: module.TABLE for name, module in list(globals().items()) if isinstance(module, ModuleType)
}
