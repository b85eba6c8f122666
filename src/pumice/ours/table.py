"""Name the plugins that neither Volcano nor KAI has, as a literal table. Policies of every
language name them ``ours/NAME``.
"""

from __future__ import annotations

from pumice.framework.plugin.registry import plugins_at

PLUGINS = plugins_at(
    {
        "gpuplacement": "pumice.ours.plugins.gpuplacement:GpuPlacement",
        "reserve": "pumice.ours.plugins.reserve:Reserve",
        "shortest": "pumice.ours.plugins.shortest:Shortest",
    }
)
