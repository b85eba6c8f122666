"""Plugins that neither Volcano nor KAI has: a literal table. A policy of either language names them ``ours/NAME``."""

from __future__ import annotations

from pumice.framework.plugin.registry import plugins_at

PLUGINS = plugins_at(
    {
        "gpuplacement": "pumice.ours.plugins.gpuplacement:GpuPlacement",
    }
)
