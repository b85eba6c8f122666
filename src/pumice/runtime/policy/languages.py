"""All policy languages, and the plugins that belong to none of them: ours, and those of installed packages."""

from __future__ import annotations

from pumice.framework.plugin.on_demand import OnDemand
from pumice.framework.plugin.registry import Dialect, Registry
from pumice.ours.table import PLUGINS
from pumice.runtime.policy.installed_plugins import BuiltinThenInstalled

#: Imported when a policy is written in them, or names one of their plugins.
LANGUAGES: OnDemand[Dialect] = OnDemand(
    {
        "volcano": "pumice.volcano.table:VOLCANO",
        "kai": "pumice.kai.table:KAI",
        "pumice": "pumice.ours.language:PUMICE",
    },
    lambda name, dialect: dialect,
)


def builtin_registry() -> Registry:
    """A registry with every built-in action and plugin, and the plugins of installed packages."""
    return Registry(LANGUAGES, BuiltinThenInstalled(PLUGINS))
