"""Name the plugins that neither Volcano nor KAI has, as a literal table. Policies of every
language name them ``ours/NAME``.
"""

from __future__ import annotations

from pumice.framework.plugin.registry import plugins_at

#: Hooks that are given tasks and read nothing of them that differs between equal ones, as in ``pumice.kai.table``:
#: pods are counted by class. The scores of the policies ``random`` and ``priced`` are of single tasks, and not listed.
_EQUAL_ANSWERS = {"gpuplacement": ("on_allocate",)}
#: The same but for the columns that they name: ``late`` and the plan. ``testing.checks.twins`` asks all of them about
#: equal jobs.
_EQUAL_BUT_FOR_COLUMNS = {"reserve": ("allocatable",)}
PLUGINS = plugins_at(
    {
        "gpuplacement": "pumice.ours.plugins.gpuplacement:GpuPlacement",
        "reserve": "pumice.ours.plugins.reserve:Reserve",
        "shortest": "pumice.ours.plugins.shortest:Shortest",
    },
    _EQUAL_ANSWERS,
    equal_but_for_columns=_EQUAL_BUT_FOR_COLUMNS,
)
