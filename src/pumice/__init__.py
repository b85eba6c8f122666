"""Pumice: a batch scheduler for Kubernetes over one columnar, transactional core.

    import pumice

    run = pumice.load("examples/demo").simulate()
    run.jobs          # a table that polars, DuckDB, pandas and pyarrow read

docs/guide/python.md describes all names. Each is imported when it is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

__version__ = "0.1.0"

if TYPE_CHECKING:
    from pumice.framework.plugin.errors import PluginError, PolicyError
    from pumice.framework.plugin.plugin import plugin
    from pumice.library.cluster import Cluster, load
    from pumice.library.comparison import Comparison, compare
    from pumice.library.cycle import Cycle
    from pumice.library.errors import InputError
    from pumice.library.explanation import Explanation, Waiting
    from pumice.library.filling import Fill, fill
    from pumice.library.policies import PolicySource, policy
    from pumice.library.questions import explain
    from pumice.library.row import Row
    from pumice.library.run import Run
    from pumice.library.scheduler import Scheduler, connect
    from pumice.library.table import Table
    from pumice.volcano import points

#: Name -> module that has it. `import pumice` itself costs nothing, as every command and every module does it.
_PLACES = {
    "Cluster": "pumice.library.cluster",
    "Comparison": "pumice.library.comparison",
    "Cycle": "pumice.library.cycle",
    "Explanation": "pumice.library.explanation",
    "Fill": "pumice.library.filling",
    "InputError": "pumice.library.errors",
    "PluginError": "pumice.framework.plugin.errors",
    "PolicyError": "pumice.framework.plugin.errors",
    "PolicySource": "pumice.library.policies",
    "Row": "pumice.library.row",
    "Run": "pumice.library.run",
    "Scheduler": "pumice.library.scheduler",
    "Table": "pumice.library.table",
    "Waiting": "pumice.library.explanation",
    "compare": "pumice.library.comparison",
    "connect": "pumice.library.scheduler",
    "explain": "pumice.library.questions",
    "fill": "pumice.library.filling",
    "load": "pumice.library.cluster",
    "plugin": "pumice.framework.plugin.plugin",
    "points": "pumice.volcano",
    "policy": "pumice.library.policies",
}

__all__ = [
    "Cluster",
    "Comparison",
    "Cycle",
    "Explanation",
    "Fill",
    "InputError",
    "PluginError",
    "PolicyError",
    "PolicySource",
    "Row",
    "Run",
    "Scheduler",
    "Table",
    "Waiting",
    "__version__",
    "compare",
    "connect",
    "explain",
    "fill",
    "load",
    "plugin",
    "points",
    "policy",
]


def __getattr__(name: str) -> object:
    if name not in _PLACES:
        raise AttributeError(f"module 'pumice' has no attribute {name!r}")
    from importlib import import_module

    module = import_module(_PLACES[name])
    # A sub-module is imported by its own name: its package need not mention it.
    found = import_module(f"{_PLACES[name]}.points") if name == "points" else getattr(module, name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted(__all__)
